package records

import (
	"errors"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// following receives the rows derived from records. An update adds or removes them, a load and a check collect them.
type following interface {
	row(key, value []byte) error    // the record itself, or a row that leads to it
	mention(ref fragment.Ref)       // is counted
	index(t *fragment.Topic) error  // adds or removes the topic's entries
	item(e statedigest.Entry) error // adds or removes an item of the state digest; called last
}

// topicFollows passes all rows derived from a topic; record is its stored form. No other code defines these.
func topicFollows(id keys.Source, t *fragment.Topic, record []byte, to following) error {
	ref := t.TopicSI()
	at := id.LocatorKey(keys.TableTopic, ref)
	if err := errors.Join(to.row(at, record), reifiedRows(id, at, Reifiers(t), to.row)); err != nil {
		return err
	}
	for _, si := range t.SubjectIdentifiers[1:] {
		if err := to.row(id.LocatorKey(keys.TableIdentifier, si), []byte(ref)); err != nil {
			return err
		}
	}
	for _, sl := range t.SubjectLocators {
		if err := to.row(id.LocatorKey(keys.TableLocator, sl), []byte(ref)); err != nil {
			return err
		}
	}
	t.Mentions(to.mention)
	if err := to.index(t); err != nil {
		return err
	}
	return to.item(statedigest.EntryOf(statedigest.Topic, string(ref), fragment.TopicContent(record)))
}

// associationFollows is topicFollows for an association. Nothing follows from one without roles: it has no place.
func associationFollows(id keys.Source, a *fragment.Association, record []byte, to following) error {
	players, key := a.Players(), a.Key()
	if len(players) == 0 {
		return nil
	}
	inline := append([]byte{rowInline}, record...)
	for i, p := range players {
		value := inline
		if i > 0 && len(players) > InlinePlayers {
			value = append([]byte{rowElsewhere}, players[0]...)
		}
		at := id.AssociationKey(p, a.Part(p), key)
		if err := to.row(at, value); err != nil {
			return err
		}
		if i == 0 {
			if err := reifiedRows(id, at, ReifiersOf(a), to.row); err != nil {
				return err
			}
		}
	}
	a.Mentions(to.mention)
	return to.item(statedigest.EntryOf(statedigest.Association, string(statedigest.Owner(a)),
		fragment.AssociationContent(record)))
}

// reifiedRows calls put with the rows that mark the record with a key as having reified items, with their reifiers.
func reifiedRows(id keys.Source, record []byte, reifiers []fragment.Ref, put func(key, value []byte) error) error {
	if len(reifiers) == 0 {
		return nil
	}
	if err := put(id.ReifiedKey(record), []byte{}); err != nil {
		return err
	}
	for _, reifier := range reifiers {
		if err := put(id.ReifierKey(reifier, record), []byte{}); err != nil {
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

// distinct sorts references and removes empty and duplicate ones.
func distinct(all []fragment.Ref) []fragment.Ref {
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 0 && all[0] == "" {
		all = all[1:]
	}
	return all
}
