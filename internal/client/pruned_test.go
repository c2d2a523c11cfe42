package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// pruneTo prunes the history of the server, and returns the new horizon.
func pruneTo(o *origin) (horizon uint64) {
	_, err := o.DB.Prune(context.Background(), "egov", store.Retention{Entries: 1})
	require.NoError(o.T, err)
	require.NoError(o.T, o.DB.View(o.T.Context(), "egov", func(v *store.View) error { horizon = v.Horizon; return nil }))
	return horizon
}

func head(o *origin) (head uint64) {
	require.NoError(o.T, o.DB.View(o.T.Context(), "egov", func(v *store.View) error { head = v.Head; return nil }))
	return head
}

// Of the entries in the newest snapshot, the feed may have only the last one, if its documents end there.
func TestCleanStartWhereTheFeedBeginsWithTheEndOfTheSnapshot(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...), documentSize(4))
	for i := 0; head(o)%4 != 1; i++ {
		o.Put(doc(append(topics(2, "v1"), topic("t2", fmt.Sprint("v", i)))...))
	}
	end := head(o)
	o.TakeSnapshot()
	expected := doc(topics(9, "v2")...)
	o.Put(expected)
	require.Equal(t, end-1, pruneTo(o))
	s := subscribed(t, o)
	assert.True(t, s.sync().CleanStart)
	s.has(o, expected)
	o.Put(doc(topics(9, "v3")...))
	assert.False(t, s.sync().CleanStart)
	s.has(o, doc(topics(9, "v3")...))
}

// What is in quarantine may be given up by the server before it could be had, and no
// later entry may speak of the topic. A snapshot does.
func TestWhatIsInQuarantineMayBePruned(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.BreakWith(damage(tombstoneOf(o, "t4"), always, answering(404)))
	o.Put(doc(topics(4, "v1")...))
	s.syncPasses(1)
	o.BreakWith(nil)
	for i := range 3 {
		o.Put(doc(topics(4, fmt.Sprint("w", i))...))
	}
	o.BreakWith(damage(tombstoneOf(o, "t4"), always, answering(410)))
	for range 2 { // no snapshot has it, so that a clean replacement would be no better
		r, bad := s.syncPasses(1)
		assert.False(t, r.CleanStart)
		assert.Equal(t, "deleted", bad[0].State)
	}
	o.BreakWith(nil)
	o.TakeSnapshot()
	o.Put(doc(topics(4, "w3")...))
	pruneTo(o)
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Equal(t, "the server does not keep what was in quarantine any more", r.Reason)
	assert.Zero(t, r.Quarantined)
	s.has(o, doc(topics(4, "w3")...))
	assert.False(t, s.sync().CleanStart)
}

// The server may prune the entry at the mark together with entries in quarantine. That is a loss like any other: two
// verified readings confirm it, and the map is replaced.
func TestWhatIsInQuarantineMayBePrunedWithTheMark(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.BreakWith(damage(tombstoneOf(o, "t4"), always, answering(404)))
	o.Put(doc(topics(4, "v1")...))
	s.syncPasses(1)
	mark := head(o)
	for i := range 3 {
		o.Put(doc(topics(4, fmt.Sprint("w", i))...))
	}
	o.TakeSnapshot()
	o.Put(doc(topics(4, "w3")...))
	require.Greater(t, pruneTo(o), mark)
	o.BreakWith(nil)
	_, err := s.Sync(t.Context(), "egov")
	require.True(t, s.inDoubt(err), "%v", err)
	d := client.DoubtOf(new(s.known("egov")))
	assert.True(t, d.Counted && d.Asked, "an asked reading counts")
	assert.Equal(t, 2, d.Needed)
	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Zero(t, r.Quarantined)
	s.has(o, doc(topics(4, "w3")...))
	assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark, Proven: true}, *s.sync())
}

// A later entry of the topic may be there, though the server does not keep the one in quarantine. It is enough.
func TestALaterEntryEndsTheQuarantineOfOneThatIsPruned(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
	s := inStep(t, o)
	o.BreakWith(damage(tombstoneOf(o, "t4"), always, answering(404)))
	o.Put(doc(topics(4, "v1")...))
	s.syncPasses(1)
	o.Put(doc(topics(5, "v2")...))
	o.TakeSnapshot()
	o.BreakWith(damage(tombstoneOf(o, "t4"), always, answering(410)))
	r := s.sync()
	assert.False(t, r.CleanStart, r.Reason)
	assert.Zero(t, r.Quarantined)
	s.has(o, doc(topics(5, "v2")...))
}
