package client

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/follow"
	rs "github.com/tmshare/tmshare/internal/follow/resourcesync"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
)

// A source may be a set of resources of a ResourceSync Source (ANSI/NISO Z39.99): each
// resource is a record, and its URI the record's id.

// withPackages calls f with what reads such a source. Packages of dumps are fetched to a folder
// that stays where f fails: the next round goes on with what is there.
func (c *Client) withPackages(ctx context.Context, s *store.Subscription, f func(*rs.Source) error) error {
	if err := c.tidyDownloads(ctx); err != nil {
		return err
	}
	folder := c.downloadPath(s) + ".packages"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	source := &rs.Source{
		Fetcher: c.fetcher(), MaxDocs: c.MaxDocs, Scratch: c.scratch(s),
		Temp: folder, Packages: resourcesync.PackageLimits{MaxResource: c.MaxFragment}, MaxPackage: c.MaxSnapshot,
		Represent: represent,
		Check: func(set *rs.Set) error {
			if !iri.SameDocument(set.URL, s.FragmentsFeed) { // where that is not there any more, the server may have led to any other
				return fmt.Errorf("%s: this set of resources is not there any more; the server leads to %s now. Nothing was changed. If that is the same topic map, subscribe to it under another name", s.FragmentsFeed, set.URL)
			}
			sp := discover.PrefixOf(set)
			if iri.ToURI(sp) == iri.ToURI(s.SP) { // which of the two it is, a document cannot say
				sp = s.SP
			}
			return checkPrefix(s, sp, set.URL, true)
		},
		Progress: func(documents int) {
			c.Progress(Progress{s.Name, "reading the lists", int64(documents), 0, Documents})
		},
		Downloading: func(done, total int64) { c.Progress(Progress{s.Name, "fetching a package", done, total, Bytes}) },
		Report:      func(line string) { c.Report(s.Name + ": " + line) },
	}
	if !s.OwnSP { // what others call the subject of a resource need be none of its identifiers
		source.About = about
	}
	if err := errors.Join(f(source), source.Close()); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// represent returns in what forms a resource is available: under its own URI, at its mirrors,
// and as its alternates, which may be XTM of another version (Z39.99 §14.3, Alternate
// Representations).
func represent(i *resourcesync.Item) []follow.Representation {
	return append(rs.Alternates(i), rs.Mirrors(i)...)
}

// about returns the subject of a resource, where the source says it (Z39.99 §14.5, Resources
// and Metadata about Resources). Documents have the URI of its identifier.
func about(i *resourcesync.Item) (subjects []string) {
	for _, l := range i.Find(resourcesync.RelDescribes) {
		if si, err := iri.Normalize(l.Href); err == nil {
			subjects = append(subjects, si)
		}
	}
	return subjects
}

// currentOfSet returns the link to the map as of now of a Source, for verify.
func (c *Client) currentOfSet(ctx context.Context, s *store.Subscription) (string, error) {
	set, err := c.finder().Set(ctx, s.FragmentsFeed)
	if err != nil {
		return "", err
	}
	l, ok := set.Head.Link(feeds.RelCurrentSnapshot)
	if !ok {
		return "", fmt.Errorf("%s: the Capability List does not link to the map as of now, so there is nothing to compare with", set.URL)
	}
	return l.Href, nil
}
