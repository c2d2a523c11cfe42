package client_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Whatever is edited, whatever fails and wherever a round dies: in the end the
// source is equal to the server's map.
func TestSourceConvergesAfterRandomEditsAndFaults(t *testing.T) {
	t.Parallel()
	rounds, failed := uint64(testenv.Rounds(1, 6)), 0
	for n := range rounds {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { failed += converges(t, seed) })
	}
	if rounds >= 6 {
		require.NotZero(t, failed, "the faults are no challenge")
	}
}

// converges returns how many rounds have failed.
func converges(t *testing.T, seed uint64) (failed int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	o := publishing(t, string(maps.Libraries), documentSize(7))
	sp := o.sp("egov")
	s := subscribed(t, o)
	tm, err := xtm.Read(t.Context(), bytes.NewReader(maps.Libraries), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	editor := testedit.New(tm, sp, seed)
	chaos := newChaos(seed)
	whole := 0
	var saved string
	for version := range 24 {
		for range rng.IntN(6) {
			editor.Edit()
		}
		var b bytes.Buffer
		_, err := xtm.Write(&b, tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(sp)})
		require.NoError(t, err)
		o.put(b.String())
		switch {
		case rng.IntN(6) == 0:
			o.takeSnapshot()
		case rng.IntN(8) == 0 && saved == "":
			saved = o.backup()
		case rng.IntN(8) == 0 && saved != "":
			o.restore(saved)
			saved = ""
		}

		o.breakWith(chaos.answer)
		s.restart(func(c *client.Config) { c.Batch, c.Tries, c.Parallel = 1+rng.IntN(5), 2, 1+rng.IntN(4) })
		s.LimitQueue(2000, 3)
		if rng.IntN(3) == 0 {
			dying := &dyingStore{Store: s.db, left: rng.IntN(12)}
			s.configure(func(c *client.Config) { c.Store, c.Batch, c.Tries = dying, 2, 2 })
		}
		r, err := s.Sync(context.Background(), "egov")
		if err != nil {
			failed++
		} else if r.CleanStart {
			whole++
		}
		if version%8 != 7 {
			continue
		}
		o.breakWith(nil)
		s.restart()
		if r := s.sync(); r.CleanStart && r.Quarantined > 0 { // what was staged has met faults; it is tried again now
			s.syncPasses(0)
		}
		server := o.get("/topicmaps/egov/snapshots/current.xtm21")
		now, err := xtm.Read(t.Context(), strings.NewReader(server), xtm.Options{Base: tmdm.Locator(sp)})
		require.NoError(t, err)
		view, _, err := s.Merged(o.t.Context(), false, "egov")
		require.NoError(t, err)
		require.Equal(t, canonical(t, now, sp), canonical(t, view, sp), "version %d", version)
	}
	t.Logf("%d rounds failed, %d clean starts succeeded", failed, whole)
	return failed
}

// chaos answers one request in five with a fault.
type chaos struct {
	mu    sync.Mutex
	rng   *rand.Rand
	names []string
}

func newChaos(seed uint64) *chaos {
	c := &chaos{rng: rand.New(rand.NewPCG(seed, 1))}
	for name := range faults {
		c.names = append(c.names, name)
	}
	slices.Sort(c.names)
	return c
}

func (c *chaos) answer(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	c.mu.Lock()
	n, name := c.rng.IntN(5), c.names[c.rng.IntN(len(c.names))]
	c.mu.Unlock()
	if n > 0 || name == "a tag damaged" && !isFragment(r) {
		return false
	}
	if r.Header.Get("If-None-Match") != "" {
		r = r.Clone(r.Context())
		r.Header.Del("If-None-Match")
	}
	faults[name](w, r, real)
	return true
}
