package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
)

// SubscribeOptions are what a subscriber may decide.
type SubscribeOptions struct {
	Name string // of the subscription; "" takes one from the URL

	// SP is the source locator prefix for a feed that declares none; "" makes
	// one of the feed's URL. It must be the declared one of a feed that does.
	SP string

	// Protocol is how changes are to be learnt of. "" takes what the URL shows, which is
	// ProtocolTMShare unless it is that of a feed of records or of a document of ResourceSync.
	Protocol string

	// Format is the name of a format to ask for alone, one that servers offer; "" takes the
	// best that the server has.
	Format string

	// TokenFile is the path of a file with the token that the server wants of
	// readers. It is read anew in each round and sent to no other host.
	TokenFile string

	// AllowSharedPrefix allows a source to have the source locator prefix of a subscription
	// that follows another server.
	AllowSharedPrefix bool

	// Again allows a second subscription to a source, by the same protocol and in the same
	// format, under another name.
	Again bool

	// Hosts may be followed to besides the one of the URL, in each round ("host" or
	// "host:port").
	Hosts []string

	// Strict says whether XTM is read strictly in each round. nil is what Config says.
	Strict *bool
}

// The names of the protocols.
const (
	ProtocolTMShare      = "tmshare"      // a fragments feed, in any dialect
	ProtocolAtomPMH      = "atom-pmh"     // a feed of records
	ProtocolResourceSync = "resourcesync" // the lists of a ResourceSync Source
)

// Protocols are the names of all protocols.
var Protocols = []string{ProtocolTMShare, ProtocolAtomPMH, ProtocolResourceSync}

// ProtocolOf returns the name of the protocol of a subscription.
func ProtocolOf(s *store.Subscription) string { return cmp.Or(string(s.Protocol), ProtocolTMShare) }

// Subscribe subscribes to the collection at a URL: that of an overview with one
// collection, a topic map feed, a fragments feed or a feed of records, or anything that
// leads to a set of resources of a ResourceSync Source. Where there are several
// collections, a [*ChoiceError] lists them.
func (c *Client) Subscribe(ctx context.Context, ref string, o SubscribeOptions) (*store.Subscription, error) {
	if o.Format != "" {
		f, err := formats.ServedNamed(o.Format)
		if err != nil {
			return nil, err
		}
		o.Format = f.Name
	}
	if o.Protocol != "" && !slices.Contains(Protocols, o.Protocol) {
		return nil, fmt.Errorf("unknown protocol %q: there are %s", o.Protocol, strings.Join(Protocols, ", "))
	}
	if o.TokenFile != "" {
		path, err := filepath.Abs(o.TokenFile)
		if err != nil {
			return nil, err
		}
		o.TokenFile = path
	}
	c, err := c.forSubscription(&store.Subscription{FragmentsFeed: ref, Format: o.Format, TokenFile: o.TokenFile, Hosts: o.Hosts, Strict: o.Strict})
	if err != nil {
		return nil, err
	}
	var s *store.Subscription
	if o.Protocol == ProtocolResourceSync || o.Protocol == "" && saysResourceSync(ref) {
		s, err = c.subscriptionToSet(ctx, ref, o.SP)
	} else {
		s, err = c.discover(ctx, ref, o.Protocol, o.SP)
	}
	if err != nil {
		return nil, err
	}
	s.Format, s.TokenFile, s.Hosts, s.Strict = o.Format, o.TokenFile, o.Hosts, o.Strict
	if s.Name = o.Name; s.Name == "" {
		s.Name = nameFrom(s.FragmentsFeed)
	}
	if !validName(s.Name) {
		return nil, fmt.Errorf("%q cannot be the name of a subscription: use up to 100 letters, digits and marks, no line breaks, and no \"-\" at the beginning (--as)", s.Name)
	}
	if s.Name == local.Name {
		return nil, fmt.Errorf("%q is the name of the local statements; choose another name with --as", s.Name)
	}
	if !o.Again {
		if err := c.checkNew(ctx, s); err != nil {
			return nil, err
		}
	}
	if !o.AllowSharedPrefix {
		if err := c.checkUnshared(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := c.Store.AddSubscription(ctx, *s); err != nil {
		if errors.Is(err, store.ErrExists) {
			return nil, fmt.Errorf("there is a subscription %q already; choose another name with --as", s.Name)
		}
		return nil, err
	}
	return s, nil
}

// checkNew returns an error where a subscription follows the source of s already, by the same
// protocol and in the same format.
func (c *Client) checkNew(ctx context.Context, s *store.Subscription) error {
	all, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if o := &all[i]; o.FragmentsFeed == s.FragmentsFeed && sameFormat(o.Format, s.Format) && ProtocolOf(o) == ProtocolOf(s) {
			return fmt.Errorf("%s is subscribed to already, as %q: use that, or \"unsubscribe %[2]s\" first; --again follows it twice", s.FragmentsFeed, o.Name)
		}
	}
	return nil
}

// checkUnshared returns a [*SharedPrefixError] where a subscription to another server has the
// source locator prefix of s. The collections of one server may share one.
func (c *Client) checkUnshared(ctx context.Context, s *store.Subscription) error {
	all, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if o := &all[i]; o.SP == s.SP && serverOf(o.FragmentsFeed) != serverOf(s.FragmentsFeed) {
			return &SharedPrefixError{s.SP, s.FragmentsFeed, o.Name, o.FragmentsFeed}
		}
	}
	return nil
}

