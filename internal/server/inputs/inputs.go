// Package inputs describes the inputs of derived collections.
package inputs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Store has the methods of a store that the package needs.
type Store interface {
	Listing(ctx context.Context) (*store.Listing, error)
	ReadParts(ctx context.Context, f func([]store.Part) error) error
}

// Links returns the links from the fragments feed of a derived collection to those of its inputs; none for other
// collections. own returns the URL of the fragments feed of a collection of this server. A missing input keeps its
// link, because its statements are kept.
func Links(ctx context.Context, db Store, c *store.Collection,
	own func(*store.Collection) string) ([]feeds.Link, error) {
	if len(c.DerivedFrom) == 0 && c.Replica == nil {
		return nil, nil
	}
	node, err := db.Listing(ctx)
	if err != nil {
		return nil, err
	}
	var links []feeds.Link
	add := func(href string) {
		links = append(links, feeds.Link{Rel: feeds.RelDerivedFrom, Type: feeds.MediaTypeAtom, Href: href})
	}
	if c.Replica != nil {
		if f := node.Followed(c.Name); f != nil { // its origin states it
			for _, href := range f.DerivedFrom {
				add(href)
			}
		}
		return links, nil
	}
	for _, in := range node.States(c) {
		switch {
		case in.Derived, in.URL == "" && in.Number == 0: // no link; it was missing before inputs were bound
			continue
		case in.URL == "":
			in.URL = own(&store.Collection{Name: in.Name})
		}
		add(in.URL)
	}
	return links, nil
}

// State differs where links do.
func State(links []feeds.Link) string {
	if len(links) == 0 {
		return ""
	}
	return fmt.Sprint(links)
}

// The conditions of a derived collection that is not in step with its inputs.
const (
	BeingFilled = "being filled"
	Missing     = "input missing"
	Nothing     = "nothing passes"
)

// Condition returns the condition of a collection, and the remedy; "" if it has none.
func Condition(node *store.Listing, c *store.Collection) (condition, advice string) {
	if what := store.AdviceOnInputs(c, node.States(c)); what != "" {
		return Missing, what
	} else if c.Hidden {
		return BeingFilled, fmt.Sprintf("%d topics so far", c.Topics)
	} else if c.Topics == 0 && !c.Filter.Empty() {
		return Nothing, "its inputs have no topics, or none that its filter lets pass: give it another (derive)"
	}
	return "", ""
}

// Conditions returns a function that returns the condition of a collection, and the remedy.
func Conditions(ctx context.Context, db Store) (state func(*store.Collection) (condition, advice string), err error) {
	node, err := db.Listing(ctx)
	return func(c *store.Collection) (condition, advice string) { return Condition(node, c) }, err
}

// Warnings returns a warning for each name in a collection's filter that no input has so far.
func Warnings(ctx context.Context, db Store, c *store.Collection) ([]string, error) {
	lines, _, err := missing(ctx, db, c)
	return lines, err
}

func missing(ctx context.Context, db Store, c *store.Collection) (lines, nothing []string, err error) {
	if c.Filter == nil {
		return nil, nil, nil
	}
	err = db.ReadParts(ctx, func(parts []store.Part) error {
		parts = slices.DeleteFunc(parts, func(p store.Part) bool { return !p.InputOf(c) })
		lines, nothing, err = derive.Missing(c.Filter, func(si fragment.Ref) (bool, error) { return anyHas(parts, si) })
		return err
	})
	return lines, nothing, err
}

func anyHas(parts []store.Part, si fragment.Ref) (bool, error) {
	for _, p := range parts {
		if t, err := p.Source.Topic(si); t != nil || err != nil {
			return t != nil, err
		}
	}
	return false, nil
}

// localStatements is the name of the collection of the node's own statements, which are written.
const localStatements = "local"

// Check returns an error if a collection must not be derived from inputs or by a filter (nil: unchanged): because of
// its name; because it would make an input public that needs a token; or because the filter would remove everything, as
// no input has anything in one of its lists. closed reports whether a collection can be read only with a token.
func Check(ctx context.Context, db Store, closed func(name string) bool, name string, from *[]string,
	filter *store.Filter) error {
	if from == nil && filter == nil {
		return nil
	}
	if name == localStatements {
		return web.Problemf(http.StatusConflict,
			"%q is the name of the node's own statements, which \"edit\" writes: choose another name", name)
	}
	node, err := db.Listing(ctx)
	if err != nil {
		return err
	}
	if from != nil && !closed(name) {
		for _, input := range *from {
			f := node.Followed(input)
			if f != nil && f.TokenFile != "" || closed(input) {
				return web.Problemf(http.StatusConflict,
					"%s is only for those who have a token, and %s would be open to all: serve with --read-token-file %s=FILE first",
					input, name, name)
			}
		}
	}
	for _, c := range node.Collections {
		isNew := func(input string) bool { return !slices.Contains(c.DerivedFrom, input) }
		if c.Name != name || c.Topics == 0 || from != nil && slices.ContainsFunc(*from, isNew) || filter.Equal(c.Filter) {
			continue
		}
		c.Filter = filter
		_, nothing, err := missing(ctx, db, &c)
		if len(nothing) > 0 {
			return web.Problemf(http.StatusConflict, "%s has %d topics, and of what the filter names (%s) no input has "+
				"anything: nothing would be left; check the identifiers (\"topic\" shows those that there are)",
				name, c.Topics, strings.Join(nothing, ", "))
		}
		return err
	}
	return nil
}

// Names returns the inputs of a collection; nil if it is not derived.
func Names(c *store.Collection) *[]string {
	if len(c.DerivedFrom) == 0 {
		return nil
	}
	return &c.DerivedFrom
}
