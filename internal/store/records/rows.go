package records

import (
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
	if t.HasReifiers() {
		if err := put(id.ReifiedKey(id.LocatorKey(keys.TableTopic, ref)), nil); err != nil {
			return err
		}
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
		if i == 0 && a.HasReifiers() {
			if err := put(id.ReifiedKey(at), nil); err != nil {
				return err
			}
		}
	}
	return nil
}