// serverOf returns the host and port of a URL.
func serverOf(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return strings.ToLower(u.Host)
}

// validName reports whether people can type a name and see it in a line.
func validName(name string) bool {
	return name != "" && len(name) <= 100 && name[0] != '-' && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == '/' })
}

// nameFrom makes a name for a subscription from the URL of what it follows.
func nameFrom(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return "source"
	}
	at := strings.TrimSuffix(u.Path, "/")
	if strings.HasSuffix(at, ".xml") { // of a set of resources
		at = strings.TrimSuffix(path.Dir(at), "/")
	}
	for _, feed := range []string{"/complete", "/fragments", "/records", "/resourcesync"} {
		at = strings.TrimSuffix(at, feed)
	}
	name := path.Base(at)
	if name == "/" || name == "." {
		return u.Hostname()
	}
	return name
}

// discover follows the feeds from the URL to the fragments feed, or to that of records.
func (c *Client) discover(ctx context.Context, ref, protocol, sp string) (*store.Subscription, error) {
	allowURL, err := c.fetcher().AllowURL(ref)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	snapshots := ""
	linked := false // at is what a topic map feed calls its fragments feed
	for at := ref; ; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the feeds lead in a circle", at)
		}
		seen[at] = true
		feed, a, err := c.getFeed(ctx, at, "", allowURL)
		if err != nil {
			return nil, err
		}
		if l, ok := feed.Link(feeds.RelSnapshotFeed); ok {
			snapshots = l.Href
		}
		wanted := protocol == ProtocolAtomPMH
		if wanted || protocol == "" && saysRecords(at) {
			switch next, ok := feed.Link(feeds.RelRecordsFeed); {
			case linked || isRecordsFeed(feed):
				if l, ok := feed.Link("current"); ok && l.Href != a.URL && !seen[l.Href] {
					at = l.Href
					continue
				}
				s, err := c.subscriptionTo(feed, a.URL, "", sp)
				if err == nil {
					s.Protocol = store.AtomPMH
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
			return nil, fmt.Errorf("%s: this is a feed of records: follow it by --protocol %s", at, ProtocolAtomPMH)
		}
		if !linked && saysRecords(at) && len(feed.Entries) > 0 && isRecordsFeed(feed) {
			return nil, fmt.Errorf("%s: this is a feed of records, not one of fragments: leave out --protocol %s", at, ProtocolTMShare)
		}
		if linked || isFragmentsFeed(feed) {
			if l, ok := feed.Link("current"); ok && l.Href != a.URL && !seen[l.Href] { // an archive document was given
				at = l.Href
				continue
			}
			return c.subscriptionTo(feed, a.URL, snapshots, sp)
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

// saysRecords reports whether a URL is that of a feed of records.
func saysRecords(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && slices.Contains(strings.Split(u.Path, "/"), "records")
}

// isRecordsFeed reports whether nothing in a feed says that it is another one: feeds of
// records are plain Atom.
func isRecordsFeed(f *feeds.Feed) bool {
	_, other := f.Link(feeds.RelSnapshotFeed)
	for i := range f.Entries {
		for _, rel := range []feeds.Rel{feeds.RelTopicMapFeed, feeds.RelFragmentFeed, feeds.RelSnapshotFeed, feeds.RelTopicMapData} {
			_, found := f.Entries[i].Link(rel)
			other = other || found
		}
	}
	return !other
}

// leadsDown reports whether a feed is an overview.
func leadsDown(f *feeds.Feed) bool {
	return slices.ContainsFunc(f.Entries, func(e feeds.Entry) bool { _, ok := e.Link(feeds.RelTopicMapFeed); return ok })
}

// isFragmentsFeed tells a fragments feed by its prefix and by what it links to;
// a snapshots feed has a prefix too.
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

// down returns the URL of the next feed on the way to a fragments feed, and
// whether it is that feed.
func down(f *feeds.Feed, at string) (next string, fragments bool, err error) {
	var offers []Offer
	for i := range f.Entries {
		e := &f.Entries[i]
		if l, ok := e.Link(feeds.RelFragmentFeed); ok {
			return l.Href, true, nil
		}
		if l, ok := e.Link(feeds.RelTopicMapFeed); ok {
			offers = append(offers, Offer{e.Title, l.Href})
		}
	}
	switch {
	case len(offers) == 1:
		return offers[0].URL, false, nil
	case len(offers) > 1:
		return "", false, &ChoiceError{at, offers}
	}
	if l, ok := f.Link(feeds.RelFragmentFeed); ok { // SDShare 2012 may link from the feed itself
		return l.Href, true, nil
	}
	if l, ok := f.Link("up"); ok && f.ServerSrcLocatorPrefix != "" { // a snapshots feed
		return l.Href, false, nil
	}
	if len(f.Entries) == 0 && f.ServerSrcLocatorPrefix == "" && len(f.Links) > 0 {
		return "", false, fmt.Errorf("%s: there is nothing to subscribe to: the feed lists no topic maps (a server may show some to those only who have a token: --token-file)", at)
	}
	return "", false, fmt.Errorf("%s: this Atom feed is neither an overview of topic maps, nor the feed of a topic map, nor a fragments feed with entries; there is nothing to subscribe to", at)
}

func (c *Client) subscriptionTo(feed *feeds.Feed, at, snapshots, sp string) (*store.Subscription, error) {
	s, err := c.subscriptionAt(at, feed.ServerSrcLocatorPrefix, sp)
	if err != nil {
		return nil, err
	}
	s.SnapshotsFeed, s.FeedID = snapshots, feed.ID
	return s, nil
}

// subscriptionAt makes a subscription to what declares a source locator prefix, or where that
// is "" to what does not.
func (c *Client) subscriptionAt(at, declared, sp string) (*store.Subscription, error) {
	s := &store.Subscription{FragmentsFeed: at, SP: declared}
	switch {
	case s.SP == "":
		s.OwnSP = true
		if s.SP = sp; sp == "" {
			s.SP = prefixFor(at)
		}
		c.Report(fmt.Sprintf("%s declares no ServerSrcLocatorPrefix; its statements will bear %s", at, s.SP))
	case sp != "" && sp != s.SP:
		return nil, fmt.Errorf("%s: its ServerSrcLocatorPrefix is %s; another one (%s) would never match that", at, s.SP, sp)
	}
	if err := fragment.ValidatePrefix(s.SP); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return s, nil
}

// prefixFor makes a source locator prefix of the URL of a feed that has none.
func prefixFor(feed string) string {
	u, err := url.Parse(feed)
	if err != nil {
		return feed + "#"
	}
	u.Fragment, u.User = "", nil
	return u.String() + "#"
}
