package records

import (
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Class is a topic with instances.
type Class struct {
	TopicSI   fragment.Ref
	Instances int
}

// Classes iterates over the topics that have instances, by TopicSI. It reads the keys of all associations, and no
// records.
func (s State) Classes() iter.Seq2[Class, error] {
	return func(yield func(Class, error) bool) {
		prefix := s.id.Key(keys.TableAssociation)
		var class Class
		for r, err := range s.tx.ScanInPlace(prefix, nil) {
			if err != nil {
				yield(Class{}, err)
				return
			}
			player, part, _, ok := splitPlaying(r.Key[len(prefix):])
			if !ok || part != fragment.AsType {
				continue
			}
			if string(player) != string(class.TopicSI) {
				if class.Instances > 0 && !yield(class, nil) {
					return
				}
				class = Class{TopicSI: fragment.Ref(player)}
			}
			class.Instances++
		}
		if class.Instances > 0 {
			yield(class, nil)
		}
	}
}

// AssociationsAfter is [State.AssociationsOf] after the association with a key; nil starts at the first.
func (s State) AssociationsAfter(player fragment.Ref, part fragment.Part,
	after *fragment.AssociationKey) iter.Seq2[*fragment.Association, error] {
	var from []byte
	if after != nil {
		from = append(s.id.AssociationKey(player, part, *after), 0)
	}
	return seq.Map(s.tx.Scan(s.id.PlayingPrefix(player, part), from),
		func(r row) (*fragment.Association, error) { return s.association(r, part) })
}

// AssociationsOfTypes iterates over the associations of some types that a topic plays a role in, except as an instance
// or a class. It reads the first n of all types, and decodes only matching ones.
func (s State) AssociationsOfTypes(player fragment.Ref, n int,
	types ...fragment.Ref) iter.Seq2[*fragment.Association, error] {
	return seq.Map(s.tx.ScanInPlace(s.id.PlayingPrefix(player, fragment.AsPlayer), nil),
		func(r row) (*fragment.Association, error) {
			if n--; n < 0 {
				return nil, seq.ErrStop
			}
			record, err := s.stored(r, fragment.AsPlayer)
			if err != nil {
				return nil, err
			}
			if !isOneOf(types, record) {
				return nil, seq.ErrSkip
			}
			return unmarshalAssociation(r.Key, record)
		})
}

// AllOfTypes iterates over the associations of some types, and decodes no others. Without types it reads none.
func (s State) AllOfTypes(types ...fragment.Ref) iter.Seq2[*fragment.Association, error] {
	if len(types) == 0 {
		return func(func(*fragment.Association, error) bool) {}
	}
	return s.associations(fragment.UnmarshalAssociation, types...)
}

func isOneOf(types []fragment.Ref, record []byte) bool {
	typ := fragment.AssociationContent(fragment.AssociationContent(record)) // the content begins with the type
	return slices.ContainsFunc(types, func(one fragment.Ref) bool { return string(one) == string(typ) })
}
