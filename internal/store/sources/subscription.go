package sources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
)

// Subscription is a source that follows a collection of another server.
type Subscription struct {
	Name          string
	FragmentsFeed string // URL
	SnapshotsFeed string // URL, "" if the server has none
	SP            string // source locator prefix, pinned when subscribing
	OwnSP         bool   // the feed declares no SP; this one was chosen for it
	FeedID        string // of the fragments feed; a new one is a new history

	// Protocol is the protocol of the source: "" for a fragments feed. FragmentsFeed is the URL in every protocol.
	Protocol Protocol `json:",omitempty"`

	Asked

	// Key is the public key that must sign the checkpoints of the source, "" for none. Checkpoint is the last accepted
	// checkpoint, as a signed note.
	Key, Checkpoint string `json:",omitempty"`

	// DerivedFrom are the URLs of the fragments feeds from which the source states to be derived; none: it is primary.
	DerivedFrom []string `json:",omitempty"`

	// Duplicates are the URLs of the same feed on other servers, as the source states them to a new subscriber. They are
	// not stored.
	Duplicates []string `json:"-"`
	// Addresses are the servers of the source: its authority first, then replicas. The feeds above are those of the
	// address that was used last, which is the only one where Addresses is empty.
	Addresses []Address `json:",omitempty"`
	// Checked is a time by the clock of the origin, up to which the copy has all that the source had published. It never
	// goes back, even if that clock does: the older of two states of a replica never has the later time.
	Checked time.Time
	// Openings are the last openings of the origin's database, the newest first, as of Checked.
	Openings []string `json:",omitempty"`
	// Language is the language of the source: the one that its feed has stated last, or else that of most names. "" means
	// none; nil means that it is not known yet.
	Language *string `json:",omitempty"`
	// Memory holds facts about earlier readings of the source (package follow).
	Memory json.RawMessage `json:",omitempty"`
	// Anew counts the changes of the whole source without a commit that readers can follow: by rejections, and by mending.
	Anew uint64 `json:",omitempty"`
	// Replica states that a collection of the same name serves the source on.
	Replica bool `json:",omitempty"`

	// Ext are the settings of extensions. A program keeps those of extensions that it does not have as they are.
	Ext map[string]json.RawMessage `json:",omitempty"`

	// State is the generation that readers see; nil until the first clean start is done.
	State *Progress `json:",omitempty"`
	// Staging is a clean start or replacement under way: it becomes State when
	// it has caught up.
	Staging *Progress `json:",omitempty"`

	ETag        string    // of the fragments feed's recent document at the last round
	LastCheck   time.Time // by this node's clock, as is LastChange
	LastChange  time.Time
	LastError   string `json:",omitempty"`
	LastErrorAt time.Time
	// AsOf is a time by this node's clock, as of which the source has stated its data; zero: it states none.
	AsOf time.Time `json:",omitzero"`
	// Before is the end of the last round, with which the next sample is compared.
	Before *RoundEnd `json:",omitempty"`

	Number uint32
}

// Asked holds the options of a subscription that people set. Earlier rows have the names in upper case.
type Asked struct {
	Format    string `json:"format,omitempty"`    // the only format to ask for; "": the best one offered
	TokenFile string `json:"tokenFile,omitempty"` // path of the file with the token for reading, read in each round
	// CACert is the path of a file of certificate authorities to trust, besides those of the machine.
	CACert string   `json:"caCert,omitempty"`
	Hosts  []string `json:"hosts,omitempty"` // allowed in links besides that of the feed ("host" or "host:port")
	// AcceptMoves makes the client follow a permanent redirect to a new address, if the log there goes on from the
	// mark.
	AcceptMoves bool  `json:"acceptMoves,omitempty"`
	Strict      *bool `json:"strict,omitempty"` // whether XTM is read strictly; nil: by the program's option
	// Filter is the filter of an extension, which selects what the merged view shows of the source; nil: all.
	Filter json.RawMessage `json:"filter,omitempty"`
}

// Protocol is a protocol to follow a source.
type Protocol string

// TMShare is the protocol of fragments feeds, in any dialect. The other protocols read sources of records.
const TMShare Protocol = ""

// Progress is the progress of a generation of a source.
type Progress struct {
	Generation uint32
	Revision   uint64 `json:",omitempty"` // the number of changes by rounds
	// Commits counts the commits whose changes of records are stored, for collections that are derived from the source.
	// Those up to the number Forgotten were removed.
	Commits, Forgotten uint64 `json:",omitempty"`
	Snapshot           bool   `json:",omitempty"` // it began with a snapshot
	Mark               Mark
	RDF                bool `json:",omitempty"` // the last entry is offered in RDF, too
	Applied            int  // entries applied since the clean start
	// of a staged generation: the log of the replica has the entries up to the mark
	Log     bool            `json:",omitempty"`
	Records json.RawMessage `json:",omitempty"` // the position in a source of records, in a form of its protocol

	// Proof is the result of the last comparison of state digests, nil where there was none.
	Proof *Proof `json:",omitempty"`
	// NoRepair states that differences from the source are not repaired, because topics were forgotten.
	NoRepair bool `json:",omitempty"`
	// RepairFailed states that a clean replacement still differed from the digest of the source.
	RepairFailed bool `json:",omitempty"`
}

