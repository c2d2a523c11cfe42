package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// document is what tests know of a document of the fragments feed.
type document struct{ first, size uint64 }

// cut is the naive list of documents: one is added when there is an entry for
// it, with the size that holds then.
type cut struct {
	documents []document
	size      uint64
}

func (c *cut) growTo(head uint64) {
	if len(c.documents) == 0 {
		c.documents = []document{{1, c.size}}
	}
	for {
		last := c.documents[len(c.documents)-1]
		if head < last.first+last.size {
			return
		}
		c.documents = append(c.documents, document{last.first + last.size, c.size})
	}
}

// check compares all documents, entry by entry.
func (c *cut) check(t tester, got *Collection) {
	t.Helper()
	c.growTo(got.Head)
	require.Equal(t, uint64(len(c.documents)), got.OpenDocument())
	for i, want := range c.documents {
		n := uint64(i + 1)
		first, size := got.Document(n)
		require.Equal(t, want, document{first, size}, "document %d", n)
		for seq := first; seq < first+size; seq++ {
			require.Equal(t, n, got.DocumentOf(seq), "entry %d", seq)
		}
	}
	first, size := got.Document(got.OpenDocument() + 1)
	last := c.documents[len(c.documents)-1]
	require.Equal(t, document{last.first + last.size, c.size}, document{first, size}, "the next has the size that is set")
}

// However the size changes between entries: each entry is in one document, the
// documents are contiguous, and the boundaries of those that there are stay.
func TestDocumentsKeepTheirBoundaries(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		sizes := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 60))
		c := &Collection{Settings: Settings{DocumentSize: sizes.Draw(t, "first size")}}
		naive := &cut{size: uint64(c.DocumentSize)}
		naive.check(t, c)
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				c.Head += rapid.Uint64Range(0, 40).Draw(t, "entries")
			},
			"resize": func(t *rapid.T) {
				size := sizes.Draw(t, "size")
				c.resizeDocuments(size)
				c.DocumentSize, naive.size = size, uint64(size)
			},
			"restart": func(t *rapid.T) {
				b, err := json.Marshal(c)
				require.NoError(t, err)
				c = &Collection{}
				require.NoError(t, json.Unmarshal(b, c))
			},
			"": func(t *rapid.T) {
				naive.check(t, c)
				require.LessOrEqual(t, len(c.Segments), len(naive.documents)+1, "what no document is in is not kept")
			},
		})
	})
}

// The same through the store, over restarts.
func TestDocumentsOfAPublishedMap(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	rng := testenv.Rand(5)
	db := openDB(t, t.TempDir())
	c := collection(t, db, "m", 30)
	naive := &cut{size: 100}
	for turn := range 80 {
		switch rng.IntN(5) {
		case 0:
			db = reopen(t, db)
		case 1, 2:
			size := 1 + rng.IntN(12)
			naive.growTo(c.Head)
			naive.size = uint64(size)
			changed, err := db.ChangeSettings(t.Context(), "m", func(s *Settings) error { s.DocumentSize = size; return nil })
			require.NoError(t, err)
			require.Equal(t, c.Head, changed.Head, "it publishes nothing")
		default:
			c = publish(t, db, "m", rename(0, 1+rng.IntN(30), fmt.Sprint(turn)))
		}
		view(t, db, "m", func(v *View) {
			naive.check(t, &v.Collection)
			if v.Head > 150 {
				require.Greater(t, len(v.Segments), 1)
			}
		})
	}
	require.Greater(t, len(naive.documents), 20)
}
