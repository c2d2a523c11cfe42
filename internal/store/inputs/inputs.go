// Package inputs knows the collections and subscriptions of a node from which others are derived.
package inputs

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// State is how an input of a derived collection is.
type State struct {
	collections.Input
	Missing Missing // "": it is there
	Derived bool    // it is derived itself now, and does not count
}

// Missing is the reason why an input is missing.
type Missing string

// The reasons.
const (
	Gone    Missing = "gone"
	Another Missing = "another has its name"
	Loading Missing = "not loaded yet" // it was subscribed to again
)

// source is a source that collections can be derived from.
type source struct {
	collections.Input
	refused error        // why it cannot be an input; nil: it can
	records *keys.Source // nil: not loaded yet
}

// Known are the collections and subscriptions of a node from which others can be derived, by name.
type Known map[string]source

// Among returns those among all collections and subscriptions of a node.
func Among(own []collections.Collection, followed []sources.Subscription) Known {
	all := make(Known, len(own)+len(followed))
	for i := range own {
		c := &own[i]
		if c.Replica != nil {
			continue // it equals its subscription
		}
		s := source{Input: collections.Input{Name: c.Name, Number: c.Number, Feed: c.Epoch.URN()},
			records: new(c.SourceKey())}
		if len(c.DerivedFrom) > 0 {
			s.refused = txn.Refuse(http.StatusConflict, "collection %q is derived itself; derive from its inputs instead: %s",
				c.Name, strings.Join(c.DerivedFrom, ", "))
		}
		all[c.Name] = s
	}
	for i := range followed {
		f := &followed[i]
		s := source{Input: collections.Input{Name: f.Name, Number: f.Number, Feed: cmp.Or(f.FeedID, f.Authority()),
			URL: f.Authority()}}
		if len(f.DerivedFrom) > 0 {
			s.refused = txn.Refuse(http.StatusConflict,
				"%q follows a collection that is derived itself; follow what that is derived from, and derive from these instead "+
					"(\"derive --expand\" does both): %s", f.Name, strings.Join(f.DerivedFrom, ", "))
		}
		if f.State != nil {
			s.records = new(f.Source(f.State))
		}
		all[f.Name] = s
	}
	return all
}

// States returns how the inputs of a derived collection are. An input is bound to the id of its feed, not to its name.
// It stays the same where its owner begins a new history, or where it is subscribed to again.
func (all Known) States(c *collections.Collection) (list []State) {
	for _, name := range c.DerivedFrom {
		now, there := all[name]
		bound := slices.IndexFunc(c.Inputs, func(in collections.Input) bool { return in.Name == name })
		s := State{Input: now.Input, Derived: now.refused != nil}
		switch {
		case !there:
			s.Input, s.Missing = collections.Input{Name: name}, Gone
		case bound < 0 || now.Number == c.Inputs[bound].Number:
		case now.Feed != c.Inputs[bound].Feed:
			s.Missing = Another
		case now.records == nil: // without its statements, the last state is kept
			s.Missing = Loading
		}
		if s.Missing != "" && bound >= 0 {
			s.Input, s.Derived = c.Inputs[bound], false
		}
		list = append(list, s)
	}
	return list
}

func read(t *txn.Tx) (Known, error) {
	own, err := collections.All(t)
	followed, unread := sources.All(t)
	return Among(own, followed), cmp.Or(err, unread)
}

// Bind returns the present inputs of a derived collection. all is false if one is missing.
func Bind(t *txn.Tx, c *collections.Collection) (now []collections.Input, all bool, err error) {
	known, err := read(t)
	all = true
	for _, s := range known.States(c) {
		now = append(now, s.Input) // without a number if it was missing already when inputs were not bound yet
		all = all && s.Missing == ""
	}
	return now, all, err
}

// Begin checks the inputs of a collection that is created, binds it to them, and has all their topics derived.
func Begin(t *txn.Tx, c *collections.Collection) error {
	if len(c.DerivedFrom) == 0 {
		return nil
	}
	known, err := read(t)
	if err != nil {
		return err
	}
	own(c)
	c.Hidden = true
	return bind(t, c, known, c.DerivedFrom)
}

// Extension is the name of the extension that publishes derived collections.
const Extension = "derive"

