package store

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func readXTM(t testing.TB, document string) *tmdm.TopicMap {
	t.Helper()
	tm, err := xtm.Read(t.Context(), strings.NewReader(document), xtm.Options{Base: sp})
	require.NoError(t, err)
	return tm
}

// publishVersion publishes a document as a version and returns the number of allocated bytes: a measure of the work
// that needs no clock.
func publishVersion(t testing.TB, db *DB, document string) uint64 {
	t.Helper()
	tm := readXTM(t, document)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := db.Publish(t.Context(), "m", func(c Collection, prior merge.State) (*fragment.Change, error) {
		next, err := fragment.NameTopics(t.Context(), tm, c.SP, prior)
		if err != nil {
			return nil, err
		}
		return fragment.Diff(t.Context(), prior, next)
	})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// workOf measures publishing a document, publishing it with a small change, posting it and deleting all of it.
func workOf(t testing.TB, document, changed string) (total []uint64) {
	t.Helper()
	db := openDB(t, t.TempDir())
	collectionOf(t, db, "m", hostileMap(t, testhostile.Head21+testhostile.Foot))
	total = append(total, publishVersion(t, db, document), publishVersion(t, db, changed))
	var before, after runtime.MemStats
	tm := readXTM(t, document)
	runtime.ReadMemStats(&before)
	_, err := db.Publish(t.Context(), "m", func(c Collection, prior merge.State) (*fragment.Change, error) {
		return fragment.Replace(t.Context(), prior, tm, c.SP, "x:p0")
	})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	return append(total, after.TotalAlloc-before.TotalAlloc, publishVersion(t, db, testhostile.Head21+testhostile.Foot))
}

func hostileMap(t testing.TB, document string) *fragment.Map {
	t.Helper()
	m, err := fragment.NameTopics(t.Context(), readXTM(t, document), sp, nil)
	require.NoError(t, err)
	return m
}

// The work of a commit grows with the document, not with its square.
func TestHostileDocumentsTakeLinearWork(t *testing.T) {
	testenv.SkipUnderRace(t)
	for name, document := range map[string]func(n int) string{
		"an association with many roles":    testhostile.Association,
		"a topic that many others refer to": testhostile.Hub,
		"identifiers of a topic that others refer to": func(n int) string {
			many := testhostile.Identifiers(n, "many")
			return strings.Replace(testhostile.Hub(n), testhostile.Foot, "", 1) +
				strings.Replace(strings.TrimPrefix(many, testhostile.Head21), `href="x:s0"`, `href="x:hub"`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 100
			at := func(n int) []uint64 {
				d := strings.Replace(document(n), testhostile.Foot, `<topic><subjectIdentifier href="x:p0"/><name><value>first</value></name></topic>`+testhostile.Foot, 1)
				return workOf(t, d, strings.ReplaceAll(d, "first", "second"))
			}
			few, many := at(n), at(8*n)
			for i := range few {
				require.Less(t, many[i], 24*few[i], "step %d: %d bytes for %d, %d for 8 times as many", i, few[i], n, many[i])
			}
		})
	}
}

// A publication ends with its context, at any point.
func TestAPublicationEndsWithItsContext(t *testing.T) {
	db := openDB(t, t.TempDir())
	collectionOf(t, db, "m", hostileMap(t, testhostile.Hub(5)))
	next := hostileMap(t, testhostile.Hub(20))
	publishFor := func(ctx context.Context) error {
		_, err := db.Publish(ctx, "m", func(_ Collection, prior merge.State) (*fragment.Change, error) {
			return fragment.Diff(ctx, prior, next)
		})
		return err
	}
	for left := int64(0); left < 10_000; left += 1 + left/10 {
		ctx := &leaving{Context: t.Context()}
		ctx.left.Store(left)
		before, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		failed := publishFor(ctx)
		if failed == nil {
			require.Greater(t, left, int64(100), "it is looked at often enough")
			return
		}
		require.ErrorIs(t, failed, context.Canceled)
		after, err := db.Latest(t.Context(), "m")
		require.NoError(t, err)
		require.Equal(t, before.Updated, after.Updated, "after %d looks", left)
	}
	t.Error("it never ends")
}

// A publisher that waits for the publication of another can go away.
func TestWhoWaitsToPublishCanLeave(t *testing.T) {
	db := openDB(t, t.TempDir())
	collection(t, db, "m", 1)
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- db.rows.Update(t.Context(), func(*txn.Tx) error { close(begun); <-end; return nil })
	}()
	<-begun
	gone := errors.New("gone")
	ctx, leave := context.WithCancelCause(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := db.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) {
			return nil, errors.New("it had its turn")
		})
		waiting <- err
	}()
	leave(gone)
	require.ErrorIs(t, <-waiting, gone)
	close(end)
	require.NoError(t, <-ended)
}

