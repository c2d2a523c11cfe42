package client_test

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// badly returns the rows with damage of each kind: a record with other content, unreadable records, and missing rows of
// indexes and of the tree.
func (h *heldRows) badly(t *testing.T) []kv.Row {
	changed := 0
	rows := slices.DeleteFunc(slices.Clone(h.all), func(r kv.Row) bool {
		lost := bytes.Equal(r.Key, h.source.LocatorKey(keys.TableIdentifier, "http://psi.example.org/also-t3")) ||
			bytes.Equal(r.Key, h.source.LocatorKey(keys.TableMentions, "http://psi.example.org/note")) ||
			bytes.Equal(r.Key, append(h.source.Key(keys.TableDigest), 3))
		if lost {
			changed++
		}
		return lost
	})
	change := func(key []byte, damage func(value []byte) []byte) {
		for i := range rows {
			if bytes.HasPrefix(rows[i].Key, key) {
				rows[i].Value = damage(bytes.Clone(rows[i].Value))
				changed++
				return
			}
		}
	}
	cut := func(value []byte) []byte { return value[:len(value)-1] }
	change(h.source.LocatorKey(keys.TableTopic, "http://psi.example.org/t5"), cut)
	change(h.source.LocatorKey(keys.TableAssociation, "http://psi.example.org/t0"), cut)
	change(h.source.LocatorKey(keys.TableTopic, "http://psi.example.org/t9"), func(value []byte) []byte {
		return bytes.Replace(value, []byte("Topic 9"), []byte("Topic 8"), 1)
	})
	require.Equal(t, 6, changed)
	return rows
}

// healed asserts that a crash leaves the damage unchanged, or consistent rows. The next round repairs these; damage may
// be unknown to it, so --full is needed.
func (h *heldRows) healed(t *testing.T, engine kv.Engine, damaged map[string]string) {
	t.Helper()
	db, c := h.open(t, engine)
	defer db.Close()
	if !maps.Equal(damaged, records(t, rowsIn(t, engine))) {
		require.Empty(t, findings(t, db), "what is mended is mended as a whole")
		r, err := c.Sync(t.Context(), "egov")
		require.NoError(t, err)
		require.True(t, r.Proven, r.Unproven)
	} else {
		v, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, err)
		require.True(t, v.Equal)
		require.Empty(t, v.Replaced)
	}
	require.Equal(t, records(t, h.all), records(t, rowsIn(t, engine)))
	require.Empty(t, findings(t, db))
}

// After a crash between any two commits of a repair, no record is partly repaired, and the next repair ends proven.
func TestCrashBetweenAnyTwoCommitsOfARepair(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	rows := h.badly(t)
	seen := map[string]bool{}
	for writes := 0; ; writes++ {
		require.Less(t, writes, 50)
		engine := engineOf(t, rows)
		dying := &dyingStore{left: writes}
		db, c := h.open(t, engine, func(c *client.Config) {
			dying.Store = c.Store
			c.Store = dying
		})
		v, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, db.Close())
		if err == nil {
			assert.True(t, v.Equal)
			assert.NotZero(t, v.Mended)
			assert.Equal(t, 2, v.Repaired, "the association is mended of its other row")
			break
		}
		require.ErrorIs(t, err, errDied)
		seen[dying.last] = true
		h.healed(t, engine, records(t, rows))
	}
	assert.True(t, seen["mend"] && seen["apply"] && seen["update"], "%v", seen)
}

// If a repair fails at any request, before or after the answer, no record is partly repaired.
func TestRepairWhoseRequestsFail(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	rows := h.badly(t)
	for name, fails := range map[string]func(n, at int64) bool{
		"one":               func(n, at int64) bool { return n == at },
		"all from there on": func(n, at int64) bool { return n >= at },
	} {
		for at := int64(1); ; at++ {
			require.Less(t, at, int64(100))
			var n atomic.Int64
			h.o.BreakWith(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
				bad := fails(n.Add(1), at)
				if bad {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return bad
			})
			engine := engineOf(t, rows)
			db, c := h.open(t, engine, func(c *client.Config) { c.Tries = 1 })
			v, err := c.Verify(t.Context(), "egov", true)
			h.o.BreakWith(nil)
			require.NoError(t, db.Close())
			if err == nil {
				require.True(t, v.Equal, "%s, %d", name, at)
			}
			if n.Load() < at { // no request has failed
				require.NoError(t, err)
				assert.Greater(t, at, int64(8))
				break
			}
			h.healed(t, engine, records(t, rows))
		}
	}
}

// A round with an unreadable record reports the remedy. A repair also succeeds if the source has changed meanwhile.
func TestDamageOfASourceThatHasChanged(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	engine := engineOf(t, h.badly(t))
	db, c := h.open(t, engine)
	defer db.Close()
	version2 := strings.ReplaceAll(manyKinds(), "Topic 5<", "Topic five<")
	h.o.Put(version2)
	_, err := c.Sync(t.Context(), "egov")
	require.ErrorContains(t, err, `"verify --full egov" mends the copy`)
	v, err := c.Verify(t.Context(), "egov", true)
	require.NoError(t, err)
	require.True(t, v.Equal)
	require.Empty(t, v.Replaced)
	require.Empty(t, findings(t, db))
	require.Equal(t, records(t, holding(t, version2).all)["t"+si("t5")], records(t, rowsIn(t, engine))["t"+si("t5")])
}
