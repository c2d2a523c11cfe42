package sources

import (
	"context"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Sample summarizes the rounds of a subscription that ended within [SampleTime]. Times are by this node's clock.
type Sample struct {
	From        time.Time `json:"from"` // when the period began
	Last        time.Time `json:"last"` // when the last of the rounds ended
	Rounds      int       `json:"rounds"`
	Failed      int       `json:"failed,omitempty"`
	Applied     int       `json:"applied,omitempty"` // entries that moved the mark
	Quarantined int       `json:"quarantined,omitempty"`
	// Lag is the maximum time in seconds, at the end of a round, since nothing was known to be missing; nil: nothing is
	// held yet.
	Lag *float64 `json:"lagSeconds,omitempty"`
	// Proven is the time when the copy was last found to have the source's state digest. Unproven is the reason why it
	// is not proven.
	Proven   *time.Time `json:"proven,omitempty"`
	Unproven bool       `json:"unproven,omitempty"`
}

// RoundEnd is how the last round of a subscription has left it.
type RoundEnd struct {
	InStep     time.Time // nothing was known to be missing then
	Generation uint32
	Applied    int
}

// SampleTime is the length of the period of a sample, and MaxSamples the number of samples kept of a subscription:
// those of a day.
const (
	SampleTime = 5 * time.Minute
	MaxSamples = 288
)

func sampleKey(s *Subscription, from time.Time) []byte {
	return keys.Own(s.Number).Numbered(keys.TableSample, uint64(from.Unix()/int64(SampleTime.Seconds()))%MaxSamples)
}

// ended stores a sample of an ended round, with the change of its end. It reuses the row of the period a day ago, so
// that there are never more than [MaxSamples].
func ended(t *txn.Tx, s *Subscription) error {
	var inQuarantine []Quarantined
	var err error
	if s.State != nil {
		if inQuarantine, err = quarantined(t, s.Source(s.State)); err != nil {
			return err
		}
	}
	now := s.LastCheck.UTC()
	key := sampleKey(s, now)
	sample := readSample(t, key, now.Truncate(SampleTime))
	sample.Last, sample.Quarantined = now, len(inQuarantine)
	sample.Rounds++
	if s.LastError != "" {
		sample.Failed++
	}
	sample.compare(s, inQuarantine)
	sample.Unproven = false
	if s.State != nil && s.State.Proof != nil {
		if at := s.State.Proof.At.UTC(); s.State.Proof.Equal {
			sample.Proven = &at
		} else {
			sample.Unproven = true
		}
	}
	return t.PutJSON(key, sample)
}

// compare adds the changes since the previous round, and stores the base of the next comparison.
func (sample *Sample) compare(s *Subscription, inQuarantine []Quarantined) {
	if s.State == nil {
		return
	}
	at := s.LastInStep(inQuarantine)
	end := RoundEnd{InStep: at, Generation: s.State.Generation, Applied: s.State.Applied}
	before := s.Before
	s.Before = &end
	if before == nil {
		before = &RoundEnd{InStep: at}
	}
	sample.Applied += end.Applied
	if before.Generation == end.Generation {
		sample.Applied -= min(before.Applied, end.Applied)
	}
	if before.InStep.IsZero() {
		return
	}
	lag := max(0, s.LastCheck.Sub(before.InStep).Seconds())
	if sample.Lag != nil {
		lag = max(lag, *sample.Lag)
	}
	sample.Lag = &lag
}

// readSample returns the present sample of a period. It ignores unreadable data, because its loss must not fail a
// round.
func readSample(t *txn.Tx, key []byte, from time.Time) Sample {
	var was Sample
	if ok, err := t.GetJSON(key, &was); !ok || err != nil || !was.From.Equal(from) {
		return Sample{From: from}
	}
	return was
}

// Samples returns the samples of the last day of a subscription, the oldest first. Periods without the end of a round
// have none.
func (st *Store) Samples(ctx context.Context, name string) (all []Sample, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		all = nil
		oldest := st.now().Add(-MaxSamples * SampleTime)
		for r, err := range t.ScanInPlace(keys.Own(s.Number).Key(keys.TableSample), nil) {
			if err != nil {
				return err
			}
			var sample Sample
			if txn.Decode(r, &sample) == nil && sample.Last.After(oldest) {
				all = append(all, sample)
			}
		}
		slices.SortFunc(all, func(a, b Sample) int { return a.From.Compare(b.From) })
		return nil
	}))
	return all, err
}

// LastInStep returns a time at which nothing was known to be missing: the latest of the last good round, the last
// proof, and the mark. It is not later than the time of the first change in quarantine. It is zero while nothing is
// held.
func (s *Subscription) LastInStep(quarantine []Quarantined) (at time.Time) {
	if s.State == nil {
		return time.Time{}
	}
	if at = s.LastCheck; s.LastError != "" {
		at = s.State.Mark.Updated
		if p := s.State.Proof; p != nil && p.Equal && p.At.After(at) {
			at = p.At
		}
		if b := s.Before; b != nil && b.Generation == s.State.Generation && b.InStep.After(at) {
			at = b.InStep
		}
	} else if !s.AsOf.IsZero() && s.AsOf.Before(at) { // a cache may have answered since
		at = s.AsOf
	}
	if at.IsZero() {
		return at
	}
	// What a replica has is as old as its own last round, by the clock of the origin.
	if c := s.Checked; s.FragmentsFeed != s.Authority() && !c.IsZero() && c.Before(at) {
		at = c
	}
	for i := range quarantine {
		if q := quarantine[i].Updated; q.Before(at) {
			at = q
		}
	}
	return at
}
