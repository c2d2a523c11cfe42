// Package inputs says what derived collections are made of.
package inputs

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// Store is what is needed of a store.
type Store interface {
	Collections(ctx context.Context) ([]store.Collection, error)
	Subscriptions(ctx context.Context) ([]store.Subscription, error)
}

// Links returns the links from the fragments feed of a derived collection to those of its inputs, none for one that is written. own
// is the URL of the fragments feed of a collection of this server. An input that the node has no more says nothing, and so has no link.
func Links(ctx context.Context, db Store, c *store.Collection, own func(*store.Collection) string) ([]feeds.Link, error) {
	if len(c.DerivedFrom) == 0 && c.Replica == nil {
		return nil, nil
	}
	followed, err := db.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	if c.Replica != nil { // it says what its origin says
		return passedOn(followed, c.Name), nil
	}
	published, err := db.Collections(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]string{}
	for i := range published {
		at[published[i].Name] = own(&published[i])
	}
	for i := range followed {
		if s := &followed[i]; len(s.DerivedFrom) == 0 {
			at[s.Name] = s.Authority()
		}
	}
	var links []feeds.Link
	for _, name := range c.DerivedFrom {
		if href := at[name]; href != "" {
			links = append(links, feeds.Link{Rel: feeds.RelDerivedFrom, Type: feeds.MediaTypeAtom, Href: href})
		}
	}
	return links, nil
}

// passedOn returns the links that the source of a subscription states.
func passedOn(followed []store.Subscription, name string) (links []feeds.Link) {
	for i := range followed {
		if followed[i].Name != name {
			continue
		}
		for _, href := range followed[i].DerivedFrom {
			links = append(links, feeds.Link{Rel: feeds.RelDerivedFrom, Type: feeds.MediaTypeAtom, Href: href})
		}
	}
	return links
}

// State differs where links do.
func State(links []feeds.Link) string {
	if len(links) == 0 {
		return ""
	}
	return fmt.Sprint(links)
}

// Names returns what a collection is derived from, nil for one that is written.
func Names(c *store.Collection) *[]string {
	if len(c.DerivedFrom) == 0 {
		return nil
	}
	return &c.DerivedFrom
}
