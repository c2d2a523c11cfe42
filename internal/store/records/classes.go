package records

import (
	"iter"

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

// AssociationsAfter is [State.AssociationsOf] from the association behind the one with a key on; nil is the first.
func (s State) AssociationsAfter(player fragment.Ref, part fragment.Part,
	after *fragment.AssociationKey) iter.Seq2[*fragment.Association, error] {
	var from []byte
	if after != nil {
		from = append(s.id.AssociationKey(player, part, *after), 0)
	}
	return seq.Map(s.tx.Scan(s.id.PlayingPrefix(player, part), from),
		func(r row) (*fragment.Association, error) { return s.association(r, part) })
}
