package discover

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	rs "github.com/tmshare/tmshare/internal/follow/resourcesync"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
)

// PrefixOf returns the source locator prefix that a Source declares, "" where it declares none.
func PrefixOf(set *rs.Set) string {
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

// saysResourceSync reports whether a URL is that of a document of ResourceSync.
func saysResourceSync(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && slices.Contains(strings.Split(u.Path, "/"), "resourcesync")
}

// subscriptionToSet makes a subscription to the set of resources to which something at a URL
// belongs.
func (f Finder) subscriptionToSet(ctx context.Context, ref, sp string) (*store.Subscription, error) {
	set, err := f.Set(ctx, ref)
	var choice *rs.ChoiceError
	if errors.As(err, &choice) {
		var offers []Offer
		for _, at := range choice.Sets {
			offers = append(offers, Offer{NameFrom(at), at})
		}
		return nil, &ChoiceError{choice.URL, offers}
	}
	if err != nil {
		return nil, err
	}
	s, err := f.subscriptionAt(set.URL, PrefixOf(set), sp)
	if err == nil {
		s.Protocol = store.ResourceSync
	}
	return s, err
}

// Set finds the set of resources to which something at a URL belongs.
func (f Finder) Set(ctx context.Context, ref string) (*rs.Set, error) {
	return (&rs.Source{Fetcher: f.Fetcher, MaxDocs: f.MaxDocs}).Find(ctx, ref)
}
