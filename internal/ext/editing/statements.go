package editing

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/tmdm"
)

// divided holds the statements of a topic that rows remove or replace, and the others. New statements are added after
// all removals, so that two rows may exchange their values.
type divided[T any] struct {
	kept  []T
	known map[string]bool // identities of the statements that are kept or added
	gone  map[string]T
}

func divide[T any](all []T, is func(*T) string, goes map[string]bool) divided[T] {
	d := divided[T]{known: map[string]bool{}, gone: map[string]T{}}
	for i := range all {
		key := is(&all[i])
		if goes[key] {
			d.gone[key] = all[i]
			continue
		}
		d.known[key] = true
		d.kept = append(d.kept, all[i])
	}
	return d
}

// kindOf has the differences between names and occurrences when their rows are applied.
type kindOf[T any] struct {
	kind    string                        // of a double
	read    func(i int) (T, wrong, error) // returns the statement of row i
	empty   func(*T) bool                 // reports whether it would be invisible
	key     func(*T) string               // the identity of a statement
	value   func(*T) string
	alone   func(T) *fragment.Topic  // returns a topic with this statement alone
	only    func(*fragment.Topic) *T // returns the statement of such a topic
	inherit func(from, to *T) wrong  // copies the parts that the form does not show to the changed statement
}

// applyRows returns the statements of one kind after the rows: all are those before.
func applyRows[T any](a *applying, d *draft, k kindOf[T], rows []*row, all []T) ([]T, error) {
	goes, stays := map[string]bool{}, map[*row]T{}
	for i, r := range rows {
		if r.Remove {
			goes[r.Is] = true
			continue
		}
		says, w, err := k.read(i)
		if err != nil {
			return nil, err
		}
		if r.Wrong = w; w.Kind != "" || r.Is != "" && k.key(&says) == r.Is {
			continue // wrong, or as it was
		}
		if k.empty(&says) {
			r.Wrong = wrong{Kind: "empty", Field: "value"}
			continue
		}
		is, w, err := a.statement(k.alone(says))
		if err != nil {
			return nil, err
		}
		if r.Wrong = w; w.Kind == "" {
			stays[r], goes[r.Is] = *k.only(is), true
		}
	}
	if len(goes) == 0 {
		return all, nil
	}
	div := divide(all, k.key, goes)
	for _, r := range rows {
		says, there := stays[r]
		if !there {
			continue
		}
		old, known := div.gone[r.Is]
		if known {
			if r.Wrong = k.inherit(&old, &says); r.Wrong.Kind != "" {
				continue
			}
		}
		is := k.key(&says)
		if div.known[is] {
			if known {
				r.Wrong = wrong{Kind: "same", Field: "value"}
			}
			continue
		}
		if r.Is != "" && !known {
			d.doubles = append(d.doubles, double{Kind: k.kind, Mine: layout.Cut(k.value(&says))})
		}
		div.known[is], div.kept = true, append(div.kept, says)
	}
	return div.kept, nil
}

// names applies the rows of names.
func (a *applying) names(d *draft) (err error) {
	rows, fields := filled(d.Names)
	a.topic.Names, err = applyRows(a, d, kindOf[fragment.Name]{
		kind:  ofName,
		read:  func(i int) (fragment.Name, wrong, error) { return a.name(fields[i]) },
		empty: func(n *fragment.Name) bool { return unseen(n.Value) },
		key:   func(n *fragment.Name) string { return nameIs(a.self, n) },
		value: func(n *fragment.Name) string { return n.Value },
		alone: func(n fragment.Name) *fragment.Topic { return &fragment.Topic{Names: []fragment.Name{n}} },
		only:  func(t *fragment.Topic) *fragment.Name { return &t.Names[0] },
		inherit: func(from, to *fragment.Name) wrong {
			to.Reifier, to.ItemIdentifiers = from.Reifier, from.ItemIdentifiers
			var ok bool
			if to.Variants, ok = variants(from, to.Scope); !ok {
				return wrong{Kind: "variant", Field: "scope"}
			}
			return wrong{}
		},
	}, rows, a.topic.Names)
	return err
}

// variants returns the variants of a name whose scope changes, with the new scope in place of the old one. ok is false
// if a variant would have no theme of its own any more, or equal another.
func variants(name *fragment.Name, scope []fragment.Ref) (all []fragment.Variant, ok bool) {
	for _, v := range name.Variants {
		own := slices.DeleteFunc(slices.Clone(v.Scope), func(theme fragment.Ref) bool {
			return slices.Contains(name.Scope, theme)
		})
		both := append(slices.Clone(scope), own...)
		slices.Sort(both)
		if v.Scope = slices.Compact(both); len(v.Scope) == len(scope) {
			return nil, false
		}
		if slices.ContainsFunc(all, func(o fragment.Variant) bool {
			return o.Value == v.Value && o.Datatype == v.Datatype && slices.Equal(o.Scope, v.Scope)
		}) {
			return nil, false
		}
		all = append(all, v)
	}
	return all, true
}

