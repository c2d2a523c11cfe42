package derived

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// The settlements of a view about reifiers depend on the reified statements of its inputs, and on the topics that these
// mention. Reading all of them for each change would cost as much as reading the inputs. So the settlements are stored,
// and used until a change may affect them. These are the kinds of rows.
const (
	kindSettled   = 'r' // → [settled]: what follows holds for the inputs as they were, but for what these rows say:
	kindUnsettled = 'u' // 1 → reified statements have changed
	kindIdentity  = 'i' // place in the queue → a byte below, and an identifier of a topic that has others now

	kindJoined = 'j' // subject identifier → the record of the topics that are one, of which it is one
	kindChosen = 'c' // SHA-256 of a statement → [chosen]
)

// What the identifiers in the queue are.
const (
	identifierAlone = 's' // a subject identifier; the record that came or went had no other, so it cannot have joined any
	identifier      = 'a' // a subject identifier
	locator         = 'l' // a subject locator
)

// manyIdentities is the number of changed identifiers that are checked for effects. If there are more, all reified
// statements are read.
const manyIdentities = 4000

// manyAssociations is the number of associations of a topic that are read for this check.
const manyAssociations = 200

type settled struct {
	Vocabulary bool `json:"vocabulary,omitempty"`
}

// chosen is a statement about which the inputs disagree, with the reifier that it has.
type chosen struct {
	Statement []byte         `json:"statement"`
	Reifier   fragment.Ref   `json:"reifier,omitempty"`
	Topics    []fragment.Ref `json:"topics"`
}

// unsettle notes that all that is reified has to be read again.
func unsettle(t *txn.Tx, number uint32) error { return t.Put(key(number, kindUnsettled), []byte{1}) }

func sameIdentifiers(a, b *fragment.Topic) bool {
	return slices.Equal(a.SubjectIdentifiers, b.SubjectIdentifiers) && slices.Equal(a.SubjectLocators, b.SubjectLocators)
}

