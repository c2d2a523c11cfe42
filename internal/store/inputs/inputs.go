// Package inputs knows the collections and subscriptions of a node from which others are derived.
package inputs

import (
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// Begin checks the inputs of a collection that is created, and has all their topics derived.
func Begin(t *txn.Tx, c *collections.Collection) error {
	if len(c.DerivedFrom) == 0 {
		return nil
	}
	known := map[string]bool{}
	var ids []keys.Source
	for s, err := range sources.All(t) {
		if err != nil {
			return err
		}
		known[s.Name] = true
		if !slices.Contains(c.DerivedFrom, s.Name) {
			continue
		}
		if len(s.DerivedFrom) > 0 {
			return &derived.Error{Name: s.Name, From: s.DerivedFrom, Input: true, Feeds: true}
		}
		if s.State != nil {
			ids = append(ids, s.Source(s.State))
		}
	}
	own, err := collections.All(t)
	if err != nil {
		return err
	}
	for i := range own {
		if known[own[i].Name] = true; own[i].Replica != nil || !slices.Contains(c.DerivedFrom, own[i].Name) {
			continue
		}
		if len(own[i].DerivedFrom) > 0 {
			return &derived.Error{Name: own[i].Name, From: own[i].DerivedFrom, Input: true}
		}
		ids = append(ids, own[i].SourceKey())
	}
	for _, name := range c.DerivedFrom {
		if !known[name] {
			return fmt.Errorf("%w: no collection or subscription of this node has the name %q; publish it with \"import --create\", or subscribe first", txn.ErrNotFound, name)
		}
	}
	return derived.Begin(t, c.Number, c.DerivedFrom, ids)
}

// End prepares the removal of a collection, as an input or as what is derived.
func End(t *txn.Tx, c *collections.Collection) error {
	if len(c.DerivedFrom) > 0 {
		return derived.End(t, c.Number, c.DerivedFrom)
	}
	return derived.MarkGone(t, c.Name, c.SourceKey())
}

// Name gives the entries of a change of a derived collection the entries of its inputs that they come from: those that have changed one
// of the topic's identifiers in an input. state is as before the change.
func Name(state merge.State, c *fragment.Change, via map[fragment.Ref][]string) error {
	if len(via) == 0 || c == nil {
		return nil
	}
	put := map[fragment.Ref]*fragment.Topic{}
	for _, t := range c.PutTopics {
		put[t.TopicSI()] = t
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		before, err := state.Topic(e.TopicSI)
		if err != nil {
			return err
		}
		for _, t := range []*fragment.Topic{{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{e.TopicSI}}}, before, put[e.Topic]} {
			if t == nil {
				continue
			}
			for _, si := range t.SubjectIdentifiers {
				e.Via = append(e.Via, via[si]...)
			}
		}
		slices.Sort(e.Via)
		e.Via = slices.Compact(e.Via)
	}
	return nil
}
