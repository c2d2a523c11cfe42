package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/merge"
)

// clocked is a store whose clock the test sets, with a loaded subscription.
type clocked struct {
	*DB
	*testing.T
	now time.Time
}

func openClocked(t *testing.T) *clocked {
	c := &clocked{T: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	db, err := Open(t.Context(), Options{Dir: t.TempDir(), Badger: badger.Small, Now: func() time.Time { return c.now }})
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	c.DB = db
	require.NoError(t, db.AddSubscription(t.Context(), Subscription{Name: "egov", FragmentsFeed: "http://egov.example.org/fragments"}))
	return c
}

func (c *clocked) load() {
	c.Helper()
	require.NoError(c, c.StageSource(c.Context(), "egov", fragment.Records(&merge.Memory{}), Mark{Updated: c.now}, nil))
	s, err := c.Subscription(c.Context(), "egov")
	require.NoError(c, err)
	require.NoError(c, c.SwitchSource(c.Context(), "egov", s.Staging.Generation, ""))
}

// round ends a round at the present time.
func (c *clocked) round(applied int, proof *Proof, failed string) {
	c.Helper()
	require.NoError(c, c.UpdateSubscription(c.Context(), "egov", func(s *Subscription) {
		s.LastCheck, s.LastError = c.now, failed
		if s.State != nil {
			s.State.Applied += applied
			s.State.Proof = proof
		}
	}))
}

func (c *clocked) samples() []sources.Sample {
	c.Helper()
	all, err := c.Samples(c.Context(), "egov")
	require.NoError(c, err)
	return all
}

// rows returns the number of rows of samples.
func (c *clocked) rows() (n int) {
	c.Helper()
	require.NoError(c, c.DB.rows.View(c.Context(), func(tx *txn.Tx) error {
		for _, err := range inTables(tx, string(rune(keys.TableSample))) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	}))
	return n
}

func TestSamplesOfRounds(t *testing.T) {
	c := openClocked(t)
	assert.Empty(t, c.samples())
	c.round(0, nil, "the server does not answer")
	assert.Equal(t, []sources.Sample{{From: c.now, Last: c.now, Rounds: 1, Failed: 1}}, c.samples(), "nothing is held yet")

	c.load()
	began := c.now
	c.now = c.now.Add(time.Minute)
	proof := &Proof{At: c.now, Equal: true}
	c.round(3, proof, "")
	c.now = c.now.Add(30 * time.Second)
	c.round(2, proof, "")
	all := c.samples()
	require.Len(t, all, 1, "one of each period")
	assert.Equal(t, 3, all[0].Rounds)
	assert.Equal(t, 5, all[0].Applied)
	assert.Equal(t, 30.0, *all[0].Lag, "since the round before")
	assert.Equal(t, proof.At, *all[0].Proven)

	c.now = began.Add(3 * time.Hour) // it did not run
	c.round(0, &Proof{At: c.now, Reason: "the digests differ"}, "")
	all = c.samples()
	require.Len(t, all, 2)
	assert.Equal(t, 3*3600-90.0, *all[1].Lag, "what the copy was like before the round")
	assert.True(t, all[1].Unproven)
	assert.Nil(t, all[1].Proven)

	c.now = c.now.Add(10 * time.Minute)
	c.round(0, nil, "broken")
	c.now = c.now.Add(10 * time.Minute)
	c.round(0, nil, "broken")
	all = c.samples()
	assert.Equal(t, 1, all[3].Failed)
	assert.Equal(t, 20*60.0, *all[3].Lag, "since the last good round")

	c.load() // replaced
	c.now = c.now.Add(10 * time.Minute)
	c.round(7, nil, "")
	assert.Equal(t, 7, c.samples()[4].Applied)
}

// There are at most the samples of a day, for any clock, and none after the subscription has ended.
func TestSamplesAreBounded(t *testing.T) {
	c := openClocked(t)
	c.load()
	for range sources.MaxSamples + 40 {
		c.now = c.now.Add(sources.SampleTime)
		c.round(1, nil, "")
	}
	assert.Len(t, c.samples(), sources.MaxSamples)
	assert.Equal(t, sources.MaxSamples, c.rows())
	c.now = c.now.Add(-7 * 24 * time.Hour)
	c.round(1, nil, "")
	assert.Equal(t, sources.MaxSamples, c.rows())
	c.now = c.now.Add(30 * 24 * time.Hour)
	assert.Empty(t, c.samples(), "those of another day are not shown")
	c.round(1, nil, "")
	assert.Len(t, c.samples(), 1)
	require.NoError(t, c.RemoveSubscription(t.Context(), "egov"))
	assert.Zero(t, c.rows())
}

// A sample that cannot be read hinders no round.
func TestDamagedSamples(t *testing.T) {
	c := openClocked(t)
	c.load()
	c.round(1, nil, "")
	s, err := c.Subscription(t.Context(), "egov")
	require.NoError(t, err)
	slot := uint64(c.now.Unix()/300) % sources.MaxSamples
	raw(t, c.DB, func(w kv.Writer) error {
		return w.Put(keys.Own(s.Number).Numbered(keys.TableSample, slot), []byte("no JSON"))
	})
	assert.Empty(t, c.samples())
	c.now = c.now.Add(time.Second)
	c.round(1, nil, "")
	assert.Len(t, c.samples(), 1)
}