// identified records the identifiers of a record that is about to change, if they change.
func identified(t *txn.Tx, number uint32, was, next *fragment.Topic) error {
	if was != nil && next != nil && sameIdentifiers(was, next) {
		return nil
	}
	kind := byte(identifierAlone)
	both := []*fragment.Topic{was, next}
	for _, topic := range both {
		if topic != nil && len(topic.SubjectIdentifiers)+len(topic.SubjectLocators) > 1 || was != nil && next != nil {
			kind = identifier
		}
	}
	for _, topic := range both {
		if topic == nil {
			continue
		}
		for _, si := range topic.SubjectIdentifiers {
			if err := enqueue(t, number, kindIdentity, append([]byte{kind}, si...)); err != nil {
				return err
			}
		}
		for _, sl := range topic.SubjectLocators {
			if err := enqueue(t, number, kindIdentity, append([]byte{locator}, sl...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Settle makes the view use the stored settlements if they are still valid. Otherwise it stores those that the view
// computes, and returns the topics affected by the differences.
func Settle(t *txn.Tx, number uint32, view *merge.View) (differ []fragment.Ref, err error) {
	var result settled
	known, err := t.GetJSON(key(number, kindSettled), &result)
	if err != nil {
		return nil, err
	}
	if row, err := t.Get(key(number, kindUnsettled)); err != nil {
		return nil, err
	} else if row != nil {
		known = false
	}
	kept := &merge.Kept{Joined: joined{&merge.Memory{}, t, number}, Vocabulary: result.Vocabulary}
	if kept.Chosen, err = chosenBefore(t, number); err != nil {
		return nil, err
	}
	noted, err := takeIdentities(t, number)
	if err != nil {
		return nil, err
	}
	if known && noted != nil {
		matters, err := noted.matter(t, view, kept)
		if err != nil {
			return nil, err
		}
		if !matters {
			view.Keep(kept)
			return nil, nil
		}
	}
	return settle(t, number, view)
}

// chosenBefore returns the statements about which the inputs disagreed, by their keys in the view.
func chosenBefore(t *txn.Tx, number uint32) (map[string]fragment.Ref, error) {
	all := map[string]fragment.Ref{}
	for c, err := range txn.Values[chosen](t.ScanInPlace(key(number, kindChosen), nil)) {
		if err != nil {
			return nil, err
		}
		all[string(c.Statement)] = c.Reifier
	}
	return all, nil
}

// settle stores the settlements that the view computes.
func settle(t *txn.Tx, number uint32, view *merge.View) (differ []fragment.Ref, err error) {
	all, err := view.Settlements()
	if err != nil {
		return nil, err
	}
	now := map[string][]byte{}
	for _, s := range all {
		if s.Statement == "" {
			record := fragment.MarshalTopic(&fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: s.Topics}})
			for _, si := range s.Topics {
				now[string(append(key(number, kindJoined), si...))] = record
			}
			continue
		}
		row, err := json.Marshal(chosen{[]byte(s.Statement), s.Reifier, s.Topics})
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256([]byte(s.Statement))
		now[string(append(key(number, kindChosen), sum[:]...))] = row
	}
	about := func(row kv.Row) error {
		topics, err := bearsOn(row)
		differ = append(differ, topics...)
		return err
	}
	for _, kind := range []byte{kindJoined, kindChosen} {
		for r, err := range t.Scan(key(number, kind), nil) {
			if err != nil {
				return nil, err
			}
			if is, stays := now[string(r.Key)]; stays && bytes.Equal(is, r.Value) {
				delete(now, string(r.Key))
				continue
			}
			if err := about(r); err != nil {
				return nil, err
			}
			if err := t.Delete(r.Key); err != nil {
				return nil, err
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(now)) {
		if err := about(kv.Row{Key: []byte(at), Value: now[at]}); err != nil {
			return nil, err
		}
		if err := t.Put([]byte(at), now[at]); err != nil {
			return nil, err
		}
	}
	var is settled
	if is.Vocabulary, err = view.Vocabulary(); err != nil {
		return nil, err
	}
	if err := t.Delete(key(number, kindUnsettled)); err != nil {
		return nil, err
	}
	slices.Sort(differ)
	return slices.Compact(differ), t.PutJSON(key(number, kindSettled), is)
}

// bearsOn returns the topics that a row of a settlement is about.
func bearsOn(row kv.Row) ([]fragment.Ref, error) {
	if row.Key[len(key(0, 0))-1] == kindJoined {
		record, err := fragment.UnmarshalTopic(row.Value)
		if err != nil {
			return nil, txn.Corrupt("joined topics", row.Key, err)
		}
		return record.SubjectIdentifiers, nil
	}
	var c chosen
	if err := json.Unmarshal(row.Value, &c); err != nil {
		return nil, txn.Corrupt("reifier", row.Key, err)
	}
	return c.Topics, nil
}

// joined are the records of topics that are one as they reify the same.
type joined struct {
	*merge.Memory // nothing else
	t             *txn.Tx
	number        uint32
}

// Topic implements [fragment.Source].
func (j joined) Topic(si fragment.Ref) (*fragment.Topic, error) {
	row, err := j.t.Get(append(key(j.number, kindJoined), si...))
	if row == nil || err != nil {
		return nil, err
	}
	return fragment.UnmarshalTopic(row)
}

// Topics implements [fragment.Source].
func (j joined) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		prefix := key(j.number, kindJoined)
		for r, err := range j.t.Scan(prefix, nil) {
			var topic *fragment.Topic
			if err == nil {
				topic, err = fragment.UnmarshalTopic(r.Value)
			}
			if err == nil && string(topic.TopicSI()) != string(r.Key[len(prefix):]) {
				continue
			}
			if !yield(topic, err) || err != nil {
				return
			}
		}
	}
}