// occurrences applies the rows of occurrences.
func (a *applying) occurrences(d *draft) (err error) {
	rows, fields := filled(d.Occurrences)
	a.topic.Occurrences, err = applyRows(a, d, kindOf[fragment.Occurrence]{
		kind:  ofOccurrence,
		read:  func(i int) (fragment.Occurrence, wrong, error) { return a.occurrence(fields[i]) },
		empty: func(*fragment.Occurrence) bool { return false },
		key:   func(o *fragment.Occurrence) string { return occurrenceIs(a.self, o) },
		value: func(o *fragment.Occurrence) string { return o.Value },
		alone: func(o fragment.Occurrence) *fragment.Topic {
			return &fragment.Topic{Occurrences: []fragment.Occurrence{o}}
		},
		only: func(t *fragment.Topic) *fragment.Occurrence { return &t.Occurrences[0] },
		inherit: func(from, to *fragment.Occurrence) wrong {
			to.Reifier, to.ItemIdentifiers = from.Reifier, from.ItemIdentifiers
			return wrong{}
		},
	}, rows, a.topic.Occurrences)
	return err
}

// types applies the rows of types.
func (a *applying) types(d *draft) error {
	return relate(a, d.Types, fragment.AsInstance, func(r *typeRow) (*fragment.Association, wrong, error) {
		class, w, err := a.ref(r.Type)
		if w.Kind != "" || err != nil {
			return nil, w.at("type"), err
		}
		made := fragment.NewAssociation(2)
		for _, ref := range []struct {
			to *fragment.Ref
			si fragment.Ref
		}{{&made.Type, tmdm.PSITypeInstance}, {&made.Roles[0].Type, tmdm.PSIInstance}, {&made.Roles[1].Type, tmdm.PSIType}} {
			if *ref.to, _, err = a.ref(string(ref.si)); err != nil {
				return nil, w, err
			}
		}
		made.Roles[0].Player, made.Roles[1].Player = a.self, class
		return made, w, nil
	})
}

// relate applies the rows of associations of one part of a topic. Existing associations can only be removed.
func relate[T any, R rowOf[T]](
	a *applying, rows []T, part fragment.Part, says func(R) (*fragment.Association, wrong, error),
) error {
	for i := range rows {
		r := R(&rows[i])
		switch b := r.base(); {
		case r.blank():
		case b.Is != "":
			if err := a.takeAway(b, part); err != nil {
				return err
			}
		default:
			made, w, err := says(r)
			if b.Wrong = w; err == nil && w.Kind == "" {
				err = a.add(made)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAway removes the association of a row, if that is to go and it is there.
func (a *applying) takeAway(r *row, part fragment.Part) error {
	key, ok := keyOf(r.Is)
	if !r.Remove || !ok {
		return nil
	}
	found, err := a.associationOf(key, part)
	if found != nil {
		a.removed = append(a.removed, found)
	}
	return err
}

// add adds an association unless it is there.
func (a *applying) add(made *fragment.Association) error {
	made.Canonical()
	key := made.Key()
	found, err := a.associationOf(key, made.Part(a.self))
	if err != nil {
		return err
	}
	if found == nil {
		a.added = append(a.added, made)
		return nil
	}
	// it stays as it is
	a.removed = slices.DeleteFunc(a.removed, func(r *fragment.Association) bool { return r.Key() == key })
	return nil
}

// associations applies the rows of associations.
func (a *applying) associations(d *draft) error {
	return relate(a, d.Associations, fragment.AsPlayer, a.association)
}

// association returns the association of a row.
func (a *applying) association(r *associationRow) (made *fragment.Association, w wrong, err error) {
	if r.Type == "" {
		return nil, wrong{Kind: "roles", Field: "type"}, nil
	}
	if a.inRDF && r.Role == "" && !slices.ContainsFunc(r.Others, func(o roleRow) bool { return o.Type != "" }) {
		r.Role = string(fragment.RDFSubject) // the roles of associations from RDF
		for i := range r.Others {
			if r.Others[i].Player != "" {
				r.Others[i].Type = string(fragment.RDFObject)
			}
		}
	}
	if r.Role == "" {
		return nil, wrong{Kind: "roles", Field: "role"}, nil
	}
	made = &fragment.Association{}
	if made.Type, w, err = a.ref(r.Type); w.Kind != "" || err != nil {
		return nil, w.at("type"), err
	}
	if made.Scope, w, err = a.scope(themes{Scope: r.Scope}); w.Kind != "" || err != nil {
		return nil, w, err
	}
	own := fragment.Role{Player: a.self}
	if own.Type, w, err = a.ref(r.Role); w.Kind != "" || err != nil {
		return nil, w.at("role"), err
	}
	made.Roles = append(made.Roles, own)
	for i, o := range r.Others {
		ofType, ofPlayer := otherRole(i)+"type", otherRole(i)+"player"
		if o == (roleRow{}) {
			continue
		}
		if o.Type == "" {
			return nil, wrong{Kind: "roles", Field: ofType}, nil
		}
		if o.Player == "" {
			return nil, wrong{Kind: "roles", Field: ofPlayer}, nil
		}
		var other fragment.Role
		if other.Type, w, err = a.ref(o.Type); w.Kind != "" || err != nil {
			return nil, w.at(ofType), err
		}
		if other.Player, w, err = a.ref(o.Player); w.Kind != "" || err != nil {
			return nil, w.at(ofPlayer), err
		}
		if !slices.ContainsFunc(made.Roles, func(r fragment.Role) bool {
			return r.Type == other.Type && r.Player == other.Player
		}) {
			made.Roles = append(made.Roles, other)
		}
	}
	return made, wrong{}, nil
}

// unseen reports whether a text is invisible.
func unseen(text string) bool {
	return strings.TrimFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) }) == ""
}
