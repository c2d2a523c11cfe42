package store

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// posting returns a document with the statements of a map about some topics.
func posting(t testing.TB, src fragment.Source, topics []fragment.Ref) []byte {
	var doc bytes.Buffer
	enc := xtm.NewEncoder(&doc, xtm.V21, storetest.SP)
	for _, ref := range topics {
		var b bytes.Buffer
		require.NoError(t, fragment.Write(&b, src, ref, fragment.Form{Version: xtm.V21, SP: storetest.SP}))
		dec := xtm.NewDecoder(&b, xtm.Options{Base: storetest.SP})
		for {
			element, err := dec.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			switch e := element.(type) {
			case *xtm.Topic:
				err = enc.Topic(e)
			case *xtm.Association:
				err = enc.Association(e)
			}
			require.NoError(t, err)
		}
	}
	require.NoError(t, enc.Close())
	return doc.Bytes()
}

// An engine with slow reads gets many of them together. The published data are the same, to the byte, and need few
// requests.
func TestWhatIsPublishedDoesNotDependOnHowItIsRead(t *testing.T) {
	t.Parallel()
	posted := 0
	for seed := range uint64(testenv.Rounds(25, 400)) {
		seed += testenv.Seed() * 1000
		asked := &kvtest.Asked{Engine: memory.New()}
		near, distant := openOverEngine(t, t.TempDir(), memory.New()), openOverEngine(t, t.TempDir(), asked)
		editor, rng := storetest.NewEditor(t, seed), rand.New(rand.NewPCG(seed, 3))
		now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		both := func(f func(db *DB) error) error {
			now = now.Add(time.Second)
			near.now, distant.now = func() time.Time { return now }, func() time.Time { return now }
			wants, err := f(near), error(nil)
			before := asked.Questions.Load()
			err = f(distant)
			require.LessOrEqual(t, asked.Questions.Load()-before, int64(17), "seed %d: questions", seed)
			if wants != nil {
				require.EqualError(t, err, wants.Error(), "seed %d", seed)
				return err
			}
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, recordsAndFragments(t, near), recordsAndFragments(t, distant), "seed %d: %q", seed, editor.Edits)
			return nil
		}
		first := editor.Version(nil)
		for _, db := range []*DB{near, distant} {
			_, err := db.CreateCollection(t.Context(), Collection{Name: "m", SP: storetest.SP, Settings: Settings{DocumentSize: 10}}, first, nil)
			require.NoError(t, err)
		}
		for range 12 {
			next := editor.Version(nil)
			if rng.IntN(2) == 0 {
				require.NoError(t, both(func(db *DB) error {
					_, err := db.Publish(t.Context(), "m", func(_ Collection, prior merge.State) (*fragment.Change, error) {
						return fragment.Diff(t.Context(), prior, next)
					})
					return err
				}))
				continue
			}
			var some []fragment.Ref
			for topic, err := range next.Topics() {
				require.NoError(t, err)
				if rng.IntN(3) > 0 {
					some = append(some, topic.TopicSI())
				}
			}
			if len(some) == 0 {
				continue
			}
			doc := posting(t, next, some)
			if err := both(func(db *DB) error {
				tm, err := xtm.Read(t.Context(), bytes.NewReader(doc), xtm.Options{Base: tmdm.Locator(storetest.SP)})
				require.NoError(t, err)
				_, err = db.Publish(t.Context(), "m", func(_ Collection, prior merge.State) (*fragment.Change, error) {
					return fragment.Replace(t.Context(), prior, tm, storetest.SP, some...)
				})
				return err
			}); err == nil {
				posted++
			}
		}
		require.NoError(t, errors.Join(near.Close(), distant.Close()))
	}
	require.Positive(t, posted)
	t.Log(posted, "documents posted")
}

// recordsAndFragments returns the rows in which two stores do not differ that have had the same changes: those of
// entries have random numbers.
func recordsAndFragments(t testing.TB, db *DB) (rows []string) {
	require.NoError(t, db.rows.View(t.Context(), func(tx *txn.Tx) error {
		for _, r := range listed(t, inTables(tx, keys.SourceTables+"fk")) {
			rows = append(rows, string(r.Key)+" = "+string(r.Value))
		}
		return nil
	}))
	return rows
}
