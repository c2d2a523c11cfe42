// Package discover finds what can be followed, from any URL of its server.
package discover

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/store"
)

// Finder finds what can be followed.
type Finder struct {
	Fetcher *fetch.Fetcher
	Limits  feeds.Limits // of one feed document
	MaxDocs int          // documents that are read to find a set of resources
	Report  func(line string)
}

// Find returns a subscription to what a URL leads to, without a name. protocol is how changes
// are to be learnt of, "" what the URL shows. sp is the source locator prefix for what declares
// none, "" makes one of its URL. Where there are several collections, a [*ChoiceError] lists them.
func (f Finder) Find(ctx context.Context, ref, protocol, sp string) (*store.Subscription, error) {
	if protocol == string(store.ResourceSync) || protocol == "" && saysResourceSync(ref) {
		return f.subscriptionToSet(ctx, ref, sp)
	}
	return f.collection(ctx, ref, protocol, sp)
}

// ChoiceError says that a URL offers several collections.
type ChoiceError struct {
	URL         string
	Collections []Offer
}

// Offer is a collection that can be subscribed to.
type Offer struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

func (e *ChoiceError) Error() string {
	var b strings.Builder
	if len(e.Collections) == 1 { // a set of resources that nothing leads to
		fmt.Fprintf(&b, "%s belongs to no set of resources that is known; its server has this one:", e.URL)
	} else {
		fmt.Fprintf(&b, "%s offers %d collections; subscribe to one of these:", e.URL, len(e.Collections))
	}
	for _, o := range e.Collections {
		fmt.Fprintf(&b, "\n  %s  (%s)", o.URL, o.Title)
	}
	return b.String()
}

// subscriptionAt makes a subscription to what declares a source locator prefix, or where that
// is "" to what does not.
func (f Finder) subscriptionAt(at, declared, sp string) (*store.Subscription, error) {
	s := &store.Subscription{FragmentsFeed: at, SP: declared}
	switch {
	case s.SP == "":
		s.OwnSP = true
		if s.SP = sp; sp == "" {
			s.SP = prefixFor(at)
		}
		f.Report(fmt.Sprintf("%s declares no ServerSrcLocatorPrefix; its statements will bear %s", at, s.SP))
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

// NameFrom makes a name for a subscription from the URL of what it follows.
func NameFrom(ref string) string {
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
