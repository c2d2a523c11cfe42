package store

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The first snapshot becomes visible together with the rows of the collection, and has the same content.
func TestTheFirstSnapshotShowsWithTheCollection(t *testing.T) {
	db := openDB(t, t.TempDir())
	nothing, err := fragment.NewMap(tmdm.New(), sp)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "filled", SP: sp}, nothing, nil)
	require.NoError(t, err)
	_, err = db.FillCollection(t.Context(), "filled", First{Source: published(t, 90), Snapshot: true})
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "created", SP: sp}, First{Source: published(t, 90), Snapshot: true}, nil)
	require.NoError(t, err)
	for _, name := range []string{"filled", "created"} {
		list := snapshots(t, db, name)
		require.Len(t, list, 1)
		require.Equal(t, &list[0], takeSnapshot(t, db, name, 3), "there is nothing new to take")
		view(t, db, name, func(v *View) {
			digest, err := v.Collection.Digest(v.tx)
			require.NoError(t, err)
			assert.Equal(t, digest, list[0].Digest)
			assert.Equal(t, v.Head, list[0].Seq)
			assert.Equal(t, v.Topics, list[0].Topics)
			assert.Equal(t, v.Updated, list[0].Updated)
			m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(content(t, db, name, &list[0])), xtm.Options{Base: sp})
			require.NoError(t, err)
			var read merge.Memory
			require.NoError(t, read.Load(m))
			require.Equal(t, storetest.Dump(t, v.Source()), storetest.Dump(t, &read))
		})
	}
}

// A first version that is not published leaves no file of its snapshot, whenever it is given up.
func TestAFirstVersionThatIsGivenUpLeavesNoSnapshot(t *testing.T) {
	db := openDB(t, t.TempDir())
	nothing, err := fragment.NewMap(tmdm.New(), sp)
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), Collection{Name: "empty", SP: sp}, nothing, nil)
	require.NoError(t, err)
	no := errors.New("no")
	_, err = db.FillCollection(t.Context(), "empty", First{Source: published(t, 90), Snapshot: true}, func(*Collection) error {
		assert.Len(t, snapshotFiles(t, db), 1, "it is written by now")
		return no
	})
	require.ErrorIs(t, err, no)
	require.Empty(t, snapshotFiles(t, db))
	require.Empty(t, snapshots(t, db, "empty"))

	for at := range int32(3) { // of the times that the topics are read: for the rows, the log and the snapshot
		ctx, src := givenUp(t, at, no)
		_, err = db.FillCollection(ctx, "empty", First{Source: src, Snapshot: true})
		require.ErrorIs(t, err, no, "reading %d", at)
		require.Empty(t, snapshotFiles(t, db), "reading %d", at)
		ctx, src = givenUp(t, at, no)
		_, err = db.CreateCollection(ctx, Collection{Name: "m", SP: sp}, First{Source: src, Snapshot: true}, nil)
		require.ErrorIs(t, err, no, "reading %d", at)
		require.Empty(t, snapshotFiles(t, db), "reading %d", at)
	}
	_, err = db.CreateCollection(t.Context(), Collection{Name: "empty", SP: sp}, First{Source: published(t, 90), Snapshot: true}, nil)
	require.ErrorIs(t, err, ErrExists)
	require.Empty(t, snapshotFiles(t, db))
}

// published returns a map of n topics, as a publisher has it.
func published(t *testing.T, n int) *fragment.Map {
	t.Helper()
	tm := tmdm.New()
	for i := range n {
		topic := tm.CreateTopicBySubjectIdentifier(ref(i))
		topic.AddName("first", nil)
		next := tm.CreateAssociation(tm.CreateTopicBySubjectIdentifier("http://next"))
		next.AddRole(tm.CreateTopicBySubjectIdentifier("http://role"), topic)
		next.AddRole(tm.CreateTopicBySubjectIdentifier("http://role"), tm.CreateTopicBySubjectIdentifier(ref((i+1)%n)))
	}
	m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	return m
}

// givenUp returns a source, and the context of a publication that ends with err when its topics are read for the time
// at.
func givenUp(t *testing.T, at int32, err error) (context.Context, fragment.Source) {
	ctx, cancel := context.WithCancelCause(t.Context())
	return ctx, &countedTopics{Source: published(t, 90), at: at, then: func() { cancel(err) }}
}

// countedTopics calls then when the topics are read for the time at, counted from 0.
type countedTopics struct {
	fragment.Source
	at    int32
	times atomic.Int32
	then  func()
}

func (c *countedTopics) Topics() iter.Seq2[*fragment.Topic, error] {
	if c.times.Add(1) == c.at+1 {
		c.then()
	}
	return c.Source.Topics()
}
