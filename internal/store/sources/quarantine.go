package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/store/consumers"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// Quarantined is an entry of a feed that could not be applied, though the mark is after it. Its change is missing until
// the entry, or a later one of its topic, is applied.
type Quarantined struct {
	TopicSI string   `json:"topicSI"`           // the id of the record in a source of records
	Names   []string `json:"names,omitempty"`   // subject identifiers of the topic
	Located []string `json:"located,omitempty"` // subject locators of the topic
	Entry   string   `json:"entry"`             // its id
	Title   string   `json:"title,omitempty"`
	State   string   `json:"state,omitempty"`
	Link    string   `json:"link,omitempty"`    // to the fragment
	SDShare bool     `json:"sdshare,omitempty"` // the entry is one of SDShare only

	// Document is the URL of the feed document in which the entry was found last.
	Document string `json:"document,omitempty"`

	// Forms are all forms of a record, as its source states them.
	Forms json.RawMessage `json:"forms,omitempty"`

	Updated time.Time `json:"updated"` // the server's time, that of the entry
	First   time.Time `json:"first"`   // by this node's clock, as is Last: the first failure
	Last    time.Time `json:"last"`
	Tries   int       `json:"tries"` // rounds in which it failed
	Error   string    `json:"error"`

	// Looked is the time at which Document was last read for the entry; zero: never.
	Looked time.Time `json:"looked,omitzero"`
}

// Same reports whether both have the same entry.
func (q Quarantined) Same(other Quarantined) bool {
	return q.Entry == other.Entry && q.Updated.Equal(other.Updated)
}

// Applying is a transaction on the source of a subscription: its records, its progress and its quarantine. It is not
// safe for concurrent use.
type Applying struct {
	merge.State
	*Progress
	tx           *txn.Tx
	subscription *Subscription
	st           *Store

	remembered bool     // changes are remembered for collections that are derived from the source
	via        []string // topics, each followed by the URL of its fragment

	// Entries are the entries of the log of the source that the mark moves over.
	Entries []Logged
}

// From notes the URL of the fragment by which a topic is changed.
func (a *Applying) From(topicSI, url string) {
	if a.remembered {
		a.via = append(a.via, topicSI, url)
	}
}

// Subscription returns the subscription of the source.
func (a *Applying) Subscription() *Subscription { return a.subscription }

func (a *Applying) quarantineKey(topicSI string) []byte {
	return append(a.subscription.Source(a.Progress).Key(keys.TableQuarantine), topicSI...)
}

// Quarantine puts an entry into quarantine, in the place of another one of the same topic. If the same entry is there,
// its number of tries grows by one.
func (a *Applying) Quarantine(q Quarantined) error {
	var before Quarantined
	ok, err := a.tx.GetJSON(a.quarantineKey(q.TopicSI), &before)
	if err != nil {
		return err
	}
	now := a.st.now().UTC()
	q.First, q.Last, q.Tries = now, now, 1
	if ok && before.Same(q) {
		q.First, q.Tries = before.First, before.Tries+1
		if q.Looked.IsZero() {
			q.Looked = before.Looked
		}
	}
	return a.tx.PutJSON(a.quarantineKey(q.TopicSI), q)
}

// Release removes the entry of a topic from quarantine, unless it is later than the time. It reports whether it has
// removed one.
func (a *Applying) Release(topicSI string, updated time.Time) (bool, error) {
	var q Quarantined
	ok, err := a.tx.GetJSON(a.quarantineKey(topicSI), &q)
	if !ok || err != nil || q.Updated.After(updated) {
		return false, err
	}
	return true, a.tx.Delete(a.quarantineKey(topicSI))
}

// A covered entry need not be applied, because other entries of its commit have its changes. These are missing if one
// of those is in quarantine, or was superseded by one in quarantine. So a skipped entry is owed: it is applied at the
// end of a round, unless the quarantine is empty then.

// Owe notes that a covered entry was passed over.
func (a *Applying) Owe(q Quarantined) error { return a.tx.PutJSON(a.owedKey(q.TopicSI), q) }

// Pay notes that an entry of a topic was applied, or is in quarantine: no earlier one is owed any more.
func (a *Applying) Pay(topicSI string) error { return a.tx.Delete(a.owedKey(topicSI)) }

// Owed returns the entries that are owed.
func (a *Applying) Owed() ([]Quarantined, error) {
	return txn.List[Quarantined](a.tx, a.subscription.Source(a.Progress).Key(keys.TableOwed), nil)
}

// Quarantined returns the entries in quarantine.
func (a *Applying) Quarantined() ([]Quarantined, error) {
	return quarantined(a.tx, a.subscription.Source(a.Progress))
}