// leaving is a context that ends after a number of checks.
type leaving struct {
	context.Context
	left atomic.Int64
}

func (l *leaving) Value(any) any         { return nil } // nor is there a cause
func (l *leaving) Done() <-chan struct{} { return nil }
func (l *leaving) Err() error {
	if l.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// The data kept until a commit has a limit. Beyond it, no row remains.
func TestAPublicationHasALimitOfMemory(t *testing.T) {
	db := openDB(t, t.TempDir())
	collectionOf(t, db, "m", hostileMap(t, testhostile.Head21+testhostile.Foot))
	next := hostileMap(t, testhostile.Hub(100))
	db.maxPublication = 10_000
	before, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	_, err = db.Publish(t.Context(), "m", func(_ Collection, prior merge.State) (*fragment.Change, error) {
		return fragment.Diff(t.Context(), prior, next)
	})
	require.ErrorIs(t, err, ErrTooLarge)
	after, err := db.Latest(t.Context(), "m")
	require.NoError(t, err)
	require.Equal(t, before.Updated, after.Updated)
}

// The log does not wait in memory for the commit.
func TestThePublicationOfManyTopicsTakesLittleMemory(t *testing.T) {
	testenv.SkipUnderRace(t)
	const n = 5_000
	db := openUnsynced(t, t.TempDir())
	collectionOf(t, db, "m", hostileMap(t, testhostile.Head21+testhostile.Foot))
	first := hostileMap(t, testhostile.Topics(n))
	db.maxPublication = 500 * n
	publishMap(t, db, "m", first)
	view(t, db, "m", func(v *View) {
		require.Equal(t, n, v.Topics)
	})
}

// A publication that fails after much of it is collected has no effect and no remains, and neither has a preview.
func TestAPublicationThatFailsLeavesNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const topics = 600
	db := openUnsynced(t, t.TempDir())
	collection(t, db, "m", topics)
	before, count := recordsOf(t, db, "m"), rows(t, db, "efk")
	at := committed(t, db)
	_, err := db.Preview(t.Context(), "m", func(Collection, merge.State) (*fragment.Change, error) {
		return rename(0, topics, words(100)), nil
	})
	require.NoError(t, err)
	require.Equal(t, at, committed(t, db), "a preview writes nothing")

	ctx, leave := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	engine := db.rows.Engine
	const many = topics * 5 / 3 // more than a transaction of Badger takes
	written := countWrites(db, func(n int) {
		if n == many {
			leave(gone)
		}
	})
	_, err = db.Publish(ctx, "m", func(Collection, merge.State) (*fragment.Change, error) { return rename(0, topics, words(100)), nil })
	require.ErrorIs(t, err, gone)
	require.GreaterOrEqual(t, *written, many, "much was written")
	require.Equal(t, at, committed(t, db))
	require.Equal(t, before, recordsOf(t, db, "m"))
	require.Equal(t, count, rows(t, db, "efk"))

	db.rows.Engine = engine
	publish(t, db, "m", rename(0, topics, words(100)))
	view(t, db, "m", func(v *View) { require.Equal(t, map[string]int{words(100): topics}, namesOf(t, v.Source())) })
}
