package records

import (
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// topicRows calls put with each row of a topic.
func topicRows(id keys.Source, t *fragment.Topic, put func(key, value []byte) error) error {
	return topicRowsOf(id, t, fragment.MarshalTopic(t), put)
}

// topicRowsOf is topicRows of a topic with the given stored form.
func topicRowsOf(id keys.Source, t *fragment.Topic, record []byte, put func(key, value []byte) error) error {
	ref := t.TopicSI()
	if err := put(id.LocatorKey(keys.TableTopic, ref), record); err != nil {
		return err
	}
	if err := reifiedRows(id, id.LocatorKey(keys.TableTopic, ref), Reifiers(t), put); err != nil {
		return err
	}
	for _, si := range t.SubjectIdentifiers[1:] {
		if err := put(id.LocatorKey(keys.TableIdentifier, si), []byte(ref)); err != nil {
			return err
		}
	}
	for _, sl := range t.SubjectLocators {
		if err := put(id.LocatorKey(keys.TableLocator, sl), []byte(ref)); err != nil {
			return err
		}
	}
	return nil
}

// reifiedRows calls put with the rows which say that something in the record with a key is reified, and by whom.
func reifiedRows(id keys.Source, record []byte, reifiers []fragment.Ref, put func(key, value []byte) error) error {
	if len(reifiers) == 0 {
		return nil
	}
	if err := put(id.ReifiedKey(record), nil); err != nil {
		return err
	}
	for _, reifier := range reifiers {
		if err := put(id.ReifierKey(reifier, record), nil); err != nil {
			return err
		}
	}
	return nil
}

// Reifiers returns the topics that reify statements of a topic, each once.
func Reifiers(t *fragment.Topic) (all []fragment.Ref) {
	for i := range t.Names {
		all = append(all, t.Names[i].Reifier)
		for _, v := range t.Names[i].Variants {
			all = append(all, v.Reifier)
		}
	}
	for i := range t.Occurrences {
		all = append(all, t.Occurrences[i].Reifier)
	}
	return distinct(all)
}

// ReifiersOf returns those of an association and its roles, each once.
func ReifiersOf(a *fragment.Association) []fragment.Ref {
	all := []fragment.Ref{a.Reifier}
	for i := range a.Roles {
		all = append(all, a.Roles[i].Reifier)
	}
	return distinct(all)
}

// distinct sorts references and returns those that there are, each once.
func distinct(all []fragment.Ref) []fragment.Ref {
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 0 && all[0] == "" {
		all = all[1:]
	}
	return all
}

// associationRows calls put with each row of an association: one for each player.
func associationRows(id keys.Source, a *fragment.Association, put func(key, value []byte) error) error {
	return associationRowsOf(id, a, fragment.MarshalAssociation(a), put)
}

// associationRowsOf is associationRows of an association with the given stored form.
func associationRowsOf(id keys.Source, a *fragment.Association, record []byte, put func(key, value []byte) error) error {
	players, key := a.Players(), a.Key()
	inline := append([]byte{rowInline}, record...)
	for i, p := range players {
		value := inline
		if i > 0 && len(players) > InlinePlayers {
			value = append([]byte{rowElsewhere}, players[0]...)
		}
		at := id.AssociationKey(p, a.Part(p), key)
		if err := put(at, value); err != nil {
			return err
		}
		if i == 0 {
			if err := reifiedRows(id, at, ReifiersOf(a), put); err != nil {
				return err
			}
		}
	}
	return nil
}
