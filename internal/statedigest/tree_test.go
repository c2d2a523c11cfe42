package statedigest

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// rows is a tree in memory.
type rows map[string][]byte

func (r rows) Get(path []byte) ([]byte, error) { return r[string(path)], nil }
func (r rows) Delete(path []byte) error        { delete(r, string(path)); return nil }
func (r rows) Put(path, row []byte) error {
	r[string(path)] = row
	return nil
}

// expected is a tree that allows reading only nodes that were passed to ask.
type expected struct {
	rows
	t              require.TestingT
	asked, written map[string]bool
}

func (e expected) Get(path []byte) ([]byte, error) {
	require.True(e.t, e.asked[string(path)] || e.written[string(path)], "the node %s was not asked for", Path(path))
	return e.rows.Get(path)
}

func (e expected) Put(path, row []byte) error {
	e.written[string(path)] = true
	return e.rows.Put(path, row)
}

func (r rows) digest(t require.TestingT) Digest {
	n, err := Read(r.Get, nil)
	require.NoError(t, err)
	return n.Digest()
}

// plain computes a digest as docs/digest.md defines it, with all items in memory.
func plain(items []Item, depth int) Digest {
	if len(items) <= 16 {
		b := []byte{0}
		for _, i := range items {
			b = append(b, i[:]...)
		}
		return sha256.Sum256(b)
	}
	var children [16][]Item
	for _, i := range items {
		at := fmt.Sprintf("%x", i[:])[depth] // the digit
		n := int(at - '0')
		if at >= 'a' {
			n = int(at-'a') + 10
		}
		children[n] = append(children[n], i)
	}
	b := []byte{1}
	for _, child := range children {
		var d Digest
		if len(child) > 0 {
			d = plain(child, depth+1)
		}
		b = append(b, d[:]...)
	}
	return sha256.Sum256(b)
}

// After any changes in any order, the rows of the tree are those of the set: by definition, as built of the whole set,
// and as changed step by step.
func TestTreeIsThatOfTheSet(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 100, 3000, func(t *rapid.T) {
		owners := rapid.IntRange(1, 40).Draw(t, "owners") // few: their subtrees are deep
		stepwise, set := rows{}, map[Item]Entry{}
		for range rapid.IntRange(1, 8).Draw(t, "commits") {
			changed := map[Item]Change{}
			for range rapid.IntRange(0, 60).Draw(t, "changes") {
				e := EntryOf(Topic, fmt.Sprint("http://psi.example.org/", rapid.IntRange(1, owners).Draw(t, "owner")), []byte{byte(rapid.IntRange(0, 60).Draw(t, "content"))})
				c := Change{e, rapid.Bool().Draw(t, "gone")}
				if _, ok := changed[e.Item]; ok {
					continue
				}
				changed[e.Item] = c
				if set[e.Item] = e; c.Gone {
					delete(set, e.Item)
				}
			}
			before := maps.Clone(stepwise)
			asked, questions := map[string]bool{}, 0
			get := func(path []byte) ([]byte, error) {
				require.True(t, asked[string(path)], "the node %s is read before it is asked for", Path(path))
				return before[string(path)], nil
			}
			require.NoError(t, Expect(get, slices.Collect(maps.Values(changed)), func(paths [][]byte) error {
				questions++
				for _, path := range paths {
					require.False(t, asked[string(path)], "the node %s is asked for again", Path(path))
					asked[string(path)] = true
				}
				return nil
			}))
			require.LessOrEqual(t, questions, 5)
			require.NoError(t, Update(expected{stepwise, t, asked, map[string]bool{}}, slices.Collect(maps.Values(changed))))

			entries := slices.SortedFunc(maps.Values(set), func(a, b Entry) int { return a.compare(&b) })
			items := make([]Item, len(entries))
			for i := range entries {
				items[i] = entries[i].Item
			}
			require.Equal(t, plain(items, 0), stepwise.digest(t))
			built := rows{}
			require.NoError(t, Build(each(entries), built.Put))
			require.Equal(t, built, stepwise)
		}
	})
}

func each(entries []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestTextOfDigestsAndPaths(t *testing.T) {
	d := (&Node{}).Digest()
	assert.Equal(t, "1:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", d.String(), "SHA-256 of one zero byte")
	read, ok := Parse(d.String())
	assert.True(t, ok)
	assert.Equal(t, d, read)
	for _, bad := range []string{"", "1:", "2:" + d.String()[2:], d.String() + "0", "1:" + d.String()[3:] + "g", "1:6E" + d.String()[4:]} {
		_, ok := Parse(bad)
		assert.False(t, ok, bad)
	}
	path, ok := ParsePath("0af")
	assert.True(t, ok)
	assert.Equal(t, []byte{0, 10, 15}, path)
	assert.Equal(t, "0af", Path(path))
	for _, bad := range []string{"g", "A", "/", "0 "} {
		_, ok := ParsePath(bad)
		assert.False(t, ok, bad)
	}
}

// Rows that are damaged are an error, and no crash.
func TestDamagedRows(t *testing.T) {
	t.Parallel()
	testenv.Check(t, 100, 3000, func(t *rapid.T) {
		row := rapid.SliceOf(rapid.Byte()).Draw(t, "row")
		if n, ok := unmarshal(row); ok {
			_, ok = unmarshal(n.marshal())
			require.True(t, ok)
		}
	})
	_, err := Read(rows{"": {7}}.Get, nil)
	assert.ErrorContains(t, err, "check --repair")
}