// Mark is the point in a feed up to which everything is applied. Times are the
// server's.
type Mark struct {
	Updated time.Time
	// Handled are the ids of the entries at Updated that are applied. It is
	// empty right after a snapshot, whose last change need not be in the feed.
	Handled []string `json:",omitempty"`
	// Unsettled are handled entries whose topics may have changed again at Updated, in a change that the feed shows as the
	// same entry. It maps their ids to the digests of what was read. They are read again.
	Unsettled map[string]string `json:",omitempty"`
	// Relied is the id and time of a later entry, "" if none. If the next reading of the feed has it, it also has the
	// entries that superseded those passed over.
	Relied string `json:",omitempty"`
	// Digest is the state digest that the source states for the mark, "" where it states none.
	Digest string `json:",omitempty"`

	RDF bool `json:"-"` // of a staged snapshot: see Progress
}

// Languages returns the languages of the source's titles.
func (s *Subscription) Languages() titles.Languages {
	if s.Language == nil {
		return nil
	}
	return titles.Accepted(*s.Language)
}

// Source returns the key of the generation with a progress.
func (s *Subscription) Source(p *Progress) keys.Source {
	return keys.Source{Number: s.Number, Generation: p.Generation}
}

// Get returns the subscription with a name. The error is txn.ErrNotFound if there is none.
func Get(t *txn.Tx, name string) (*Subscription, error) {
	found, err := records.Find(t, keys.TableSubscription, name)
	if err == nil && found.Row == nil {
		err = fmt.Errorf("%w: subscription %q", txn.ErrNotFound, name)
	}
	if err != nil {
		return &Subscription{}, err
	}
	return Decode(&found)
}

// Decode returns the subscription of a row.
func Decode(found *records.Named) (*Subscription, error) {
	var s Subscription
	return &s, found.Decode(keys.TableSubscription, &s, func() string { return s.Name })
}

// Put writes the row of a subscription.
func Put(t *txn.Tx, s *Subscription) error {
	return records.PutNamed(t, keys.TableSubscription, s.Name, s.Number, s)
}

// All returns all subscriptions by name, up to the first that cannot be read.
func All(t *txn.Tx) ([]Subscription, error) { return records.ListAs(t, keys.TableSubscription, Decode) }

// Subscriptions returns all subscriptions by name.
func (st *Store) Subscriptions(ctx context.Context) (all []Subscription, err error) {
	err = st.rows.View(ctx, func(t *txn.Tx) (err error) { all, err = All(t); return err })
	return all, err
}

// Subscription returns the subscription with a name. The error is txn.ErrNotFound if there is none.
func (st *Store) Subscription(ctx context.Context, name string) (s *Subscription, err error) {
	err = st.rows.View(ctx, func(t *txn.Tx) (err error) { s, err = Get(t, name); return err })
	return s, err
}

// AddSubscription adds a subscription. A name that is taken is txn.ErrExists.
func (st *Store) AddSubscription(ctx context.Context, s Subscription) error {
	var err error
	if s.Number, err = records.NextNumber(ctx, st.rows, nil); err != nil {
		return err
	}
	return st.rows.Update(ctx, func(t *txn.Tx) error {
		if b, err := t.Get(keys.Name(keys.TableSubscription, s.Name)); b != nil || err != nil {
			if err == nil {
				err = fmt.Errorf("%w: subscription %q", txn.ErrExists, s.Name)
			}
			return err
		}
		if err := Put(t, &s); err != nil {
			return err
		}
		return st.Note(t, Activity{Source: s.Name, Kind: ActivitySubscribed, Note: s.FragmentsFeed})
	})
}

// MoveSubscription changes the addresses of a subscription. The links of entries in quarantine move along.
func (st *Store) MoveSubscription(ctx context.Context, name string, change func(*Subscription)) error {
	return st.rows.Update(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		from := s.Feeds()
		change(s)
		return errors.Join(Put(t, s), moveQuarantine(t, s, from),
			st.Note(t, Activity{Source: name, Kind: ActivityMoved, Note: s.Authority()}))
	}))
}

