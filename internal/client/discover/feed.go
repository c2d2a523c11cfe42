package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
)

// collection follows the feeds from the URL to the fragments feed, or to that of records.
func (f Finder) collection(ctx context.Context, ref, protocol, sp string) (*store.Subscription, error) {
	fetcher, err := f.Fetcher.From(ref)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	snapshots := ""
	linked := false // a topic map feed links to at as its fragments feed
	for at := ref; ; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the feeds lead in a circle", at)
		}
		seen[at] = true
		feed, a, err := follow.Feed(ctx, fetcher, f.Limits, at, "")
		if err != nil {
			return nil, err
		}
		if l, ok := feed.Link(feeds.RelSnapshotFeed); ok {
			snapshots = l.Href
		}
		p := f.by(protocol, at)
		wanted := p != nil && protocol != ""
		if p != nil && p.Rel != "" {
			switch next, ok := feed.Link(p.Rel); {
			case linked || isRecordsFeed(feed):
				if l, ok := feed.Link("current"); ok && !iri.SameDocument(l.Href, a.URL) && !seen[l.Href] {
					at = l.Href
					continue
				}
				s, err := f.subscriptionTo(feed, a.URL, "", sp)
				if err == nil {
					s.Protocol = store.Protocol(p.Name)
				}
				return s, err
			case wanted && ok:
				at, linked = next.Href, true
				continue
			case wanted && !leadsDown(feed):
				return nil, fmt.Errorf("%s: this Atom feed is no feed of records, nor does it link to one", at)
			}
		}
		if slices.ContainsFunc(feed.Entries, func(e feeds.Entry) bool { return e.IsDeletion() }) {
			return nil, fmt.Errorf("%s: this is a feed of records: follow it by --protocol %s", at, f.ofRecords())
		}
		if shown := f.by("", at); !linked && shown != nil && shown.Rel != "" && len(feed.Entries) > 0 && isRecordsFeed(feed) {
			return nil, fmt.Errorf("%s: this is a feed of records, not one of fragments: leave out --protocol tmshare", at)
		}
		if linked || isFragmentsFeed(feed) {
			// an archive document was given
			if l, ok := feed.Link("current"); ok && !iri.SameDocument(l.Href, a.URL) && !seen[l.Href] {
				at = l.Href
				continue
			}
			return f.subscriptionTo(feed, a.URL, snapshots, sp)
		}
		for i := range feed.Entries { // a topic map feed knows both
			if l, ok := feed.Entries[i].Link(feeds.RelSnapshotFeed); ok {
				snapshots = l.Href
			}
		}
		if at, linked, err = down(feed, a.URL); err != nil {
			return nil, err
		}
		linked = linked && !wanted
	}
}

// ofRecords returns the name of the protocol of feeds of records.
func (f Finder) ofRecords() string {
	for i := range f.Protocols {
		if f.Protocols[i].Rel == feeds.RelRecordsFeed {
			return f.Protocols[i].Name
		}
	}
	return "atom-pmh, which this program does not have"
}

// isRecordsFeed reports whether a feed shows no sign of another kind, because feeds of records are plain Atom.
func isRecordsFeed(f *feeds.Feed) bool {
	_, other := f.Link(feeds.RelSnapshotFeed)
	for i := range f.Entries {
		for _, rel := range []feeds.Rel{feeds.RelTopicMapFeed, feeds.RelFragmentFeed, feeds.RelSnapshotFeed,
			feeds.RelTopicMapData} {
			_, found := f.Entries[i].Link(rel)
			other = other || found
		}
	}
	return !other
}

// RecordsOnly returns an error that describes a feed about topic maps, and names the way to its records.
func RecordsOnly(f *feeds.Feed, at string) error {
	lists := func(rel feeds.Rel) bool {
		return slices.ContainsFunc(f.Entries, func(e feeds.Entry) bool { _, ok := e.Link(rel); return ok })
	}
	what, instead := "the feed of the snapshots of a topic map, not one of records",
		"the records of the map, which its feed leads to"
	switch {
	case isRecordsFeed(f):
		return nil
	case leadsDown(f):
		what, instead = "a list of topic maps, not a feed of records", "the records of one of them, which its feed leads to"
	case lists(feeds.RelFragmentFeed):
		what = "the feed of a topic map, not one of records"
	case isFragmentsFeed(f):
		what = "the feed of the fragments of a topic map, not one of records"
	}
	if l, ok := f.Link(feeds.RelRecordsFeed); ok {
		instead = l.Href
	}
	return fmt.Errorf("%s: this is %s: harvest %s", at, what, instead)
}

