// Package expand replaces derived sources by their inputs.
package expand

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// Expanded holds sources of a node without those known to be derived.
type Expanded struct {
	Names []string `json:"names"`
	Added []Added  `json:"added"` // the subscriptions that were made for it
}

// Added is a subscription that was made.
type Added struct {
	Name string `json:"name"`
	Feed string `json:"feed"`
}

// Inputs returns the named sources, and replaces each subscription with a derived source by the collections and
// subscriptions that are its inputs. It subscribes to missing ones. If that fails, earlier ones are kept.
func Inputs(ctx context.Context, c *client.Client, names []string) (*Expanded, error) {
	e := &Expanded{Added: []Added{}}
	for _, name := range names {
		feeds, err := derivedFrom(ctx, c, name)
		if err != nil {
			return e, err
		}
		if len(feeds) == 0 {
			e.take(name)
		}
		for _, feed := range feeds {
			if err := e.input(ctx, c, feed); err != nil {
				return e, fmt.Errorf(
					"%s is derived from %s, which cannot be subscribed to: %w\nSubscribe to it yourself, with what it needs "+
						"(\"tmshare-client subscribe\"), then try again", name, feed, err)
			}
		}
	}
	return e, nil
}

func (e *Expanded) take(name string) {
	if !slices.Contains(e.Names, name) {
		e.Names = append(e.Names, name)
	}
}

func derivedFrom(ctx context.Context, c *client.Client, name string) ([]string, error) {
	all, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == name {
			return all[i].DerivedFrom, nil
		}
	}
	return nil, nil
}

// input adds the source of a fragments feed: a subscription, a collection of the node, or a new subscription.
func (e *Expanded) input(ctx context.Context, c *client.Client, feed string) error {
	followed, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for i := range followed {
		if taken[followed[i].Name] = true; follows(&followed[i], feed) {
			e.take(followed[i].Name)
			return nil
		}
	}
	own, err := c.Store.Collections(ctx)
	if err != nil {
		return err
	}
	for i := range own {
		taken[own[i].Name] = true
	}
	s, err := c.Subscribe(ctx, feed, client.SubscribeOptions{Name: free(discover.NameFrom(feed), taken)})
	var here *client.OwnError
	switch {
	case errors.As(err, &here):
		e.take(here.Name)
	case err != nil:
		return err
	default:
		e.take(s.Name)
		e.Added = append(e.Added, Added{s.Name, s.FragmentsFeed})
	}
	return nil
}

// follows reports whether a fragments feed is that of a subscription, or of a replica that it may follow.
func follows(s *store.Subscription, feed string) bool {
	return s.FragmentsFeed == feed || slices.ContainsFunc(s.Addresses, func(a sources.Address) bool {
		return a.FragmentsFeed == feed
	})
}

// free returns a name that is not taken, by appending a number if necessary.
func free(name string, taken map[string]bool) string {
	for n, wanted := 2, name; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", wanted, n)
	}
	return name
}