// moveQuarantine moves the URLs of entries in quarantine, and of owed ones, from a former feed to the present one.
// Documents that are not below a former feed are replaced by the feed itself.
func moveQuarantine(t *txn.Tx, s *Subscription, before []string) error {
	to := func(url string) (string, bool) {
		for _, from := range before {
			if rest, below := strings.CutPrefix(url, from); below {
				return s.FragmentsFeed + rest, true
			}
		}
		return url, false
	}
	for _, p := range s.progress() {
		for _, table := range []byte{keys.TableQuarantine, keys.TableOwed} {
			all, err := txn.List[Quarantined](t, s.Source(p).Key(table), nil)
			for _, q := range all {
				var below bool
				q.Link, _ = to(q.Link)
				if q.Document, below = to(q.Document); !below {
					q.Document = s.FragmentsFeed
				}
				err = errors.Join(err, t.PutJSON(append(s.Source(p).Key(table), q.TopicSI...), q))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Applying) owedKey(topicSI string) []byte {
	return append(a.subscription.Source(a.Progress).Key(keys.TableOwed), topicSI...)
}

func quarantined(t *txn.Tx, id keys.Source) ([]Quarantined, error) {
	return txn.List[Quarantined](t, id.Key(keys.TableQuarantine), nil)
}

// Quarantine returns the entries in quarantine of a subscription, by topic: those of the generation that readers see,
// or of the first one while it is loaded.
func (st *Store) Quarantine(ctx context.Context, name string) ([]Quarantined, error) {
	return st.quarantineOf(ctx, name, func(s *Subscription) *Progress { return cmp.Or(s.State, s.Staging) })
}

// QuarantineOf is [Store.Quarantine] of one generation: a staged one has its own.
func (st *Store) QuarantineOf(ctx context.Context, name string, generation uint32) ([]Quarantined, error) {
	return st.quarantineOf(ctx, name, func(s *Subscription) *Progress {
		for _, p := range s.progress() {
			if p.Generation == generation {
				return p
			}
		}
		return nil
	})
}

func (st *Store) quarantineOf(ctx context.Context, name string,
	generation func(*Subscription) *Progress) (all []Quarantined, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		if p := generation(s); p != nil {
			all, err = quarantined(t, s.Source(p))
		}
		return err
	}))
	return all, err
}

// Missing returns the entries in quarantine, and those owed, of the generation to which changes are applied.
func (st *Store) Missing(ctx context.Context, name string) (quarantine, owed []Quarantined, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		if s.Applied() == nil {
			return nil
		}
		a := &Applying{Progress: s.Applied(), tx: t, subscription: s, st: st}
		if quarantine, err = a.Quarantined(); err == nil {
			owed, err = a.Owed()
		}
		return err
	}))
	return quarantine, owed, err
}

// Forget removes the entries of topics, or all if none is named, from quarantine without applying them. It returns the
// removed ones.
func (st *Store) Forget(ctx context.Context, name string, topics ...string) ([]Quarantined, error) {
	var gone []Quarantined
	err := st.rows.Update(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		gone = nil
		named := map[string]bool{}
		for _, topic := range topics {
			named[topic] = true
		}
		for _, p := range s.progress() {
			all, err := quarantined(t, s.Source(p))
			if err != nil {
				return err
			}
			for _, q := range all {
				if len(topics) > 0 && !named[q.TopicSI] {
					continue
				}
				if err := t.Delete(append(s.Source(p).Key(keys.TableQuarantine), q.TopicSI...)); err != nil {
					return err
				}
				gone = append(gone, q)
				p.NoRepair = true
			}
		}
		if len(gone) == 0 {
			return nil
		}
		if err := Put(t, s); err != nil {
			return err
		}
		return st.Note(t, Activity{Source: name, Kind: ActivityForgotten, Entries: entriesOf(gone)})
	}))
	return gone, err
}

func entriesOf(all []Quarantined) []ActivityEntry {
	var out []ActivityEntry
	for _, q := range all {
		out = append(out, ActivityEntry{TopicSI: q.TopicSI, Title: q.Title, State: q.State, Updated: q.Updated})
	}
	return out
}

// RemoveSubscription removes a subscription, with its records and rejections.
func (st *Store) RemoveSubscription(ctx context.Context, name string) error {
	var number uint32
	var after func() error
	err := st.rows.Update(ctx, func(t *txn.Tx) error {
		s, err := Get(t, name)
		if err == nil && s.Replica {
			after, err = st.server.Removed(t, s)
		}
		if err != nil {
			return err
		}
		number = s.Number
		all, err := consumers.All(t)
		for _, c := range all {
			if c.WithSource && c.Source == name {
				err = errors.Join(err, consumers.Delete(t, c.Name))
			}
		}
		return errors.Join(err, records.Unname(t, keys.TableSubscription, name, number),
			st.Note(t, Activity{Source: name, Kind: ActivityUnsubscribed, Note: s.FragmentsFeed}))
	})
	if err != nil {
		return err
	}
	return errors.Join(then(after), st.dropAfter(ctx, func() error {
		return records.DeleteSpace(ctx, st.rows.Engine, number)
	}))
}

func then(after func() error) error {
	if after == nil {
		return nil
	}
	return after()
}
