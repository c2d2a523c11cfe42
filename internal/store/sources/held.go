package sources

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// A source whose server publishes records, rather than fragments, consists of all its records. Held is the state of one
// of them.
type Held struct {
	ID      string
	Updated time.Time // of the version that is held, by the server's clock
	// of the described topic; "": the record is known, but nothing of it is held
	TopicSI fragment.Ref `json:",omitempty"`
	Later   bool         `json:",omitempty"` // what is held is of a later version, whose entry was not there yet
	Named   bool         `json:",omitempty"` // the server states that the record is about that topic
}

// maxRecordID is the length in bytes of the longest id of a record: it is part of a key.
const maxRecordID = 8 << 10

func heldKey(s keys.Source, id string) ([]byte, error) {
	if len(id) > maxRecordID {
		return nil, fmt.Errorf("the id of a record has more than %d bytes: %.80q…", maxRecordID, id)
	}
	return append(s.Key(keys.TableHeld), id...), nil
}

func held(t *txn.Tx, source keys.Source, id string) (*Held, error) {
	key, err := heldKey(source, id)
	if err != nil {
		return nil, err
	}
	var h Held
	ok, err := t.GetJSON(key, &h)
	if !ok || err != nil {
		return nil, err
	}
	return &h, nil
}

// Held returns the state of a record, nil if it is unknown.
func (a *Applying) Held(id string) (*Held, error) {
	return held(a.tx, a.subscription.Source(a.Progress), id)
}

// Describing returns the id of the record that describes a topic, "" if none does.
func (a *Applying) Describing(topicSI fragment.Ref) (string, error) {
	b, err := a.tx.Get(a.subscription.Source(a.Progress).LocatorKey(keys.TableDescribed, topicSI))
	return string(b), err
}

// Hold replaces the state of a record.
func (a *Applying) Hold(h Held) error {
	if err := a.LetGo(h.ID); err != nil {
		return err
	}
	return h.rows(a.subscription.Source(a.Progress), a.tx.Put)
}

// rows writes the rows of a record's state.
func (h *Held) rows(source keys.Source, put func(key, value []byte) error) error {
	key, err := heldKey(source, h.ID)
	if err != nil {
		return err
	}
	if h.TopicSI != "" {
		if err := put(source.LocatorKey(keys.TableDescribed, h.TopicSI), []byte(h.ID)); err != nil {
			return err
		}
	}
	value, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return put(key, value)
}

// LetGo forgets a record.
func (a *Applying) LetGo(id string) error {
	h, err := a.Held(id)
	if h == nil || err != nil {
		return err
	}
	source := a.subscription.Source(a.Progress)
	key, err := heldKey(source, id)
	if err != nil {
		return err
	}
	if h.TopicSI != "" {
		by, err := a.Describing(h.TopicSI)
		if err != nil {
			return err
		}
		if by == id {
			if err := a.tx.Delete(source.LocatorKey(keys.TableDescribed, h.TopicSI)); err != nil {
				return err
			}
		}
	}
	return a.tx.Delete(key)
}

// HeldRecords calls f with the states of the records of a subscription: of those with the given ids, or of all if ids
// is nil. It reads the generation to which changes are applied. It ends if f fails.
func (st *Store) HeldRecords(ctx context.Context, name string, ids []string, f func(Held) error) error {
	return st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		p := s.Applied()
		if p == nil {
			return nil
		}
		source := s.Source(p)
		for _, id := range ids {
			h, err := held(t, source, id)
			if err == nil && h != nil {
				err = f(*h)
			}
			if err != nil {
				return err
			}
		}
		if ids != nil {
			return nil
		}
		return seq.Each(txn.Values[Held](t.ScanInPlace(source.Key(keys.TableHeld), nil)), f)
	}))
}

// Applied returns the generation to which changes are applied: the staged one if there is one; nil if there is none at
// all.
func (s *Subscription) Applied() *Progress {
	if s.Staging != nil {
		return s.Staging
	}
	return s.State
}

// CountTopics returns the number of topics of a subscription whose TopicSI begins with prefix, in the visible
// generation. It reads as many keys.
func (st *Store) CountTopics(ctx context.Context, name, prefix string) (n int, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		if s.State == nil {
			return nil
		}
		for _, err := range t.ScanInPlace(s.Source(s.State).LocatorKey(keys.TableTopic, fragment.Ref(prefix)), nil) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	return n, err
}