// leadsDown reports whether a feed is an overview.
func leadsDown(f *feeds.Feed) bool {
	return slices.ContainsFunc(f.Entries, func(e feeds.Entry) bool { _, ok := e.Link(feeds.RelTopicMapFeed); return ok })
}

// isFragmentsFeed recognises a fragments feed by its prefix and its links; a snapshots feed has a prefix, too.
func isFragmentsFeed(f *feeds.Feed) bool {
	for i := range f.Entries {
		e := &f.Entries[i]
		if len(e.TopicSI)+len(e.TopicSL)+len(e.TopicII) > 0 {
			return true
		}
		if _, ok := e.Link(feeds.RelTopicMapData); ok {
			return false
		}
	}
	for _, rel := range []feeds.Rel{"prev-archive", "current", feeds.RelSnapshotFeed} {
		if _, ok := f.Link(rel); ok && f.ServerSrcLocatorPrefix != "" {
			return true
		}
	}
	return false
}

// down returns the URL of the next feed towards a fragments feed, and whether it is that feed.
func down(f *feeds.Feed, at string) (next string, fragments bool, err error) {
	var offers []follow.Offer
	for i := range f.Entries {
		e := &f.Entries[i]
		if l, ok := e.Link(feeds.RelFragmentFeed); ok {
			return l.Href, true, nil
		}
		if l, ok := e.Link(feeds.RelTopicMapFeed); ok {
			offers = append(offers, follow.Offer{Title: e.Title, URL: l.Href})
		}
	}
	switch {
	case len(offers) == 1:
		return offers[0].URL, false, nil
	case len(offers) > 1:
		return "", false, &follow.ChoiceError{URL: at, Collections: offers}
	}
	if l, ok := f.Link(feeds.RelFragmentFeed); ok { // SDShare 2012 may link from the feed itself
		return l.Href, true, nil
	}
	if l, ok := f.Link("up"); ok && f.ServerSrcLocatorPrefix != "" { // a snapshots feed
		return l.Href, false, nil
	}
	if len(f.Entries) == 0 && f.ServerSrcLocatorPrefix == "" && len(f.Links) > 0 {
		return "", false,
			fmt.Errorf("%s: there is nothing to subscribe to: the feed lists no topic maps (a server may show some to those "+
				"only who have a token: --token-file)", at)
	}
	return "", false,
		fmt.Errorf("%s: this Atom feed is neither an overview of topic maps, nor the feed of a topic map, nor a fragments "+
			"feed with entries; there is nothing to subscribe to", at)
}

func (f Finder) subscriptionTo(feed *feeds.Feed, at, snapshots, sp string) (*store.Subscription, error) {
	s, err := f.subscriptionAt(at, feed.ServerSrcLocatorPrefix, sp)
	if err != nil {
		return nil, err
	}
	s.SnapshotsFeed, s.FeedID, s.Key, s.Checkpoint = snapshots, feed.ID, feed.Key, feed.Checkpoint
	s.DerivedFrom, s.Duplicates = DerivedFrom(feed), linked(feed, feeds.RelDuplicate)
	return s, nil
}

// DerivedFrom returns the URLs of the fragments feeds from which the feed of a recent document is derived; none for a
// primary one. If the feed has no such links, but its entries come from those of other fragments feeds, it returns
// these.
func DerivedFrom(recent *feeds.Feed) []string {
	if sources := linked(recent, feeds.RelDerivedFrom); sources != nil {
		return sources
	}
	var seen []string
	for _, e := range recent.Entries {
		for _, l := range e.Links {
			if feed, _, fragment := strings.Cut(l.Href, "/fragments/"); l.Rel == "via" && fragment &&
				!slices.Contains(seen, feed+"/fragments") {
				seen = append(seen, feed+"/fragments")
			}
		}
	}
	slices.Sort(seen)
	return seen
}

// linked returns the URLs to which a relation leads.
func linked(recent *feeds.Feed, rel feeds.Rel) (urls []string) {
	for _, l := range recent.Find(rel) {
		if !slices.Contains(urls, l.Href) {
			urls = append(urls, l.Href)
		}
	}
	return urls
}
