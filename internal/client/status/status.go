// Package status describes the state of subscriptions from the data of the store.
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
	"github.com/tmshare/tmshare/internal/store/sources"
)

// Status is the state of a subscription, for people and programs.
type Status struct {
	Name string `json:"name"`
	Feed string `json:"feed"` // that was followed last
	// Addresses are the addresses of the source, the authority first; none: only the feed.
	Addresses []string   `json:"addresses,omitempty"`
	Replica   bool       `json:"replica,omitempty"` // the source is served on, under the same name
	Protocol  string     `json:"protocol"`
	Missing   string     `json:"missing,omitempty"` // what this program lacks to follow the source
	SP        string     `json:"sourceLocatorPrefix"`
	State     State      `json:"state"`
	Mark      *time.Time `json:"mark,omitempty"` // the server's time
	// Ahead is the number of seconds by which the mark is ahead of the local clock, if that exceeds normal differences.
	// Changes that the server dates before the mark until then are not noticed.
	Ahead   float64 `json:"markAheadSeconds,omitempty"`
	Applied int     `json:"applied"` // since the clean start

	// InStep is a time at which nothing was known to be missing: that of the last round, or, if that has failed, of the
	// last good one or the last proof; but not later than the time of the first change in quarantine.
	InStep *time.Time `json:"inStep,omitempty"`
	// Lag is the time since then, in seconds: the copy is not older than that.
	Lag *float64 `json:"lagSeconds,omitempty"`

	// Proven is the time when the state digest was last equal to the source's. Unproven is the reason why it is not
	// proven. Both are missing if the source states none.
	Proven   *time.Time `json:"proven,omitempty"`
	Unproven string     `json:"unproven,omitempty"`
	// Differs states an unintended difference from the source's digest.
	Differs bool `json:"differs,omitempty"`

	// Key is the public key that must sign the checkpoints of the source. Signed is the number of the log's entries in
	// the last accepted one.
	Key    string `json:"key,omitempty"`
	Signed int64  `json:"signedEntries,omitempty"`

	// Unmatched are the names in the filter of the subscription that the source has not, as text.
	Unmatched string `json:"unmatched,omitempty"`

	// DerivedFrom are the URLs of the fragments feeds that the source is derived from, by its word.
	DerivedFrom []string `json:"derivedFrom,omitempty"`

	// Doubt is an unconfirmed loss in a reading of the source. The copy is unchanged.
	Doubt *follow.Doubt `json:"doubt,omitempty"`

	LastCheck   *time.Time `json:"lastCheck,omitempty"`
	LastChange  *time.Time `json:"lastChange,omitempty"`
	LastError   string     `json:"lastError,omitempty"`
	LastErrorAt *time.Time `json:"lastErrorAt,omitempty"`
	// Unidentified is the number of topics without a subject identifier and subject locator in the source. Their
	// identifiers begin with fragment.UnidentifiedPrefix.
	Unidentified int `json:"unidentified,omitempty"`

	// Rejected is the number of rejected claims of the source, RejectedUnstated that of those it no longer states.
	Rejected         int `json:"rejected,omitempty"`
	RejectedUnstated int `json:"rejectedUnstated,omitempty"`

	Quarantined int                 `json:"quarantined"`
	Quarantine  []store.Quarantined `json:"quarantine,omitempty"`

	// Waiting is the number of records of the source that wait for others.
	Waiting int `json:"waiting,omitempty"`

	Dependents []store.Dependent `json:"dependents,omitempty"`

	// Refused states that the last round failed because the signed log of the source does not continue the accepted
	// one.
	Refused bool `json:"checkpointRefused,omitempty"`
	// Moves is the command that follows a source that has moved permanently, if the move was not accepted yet.
	Moves string `json:"moves,omitempty"`
	// History has the results of the last day's rounds on request; the oldest first.
	History []sources.Sample `json:"history,omitempty"`

	*Asked // nil: the reader may not see it
}

// Asked holds the options of the subscription, as given to "subscribe". Paths are on the machine of the data folder.
// Proofs are of the whole source, even with a filter.
type Asked struct {
	Snapshots string `json:"snapshots,omitempty"` // the feed of them
	store.Asked
}

// State is a short description of a subscription's state.
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

// Describe returns the status of s at the time now.
func Describe(s *store.Subscription, quarantine []store.Quarantined, now time.Time) Status {
	st := Status{
		Name: s.Name, Feed: s.FragmentsFeed, Protocol: client.ProtocolOf(s), SP: s.SP, State: NotLoaded,
		LastCheck: known(s.LastCheck), LastChange: known(s.LastChange), LastError: s.LastError,
		Quarantined: len(quarantine), Quarantine: quarantine, Key: s.Key, DerivedFrom: s.DerivedFrom,
	}
	st.Replica = s.Replica
	if len(s.Addresses) > 0 {
		st.Addresses = s.Feeds()
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
		if json.Unmarshal(s.State.Records, &mark) == nil { // a round reports unreadable data
			st.Waiting = mark.Waiting
		}
		if st.InStep = known(s.LastInStep(quarantine)); st.InStep != nil {
			seconds := max(0, now.Sub(*st.InStep).Seconds())
			st.Lag = &seconds
		}
	}
	return st
}

// maxAhead is the tolerated difference between the clocks of two computers.
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

// Named returns the status of the subscriptions with the given names, or of all if none is given.
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
