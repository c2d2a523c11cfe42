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

// Quarantined is an entry of a feed that could not be applied: the mark is past
// it, and what it says of its topic is missing until it is applied after all, or
// a later entry for the topic is.
type Quarantined struct {
	TopicSI string   `json:"topicSI"`           // of a source of records: the id of the record
	Names   []string `json:"names,omitempty"`   // of the topic, where that is one
	Located []string `json:"located,omitempty"` // its subject locators, likewise
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
	First   time.Time `json:"first"`   // by this node's clock, as is Last: when it failed
	Last    time.Time `json:"last"`
	Tries   int       `json:"tries"` // rounds in which it failed
	Error   string    `json:"error"`

	// Looked is when Document was last read for the entry, zero where it never was.
	Looked time.Time `json:"looked,omitzero"`
}

// Same reports whether other is of the same entry.
func (q Quarantined) Same(other Quarantined) bool {
	return q.Entry == other.Entry && q.Updated.Equal(other.Updated)
}

// Applying is a change of a subscription's source under way: its records, how
// far it has come, and what is in quarantine. All of it is committed together.
type Applying struct {
	merge.State
	*Progress
	tx           *txn.Tx
	subscription *Subscription
	st           *Store

	remembered bool     // what changes is remembered for those who are derived from the source
	via        []string // topics, each with the entry by which it is changed

	// Entries are the entries of the log of the source that the mark moves over.
	Entries []Logged
}

// From says by which entry of the source a topic is changed: the URL of its fragment.
func (a *Applying) From(topicSI, url string) {
	if a.remembered {
		a.via = append(a.via, topicSI, url)
	}
}

// Subscription returns the subscription whose source is changed.
func (a *Applying) Subscription() *Subscription { return a.subscription }

func (a *Applying) quarantineKey(topicSI string) []byte {
	return append(a.subscription.Source(a.Progress).Key(keys.TableQuarantine), topicSI...)
}

// Quarantine puts an entry into quarantine. It takes the place of another of the
// same topic; one that was there before only counts up.
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

// Release ends the quarantine of a topic by an entry of the given time. A later
// entry stays. It reports whether there was one to release.
func (a *Applying) Release(topicSI string, updated time.Time) (bool, error) {
	var q Quarantined
	ok, err := a.tx.GetJSON(a.quarantineKey(topicSI), &q)
	if !ok || err != nil || q.Updated.After(updated) {
		return false, err
	}
	return true, a.tx.Delete(a.quarantineKey(topicSI))
}

// A covered entry need not be applied, as other entries of its commit have all that is new in it. Where one of these is
// in quarantine, or was superseded by one that is, that is missing. So what is passed over is owed, until a round ends
// with nothing in quarantine; else it is applied at the end.

// Owe notes a covered entry that is passed over.
func (a *Applying) Owe(q Quarantined) error { return a.tx.PutJSON(a.owedKey(q.TopicSI), q) }

// Pay notes that an entry of a topic was applied, or is in quarantine: none before it is owed.
func (a *Applying) Pay(topicSI string) error { return a.tx.Delete(a.owedKey(topicSI)) }

// Owed returns what is owed.
func (a *Applying) Owed() ([]Quarantined, error) {
	return txn.List[Quarantined](a.tx, a.subscription.Source(a.Progress).Key(keys.TableOwed), nil)
}

// Quarantined returns what is in quarantine.
func (a *Applying) Quarantined() ([]Quarantined, error) {
	return quarantined(a.tx, a.subscription.Source(a.Progress))
}

// moveQuarantine has what is in quarantine, or owed, looked for where the source is now: at the same place below its
// feed, from one of the feeds before, or else in the feed itself.
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
				var same bool
				q.Link, _ = to(q.Link)
				if q.Document, same = to(q.Document); !same {
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

// Quarantine returns what is in quarantine of a subscription, by topic: of the
// generation that readers see, or of the first one while that is being loaded.
func (st *Store) Quarantine(ctx context.Context, name string) ([]Quarantined, error) {
	return st.quarantineOf(ctx, name, func(s *Subscription) *Progress { return cmp.Or(s.State, s.Staging) })
}

// QuarantineOf is [Store.Quarantine] of one generation: what is staged has a quarantine of its own.
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

// Missing returns what is in quarantine, and what is owed, of the generation that is followed.
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

// Forget takes topics out of quarantine, or all where none is named, without
// applying their entries. It returns those that were there.
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

// RemoveSubscription removes a subscription, all that its source says, and what is rejected of that.
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
