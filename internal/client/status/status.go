// Package status says how subscriptions are, as far as the store knows.
package status

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// Status is what is known of a subscription, for people and programs.
type Status struct {
	Name string `json:"name"`
	Feed string `json:"feed"` // that was followed last
	// Addresses are where the source can be read, the authority first; none: at the feed alone.
	Addresses []string   `json:"addresses,omitempty"`
	Replica   bool       `json:"replica,omitempty"` // the source is served on, under the same name
	Protocol  string     `json:"protocol"`
	Missing   string     `json:"missing,omitempty"` // what this program lacks to follow the source
	SP        string     `json:"sourceLocatorPrefix"`
	State     State      `json:"state"`
	Mark      *time.Time `json:"mark,omitempty"` // the server's time
	// Ahead is how many seconds the mark is ahead of the clock here, where that is more than
	// clocks differ. What the server dates before the mark by then is not noticed.
	Ahead   float64 `json:"markAheadSeconds,omitempty"`
	Applied int     `json:"applied"` // since the clean start

	// InStep is a time at which nothing was known to be missing: that of the last
	// round, or, if that has failed, of the last good one or the last proof; but not
	// later than when the first of what is in quarantine was published.
	InStep *time.Time `json:"inStep,omitempty"`
	// Lag is the time since then, in seconds: the copy is not older than that.
	Lag *float64 `json:"lagSeconds,omitempty"`

	// Proven is when the state digest was last found to be the one that the source states. Unproven says why it is
	// not known to be. Both are missing where the source states none.
	Proven   *time.Time `json:"proven,omitempty"`
	Unproven string     `json:"unproven,omitempty"`
	// what is held is not what the source states, and nobody has wished that so
	Differs bool `json:"differs,omitempty"`

	// Key is the public key that has to sign the checkpoints of the source. Signed is how many entries the log has by
	// the last one that was accepted.
	Key    string `json:"key,omitempty"`
	Signed int64  `json:"signedEntries,omitempty"`

	// DerivedFrom are the URLs of the fragments feeds that the source is derived from, by its word.
	DerivedFrom []string `json:"derivedFrom,omitempty"`

	// Doubt says that a reading of the source would take something away, and is not confirmed. The copy stays as it is.
	Doubt *follow.Doubt `json:"doubt,omitempty"`

	LastCheck   *time.Time `json:"lastCheck,omitempty"`
	LastChange  *time.Time `json:"lastChange,omitempty"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
	// Unidentified is how many topics the source gives neither a subject identifier nor a
	// subject locator. They have identifiers that begin with fragment.UnidentifiedPrefix.
	Unidentified int `json:"unidentified,omitempty"`

	// Rejected is how many claims of the source are rejected, RejectedUnstated how many of these it no longer asserts.
	Rejected         int `json:"rejected,omitempty"`
	RejectedUnstated int `json:"rejectedUnstated,omitempty"`

	Quarantined int                 `json:"quarantined"`
	Quarantine  []store.Quarantined `json:"quarantine,omitempty"`

	// Waiting is how many records of the source wait for others of it.
	Waiting int `json:"waiting,omitempty"`

	Dependents []store.Dependent `json:"dependents,omitempty"`

	// Refused says that the last round failed because the signed log of the source does not go on from what was
	// accepted of it.
	Refused bool `json:"checkpointRefused,omitempty"`
	// Moves is the command that follows a source that has moved for good, where nobody has accepted that.
	Moves string `json:"moves,omitempty"`
	// History is what the rounds of the last day were like, where that is asked for; the oldest first.
	History []store.Sample `json:"history,omitempty"`

	*Asked // nil: the reader may not see it
}

// Asked holds the options of the subscription, as given to "subscribe". Paths are those of the machine of the data
// folder. What is proven is the whole, also where there is a filter.
type Asked struct {
	Snapshots string `json:"snapshots,omitempty"` // the feed of them
	store.Asked
}

// State says in a few words how a subscription is.
type State string

// The states.
const (
	NotLoaded    State = "not loaded yet"
	BeingLoaded  State = "being loaded"
	InStep       State = "in step"
	Incomplete   State = "in step, but for what is in quarantine"
	BeingChanged State = "being replaced"
	RoundFailed  State = "last round failed"
	InDoubt      State = "in doubt"

	ProtocolMissing State = "needs an extension"
)

// Describe says what s is like at the time now.
func Describe(s *store.Subscription, quarantine []store.Quarantined, now time.Time) Status {
	st := Status{
		Name: s.Name, Feed: s.FragmentsFeed, Protocol: client.ProtocolOf(s), SP: s.SP, State: NotLoaded,
		LastCheck: known(s.LastCheck), LastChange: known(s.LastChange), LastError: s.LastError,
		Quarantined: len(quarantine), Quarantine: quarantine, Key: s.Key, DerivedFrom: s.DerivedFrom,
	}
	st.Replica = s.Replica
	for _, a := range s.Addresses {
		st.Addresses = append(st.Addresses, a.FragmentsFeed)
	}
	if c, err := checkpoint.Open(s.Checkpoint, s.Key); err == nil {
		st.Signed = c.Size
	}
	if st.Doubt = client.DoubtOf(s); st.Doubt != nil && s.LastError == st.Doubt.String() {
		st.LastError = "" // it is no other one
	}
	if st.LastError != "" {
		st.LastErrorAt = known(s.LastErrorAt)
		st.Refused = strings.HasPrefix(s.LastError, client.CheckpointRefused)
		_, st.Moves, _ = strings.Cut(s.LastError, client.MovedForGood)
	}
	switch {
	case s.Staging != nil && s.State == nil:
		st.State = BeingLoaded
	case s.State == nil:
	case st.Doubt != nil:
		st.State = InDoubt
	case s.LastError != "":
		st.State = RoundFailed
	case s.Staging != nil:
		st.State = BeingChanged
	case len(quarantine) > 0:
		st.State = Incomplete
	default:
		st.State = InStep
	}
	if s.State != nil {
		st.Mark, st.Applied = known(s.State.Mark.Updated), s.State.Applied
		if p := s.State.Proof; p != nil && p.Equal {
			st.Proven = known(p.At)
		} else if p != nil {
			st.Unproven, st.Differs = p.Reason, p.Differs && !s.State.NoRepair
		}
		if ahead := s.State.Mark.Updated.Sub(now); ahead > maxAhead {
			st.Ahead = ahead.Seconds()
		}
		var mark follow.Mark
		if json.Unmarshal(s.State.Records, &mark) == nil { // what a round cannot read is its error
			st.Waiting = mark.Waiting
		}
		if st.InStep = known(s.LastInStep(quarantine)); st.InStep != nil {
			seconds := max(0, now.Sub(*st.InStep).Seconds())
			st.Lag = &seconds
		}
	}
	return st
}

// maxAhead is how far the clocks of two computers may differ.
const maxAhead = 5 * time.Minute

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// AddHistory adds the history of the last day to subscriptions.
func AddHistory(ctx context.Context, db *store.DB, list []Status) (err error) {
	for i := range list {
		if list[i].History, err = db.Samples(ctx, list[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// Named returns the status of those subscriptions that have one of the names, or of all where none is given.
func Named(ctx context.Context, db *store.DB, now time.Time, names ...string) ([]Status, error) {
	all, err := db.Subscriptions(ctx)
	if err != nil {
		return nil, err
	}
	dependents, err := db.Dependents(ctx)
	if err != nil {
		return nil, err
	}
	list := []Status{}
	for i := range all {
		if len(names) > 0 && !slices.Contains(names, all[i].Name) {
			continue
		}
		quarantine, err := db.Quarantine(ctx, all[i].Name)
		if err != nil {
			return nil, err
		}
		st := Describe(&all[i], quarantine, now)
		if !db.Follows(all[i].Protocol) {
			st.State = ProtocolMissing
			st.Missing = "needs an extension with the protocol " + st.Protocol + ", which this program does not have"
		}
		if st.Unidentified, err = db.CountTopics(ctx, st.Name, fragment.UnidentifiedPrefix); err != nil {
			return nil, err
		}
		rejected, err := db.Rejections(ctx, st.Name)
		if err != nil {
			return nil, err
		}
		st.Rejected = len(rejected)
		st.Dependents = slices.DeleteFunc(slices.Clone(dependents), func(d store.Dependent) bool {
			return d.Of != st.Name
		})
		for i := range rejected {
			if !rejected[i].Stated {
				st.RejectedUnstated++
			}
		}
		list = append(list, st)
	}
	return list, nil
}
