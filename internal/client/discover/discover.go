// Package discover finds sources to follow from any URL of their server.
package discover

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// Finder finds sources to follow.
type Finder struct {
	Fetcher *fetch.Fetcher
	Limits  feeds.Limits // of one feed document
	MaxDocs int          // documents that are read to find a set of resources
	Report  func(line string)
	// Protocols are those of sources of records.
	Protocols []follow.Protocol
}

// Find returns a subscription, without a name, to the source that a URL leads to. protocol is the protocol to use; ""
// takes the one that the URL shows. sp is the source locator prefix for a source that declares none; "" makes one of
// its URL. If there are several collections, a [*follow.ChoiceError] lists them.
func (f Finder) Find(ctx context.Context, ref, protocol, sp string) (*store.Subscription, error) {
	if p := f.by(protocol, ref); p != nil && p.Find != nil {
		return f.found(ctx, p, ref, sp)
	}
	return f.collection(ctx, ref, protocol, sp)
}

// by returns the protocol to follow a URL: the requested one, or for "" the one that the URL shows; nil for fragments.
func (f Finder) by(protocol, ref string) *follow.Protocol {
	if protocol != "" {
		return follow.ProtocolNamed(f.Protocols, protocol)
	}
	if i := slices.IndexFunc(f.Protocols, func(p follow.Protocol) bool { return p.Shows(ref) }); i >= 0 {
		return &f.Protocols[i]
	}
	return nil
}

// found makes a subscription to the source that a protocol finds.
func (f Finder) found(ctx context.Context, p *follow.Protocol, ref, sp string) (*store.Subscription, error) {
	found, err := p.Find(ctx, &follow.Access{Fetcher: f.Fetcher, MaxDocs: f.MaxDocs}, ref)
	if choice := new(follow.ChoiceError); errors.As(err, &choice) {
		for i := range choice.Collections {
			if o := &choice.Collections[i]; o.Title == "" {
				o.Title = NameFrom(o.URL)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	s, err := f.subscriptionAt(found.URL, found.Prefix, sp)
	if err == nil {
		s.Protocol = store.Protocol(p.Name)
	}
	return s, err
}

// subscriptionAt makes a subscription to a source that declares a source locator prefix; "": it declares none.
func (f Finder) subscriptionAt(at, declared, sp string) (*store.Subscription, error) {
	s := &store.Subscription{FragmentsFeed: at, SP: declared}
	switch {
	case s.SP == "":
		s.OwnSP = true
		if s.SP = sp; sp == "" {
			s.SP = prefixFor(at)
		}
		f.Report(fmt.Sprintf("%s has no source locator prefix of its own; its statements will bear %s", at, s.SP))
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

// NameFrom makes a name for a subscription from the URL of its source.
func NameFrom(ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return "source"
	}
	at := strings.TrimSuffix(u.Path, "/")
	if strings.HasSuffix(at, ".xml") { // of a set of resources
		at = strings.TrimSuffix(path.Dir(at), "/")
	}
	for _, feed := range []string{"/ldes/latest", "/ldes", "/complete", "/fragments", "/records", "/resourcesync"} {
		at = strings.TrimSuffix(at, feed)
	}
	name := path.Base(at)
	if name == "/" || name == "." {
		return u.Hostname()
	}
	return name
}