// own makes the extension the only publisher of a derived collection.
func own(c *collections.Collection) {
	c.Owner = &collections.Owner{Extension: Extension,
		Says: fmt.Sprintf("is derived from %s and cannot be written: change these instead",
			strings.Join(c.DerivedFrom, ", "))}
}

// bind binds a collection to those of its inputs that are named, and has all their topics derived.
func bind(t *txn.Tx, c *collections.Collection, known Known, names []string) error {
	var ids []keys.Source
	c.Inputs = slices.DeleteFunc(slices.Clone(c.Inputs), func(in collections.Input) bool {
		return slices.Contains(names, in.Name)
	})
	for _, name := range names {
		s, there := known[name]
		switch {
		case !there:
			return fmt.Errorf(
				"%w: no collection or subscription of this node has the name %q; publish it with \"import --create\", or "+
					"subscribe first", txn.ErrNotFound, name)
		case s.refused != nil:
			return s.refused
		case s.records != nil:
			ids = append(ids, *s.records)
		}
		c.Inputs = append(c.Inputs, s.Input)
	}
	return derived.Begin(t, c.Number, names, ids)
}

// Again binds a derived collection to the present sources with the names of its missing inputs. It drops those that are
// not in names. The statements of the former inputs are derived again. names must have all other inputs, and no new
// ones.
func Again(t *txn.Tx, c *collections.Collection, names []string) error {
	if len(c.DerivedFrom) == 0 {
		return NotDerived(c)
	}
	known, err := read(t)
	if err != nil {
		return err
	}
	var bound, dropped []string
	for _, s := range known.States(c) {
		named := slices.Contains(names, s.Name)
		switch {
		case s.Missing != "" && !named:
			dropped = append(dropped, s.Name)
		case s.Missing != "":
			bound = append(bound, s.Name)
		case !named:
			return decided(c)
		}
	}
	if len(names) == 0 || len(names) != len(c.DerivedFrom)-len(dropped) {
		return decided(c)
	}
	isDropped := func(name string) bool { return slices.Contains(dropped, name) }
	c.DerivedFrom = slices.DeleteFunc(slices.Clone(c.DerivedFrom), isDropped)
	c.Inputs = slices.DeleteFunc(slices.Clone(c.Inputs), func(in collections.Input) bool { return isDropped(in.Name) })
	own(c)
	if err := derived.End(t, c.Number, dropped); err != nil || len(bound) == 0 {
		return err
	}
	return bind(t, c, known, bound)
}

// NotDerived refuses to derive a collection again that is written.
func NotDerived(c *collections.Collection) error {
	return txn.Refuse(http.StatusConflict,
		"the name %s is taken by a collection that is not derived: choose another name", c.Name)
}

// decided refuses to derive a collection from others than it is.
func decided(c *collections.Collection) error {
	return txn.Refuse(http.StatusConflict,
		"what %s is derived from is decided for ever, but for inputs that are missing; delete it first, or derive another",
		c.Name)
}

// Rename has the collections that are derived from an input call it by another name.
func Rename(t *txn.Tx, input *collections.Collection, to string) error {
	lacking, err := derived.DerivedFrom(t, to)
	all, unread := collections.All(t)
	if err := cmp.Or(err, unread); err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		if slices.Contains(lacking, c.Number) {
			return txn.Refuse(http.StatusConflict, "%s was derived from another collection or subscription with the name %s: "+
				"choose another name, or derive it again without that", c.Name, to)
		}
		if !c.IsInput(input.Name, input.Number) {
			continue
		}
		for at := range c.DerivedFrom {
			if c.DerivedFrom[at] == input.Name {
				c.DerivedFrom[at] = to
			}
		}
		for at := range c.Inputs {
			if c.Inputs[at].Name == input.Name {
				c.Inputs[at].Name = to
			}
		}
		own(c)
		if err := cmp.Or(derived.End(t, c.Number, []string{input.Name}), derived.Begin(t, c.Number, []string{to}, nil),
			collections.Put(t, c)); err != nil {
			return err
		}
	}
	return nil
}

// End prepares the removal of a collection: it unregisters it from its inputs.
func End(t *txn.Tx, c *collections.Collection) error {
	return derived.End(t, c.Number, c.DerivedFrom)
}
