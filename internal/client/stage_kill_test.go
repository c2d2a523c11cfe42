package client_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/stores"
)

func TestMain(m *testing.M) {
	kill.Main(m, kill.Tasks{
		"client": func([]string) error { return kill.Exit(clientcmd.Main(ext.All)) },
		"round":  func(args []string) error { return roundIn(args[0]) },
		"verify": func(args []string) error { return verifyIn(args[0]) },
	})
}

// roundIn does a round of egov in a data folder.
func roundIn(dir string) error {
	db, err := store.Open(context.Background(), store.Options{Dir: dir, Logger: silent, Badger: badger.Small})
	if err != nil {
		return err
	}
	c, err := client.New(client.Config{Protocols: ext.Protocols(), Store: db, Logger: silent})
	if err != nil {
		return err
	}
	if _, err := c.Sync(context.Background(), "egov"); err != nil {
		return err
	}
	return db.Close()
}

// killed starts a round in a process of its own and kills it when whenTrue returns true.
func killed(t *testing.T, dir string, whenTrue func() bool, later time.Duration) {
	t.Helper()
	p := kill.Start(t, "round", dir)
	deadline := time.Now().Add(time.Minute)
	for !whenTrue() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	reached := whenTrue()
	p.Kill(later) // it may have ended
	require.True(t, reached, "the round has not come so far in a minute")
}

// A clean start continues after a kill at any instant: no byte is fetched twice, and no file remains in the end.
func TestKillsDuringACleanStart(t *testing.T) {
	testenv.OnlyWithAll(t, "it kills processes")
	stores.InFolders(t)
	t.Parallel()
	document := doc(unlike(6000, 64, 1)...)
	o := publishing(t, document)
	s := subscribed(t, o)
	require.NoError(t, s.db.Close())
	random := rand.New(rand.NewPCG(1, 2))

	silentAfter := 0
	w := &wire{}
	stalling := func(to http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isSnapshot(r) {
			return false
		}
		w.mu.Lock()
		w.requests = append(w.requests, r.Header.Get("Range"))
		after := silentAfter
		w.mu.Unlock()
		real.ServeHTTP(&stalled{meter{to, w, after}, r}, r)
		return true
	}
	o.BreakWith(stalling)
	stallAfter := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		silentAfter = n
	}
	there := func() (n int64) {
		files, _ := filepath.Glob(filepath.Join(s.dir, "downloads", "*"))
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && !strings.Contains(f, ".json") {
				n = info.Size()
			}
		}
		return n
	}
	for want := int64(0); want < 90_000; {
		n := 10_000 + random.IntN(20_000)
		stallAfter(n)
		want += int64(n)
		killed(t, s.dir, func() bool { return there() == want }, 0)
	}
	require.Greater(t, len(w.asked()), 3)
	for i, asked := range w.asked() {
		assert.Equal(t, i > 0, asked != "", "request %d: %q", i, asked)
	}

	complete := func() bool {
		files, _ := filepath.Glob(filepath.Join(s.dir, "downloads", "*.json"))
		for _, f := range files {
			if b, _ := os.ReadFile(f); strings.Contains(string(b), `"Complete":true`) {
				return true
			}
		}
		return false
	}
	stallAfter(always)
	loading := 0 // kills while it was loaded
	for i := range 6 {
		killed(t, s.dir, complete, time.Duration(random.IntN(40*(i+1)))*time.Millisecond)
		if !complete() {
			break // it was faster
		}
		loading++
	}
	assert.Positive(t, loading, "no kill has met it while it was loading")
	s.open()
	s.configure()
	sent := w.sent
	s.sync()
	s.has(o, document)
	assert.Empty(t, s.downloads())

	again := &wire{}
	o.BreakWith(again.cutting(whole))
	_, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Equal(t, again.sent, sent, "each byte was fetched once")
	s.has(o, document)
}

// stalled is an answer that stops without an end.
type stalled struct {
	meter
	r *http.Request
}

func (s *stalled) Write(p []byte) (int, error) {
	if len(p) <= s.left {
		return s.meter.Write(p)
	}
	n, _ := s.meter.Write(p[:s.left])
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	<-s.r.Context().Done()
	return n, http.ErrAbortHandler
}
