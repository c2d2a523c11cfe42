package resourcesync

import (
	"context"
	"fmt"
	"os"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
)

// Protocol returns how a set of resources of a Source is followed (ANSI/NISO Z39.99): each resource is a record, and
// its URI the record's id.
func Protocol() follow.Protocol {
	return follow.Protocol{Name: "resourcesync", Segment: "resourcesync", Find: find, Open: open}
}

// find finds the set of resources to which something at a URL belongs.
func find(ctx context.Context, r *follow.Access, ref string) (*follow.Found, error) {
	set, err := (&destination.Source{Fetcher: r.Fetcher, MaxDocs: r.MaxDocs}).Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	current, _ := set.Head.Link(feeds.RelCurrentSnapshot)
	return &follow.Found{URL: set.URL, Prefix: prefixOf(set), Current: current.Href}, nil
}

// prefixOf returns the source locator prefix that a Source declares; "" if none.
func prefixOf(set *destination.Set) string {
	l, ok := set.Head.Link(feeds.RelPrefix)
	if !ok {
		return ""
	}
	sp, err := iri.Normalize(iri.FromURI(l.Href))
	if err != nil {
		return l.Href
	}
	return sp
}

func open(r *follow.Access) (follow.Source, error) {
	if err := os.MkdirAll(r.Temp, 0o700); err != nil {
		return nil, err
	}
	return &destination.Source{
		Fetcher: r.Fetcher, MaxDocs: r.MaxDocs, Scratch: r.Scratch,
		Temp: r.Temp, Packages: resourcesync.PackageLimits{MaxResource: r.MaxResource}, MaxPackage: r.MaxPackage,
		Alternates: true, Subjects: r.Subjects, // alternates of the subject of a resource need not be identifiers of it
		Check: func(set *destination.Set) error {
			if !iri.SameDocument(set.URL, r.URL) { // where that is not there any more, the server may have led to any other
				return fmt.Errorf(
					"%s: this set of resources is not there any more; the server leads to %s now. Nothing was changed. If that is "+
						"the same topic map, subscribe to it under another name", r.URL, set.URL)
			}
			sp := prefixOf(set)
			if iri.ToURI(sp) == iri.ToURI(r.Prefix) { // ResourceSync documents cannot distinguish the two
				sp = r.Prefix
			}
			return r.Check(sp, set.URL)
		},
		Progress: r.Documents, Downloading: r.Downloading, Report: r.Report,
	}, nil
}