// UpdateSubscription changes the row of a subscription. It removes generations that the row names no longer. change may
// be called again after a conflict.
func (st *Store) UpdateSubscription(ctx context.Context, name string, change func(*Subscription)) error {
	var dropped []keys.Source
	err := st.rows.UpdateOf(ctx, sourcesTurn, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		before, checked, pinned, language := s.Generations(), s.LastCheck, s.Checkpoint, s.Languages()
		change(s)
		if s.Replica && s.State != nil && (s.Checkpoint != pinned || !slices.Equal(s.Languages(), language)) {
			if err := st.server.Stated(t, s); err != nil {
				return err
			}
		}
		if !s.LastCheck.Equal(checked) { // a round has ended
			if err := ended(t, s); err != nil {
				return err
			}
		}
		dropped = nil
		kept := map[keys.Source]bool{}
		for _, id := range s.Generations() {
			kept[id] = true
		}
		for _, id := range before {
			if !kept[id] {
				dropped = append(dropped, id)
			}
		}
		return Put(t, s)
	}))
	if err != nil {
		return err
	}
	return st.drop(ctx, dropped)
}

// drop removes generations that nothing names any more.
func (st *Store) drop(ctx context.Context, dropped []keys.Source) error {
	if len(dropped) == 0 {
		return nil
	}
	return st.dropAfter(ctx, func() error {
		for _, id := range dropped {
			if err := records.Delete(ctx, st.rows.Engine, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropAfter calls remove, which removes rows that a commit has made obsolete. Close waits for it.
func (st *Store) dropAfter(ctx context.Context, remove func() error) error {
	return st.rows.View(context.WithoutCancel(ctx), func(*txn.Tx) error { return remove() })
}

// Generations returns the generations of the subscription: two at most.
func (s *Subscription) Generations() []keys.Source {
	var ids []keys.Source
	for _, p := range s.progress() {
		ids = append(ids, s.Source(p))
	}
	return ids
}

// progress returns the progress of each generation.
func (s *Subscription) progress() []*Progress {
	return slices.DeleteFunc([]*Progress{s.State, s.Staging}, func(p *Progress) bool { return p == nil })
}

// Proof is the result of comparing a generation with the state digest of its source.
type Proof struct {
	At    time.Time // of the comparison, by this node's clock
	Equal bool      // the digests were the same
	// Differs states an unintended difference, or a checkpoint without entries that the source shows
	Differs bool   `json:",omitempty"`
	Reason  string `json:",omitempty"` // why the state is not proven, for people
}

// DigestNode returns the node at a path of the tree of the state digest. The tree is that of the generation to which
// changes are applied.
func (st *Store) DigestNode(ctx context.Context, name string, path []byte) (n *statedigest.Node, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		p := s.Applied()
		if p == nil {
			return fmt.Errorf("%w: subscription %q has no state yet", txn.ErrNotFound, name)
		}
		n, err = records.In(t, s.Source(p)).DigestNode(path)
		return err
	}))
	return n, err
}

// sourcesTurn is the name of the turn in which all sources are changed, one at a time: the log of activities of all of
// them is one.
const sourcesTurn = "sources"

// ApplyEntries changes the records of a source and moves its mark, in one commit. Where a generation is staged, it
// changes that one: readers see the state before until a clean replacement ends.
func (st *Store) ApplyEntries(ctx context.Context, name string, f func(*Applying) error) error {
	return st.rows.UpdateOf(ctx, sourcesTurn, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		p := s.Applied()
		if p == nil {
			return fmt.Errorf("%w: subscription %q has no state yet", txn.ErrNotFound, name)
		}
		s.ETag = "" // of a document that may have entries behind the mark: the round sets it at its end
		a := &Applying{State: records.In(t, s.Source(p)), Progress: p, tx: t, subscription: s, st: st}
		if p == s.State && !s.Replica { // the records of a replica are remembered anyway
			if err := a.remember(); err != nil {
				return err
			}
		}
		if err := errors.Join(f(a), a.putVia()); err != nil {
			return err
		}
		if n := len(a.Entries); n > 0 {
			p.RDF = a.Entries[n-1].RDF
		}
		if s.Replica {
			if err := st.server.Logged(ctx, t, a, a.Entries); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return Put(t, s)
	}))
}

// ReadSources calls f with the subscriptions that have a state, and with their records as of one moment. The sources
// are valid until f returns.
func (st *Store) ReadSources(ctx context.Context, f func([]Subscription, []fragment.Source) error) error {
	return st.rows.View(ctx, func(t *txn.Tx) error {
		var subscriptions []Subscription
		var all []fragment.Source
		followed, err := All(t)
		if err != nil {
			return err
		}
		for _, s := range followed {
			if s.State != nil {
				subscriptions = append(subscriptions, s)
				all = append(all, records.In(t, s.Source(s.State)))
			}
		}
		return f(subscriptions, all)
	})
}
