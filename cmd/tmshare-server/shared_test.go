package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

const (
	sharedToken = "0123456789abcdef"
	counter     = "http://psi.example.org/counter"
)

// sharing are server processes on one database.
type sharing struct {
	t     *testing.T
	dir   string
	store string
	nodes []*process
}

// share starts processes on a database.
func share(t *testing.T, store string, n int) *sharing {
	t.Helper()
	s := &sharing{t: t, dir: t.TempDir(), store: store}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "tokens"), []byte(sharedToken), 0o600))
	for _, at := range []string{store, s.follower()} {
		out, err := exec.Command("tmshare-server", "migrate", "--store", at).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for i := range n {
		s.nodes = append(s.nodes, &process{dir: filepath.Join(s.dir, fmt.Sprint("n", i)), address: freeAddress(t)})
		s.start(i)
	}
	t.Cleanup(func() {
		for i, p := range s.nodes {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			if t.Failed() {
				t.Logf("node %d:\n%s", i, tail(p.log.String()))
			}
		}
	})
	return s
}

// follower is the address of the store of a node that follows, in the same database.
func (s *sharing) follower() string { return s.store + "&search_path=follower" }

func (s *sharing) start(i int) {
	p := s.nodes[i]
	p.cmd = exec.Command("tmshare-server", "serve", "--store", s.store, "--listen", p.address, "--data", p.dir, "--interval", "1s",
		"--base-url", s.nodes[0].url(), "--token-file", filepath.Join(s.dir, "tokens"), "--document-size", "20", "--shutdown-grace", "2s")
	p.cmd.Stderr = &p.log
	require.NoError(s.t, p.cmd.Start())
	require.Eventually(s.t, func() bool {
		code, _, _ := s.request(i, http.MethodGet, "/healthz", "", nil)
		return code == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
}

// patient gives up on a process that stands still.
var patient = &http.Client{Timeout: 20 * time.Second}

// request sends a request to a process. The code is 0 where there is no answer.
func (s *sharing) request(i int, method, path, body string, header map[string]string) (code int, answer []byte, h http.Header) {
	r, err := http.NewRequest(method, s.nodes[i].url()+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+sharedToken)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := patient.Do(r)
	if err != nil {
		return 0, nil, nil
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		return 0, nil, nil
	}
	return res.StatusCode, answer, res.Header
}

func counterMap(n int) string {
	return fmt.Sprintf(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="c"><subjectIdentifier href=%q/><name><value>n%d</value></name></topic></topicMap>`, counter, n)
}

var counterName = regexp.MustCompile(`<value>n([0-9]+)</value>`)

// count adds one to the counter of a collection, on the condition that nobody else has since it was read. It returns the number that
// the server has acknowledged, 0 for none.
func (s *sharing) count(collection string, rng *rand.Rand) int {
	i := rng.IntN(len(s.nodes))
	code, _, h := s.request(i, http.MethodGet, "/topicmaps/"+collection, "", nil)
	if code != http.StatusOK {
		return 0
	}
	etag := h.Get("ETag")
	code, now, _ := s.request(rng.IntN(len(s.nodes)), http.MethodGet, "/topicmaps/"+collection+"/snapshots/current.xtm21", "", nil)
	if code != http.StatusOK {
		return 0
	}
	n := 0
	if found := counterName.FindSubmatch(now); found != nil {
		n, _ = strconv.Atoi(string(found[1]))
	}
	code, _, _ = s.request(rng.IntN(len(s.nodes)), http.MethodPut, "/topicmaps/"+collection, counterMap(n+1), map[string]string{"If-Match": etag, "Content-Type": "application/xtm+xml"})
	if code != http.StatusOK {
		return 0
	}
	return n + 1
}

// log returns what the log of a collection says that the counter was, from the newest on.
func (s *sharing) log(collection string) (all []int) {
	last := ""
	for path := "/topicmaps/" + collection + "/fragments"; path != ""; {
		code, document, _ := s.request(0, http.MethodGet, path, "", nil)
		require.Equal(s.t, http.StatusOK, code, "%s: %s", path, document)
		for _, link := range fragmentLink.FindAllSubmatch(document, -1) {
			at := strings.TrimPrefix(string(link[1]), s.nodes[0].url())
			if at == last {
				continue
			}
			last = at
			code, fragment, _ := s.request(0, http.MethodGet, at, "", nil)
			require.Equal(s.t, http.StatusOK, code, "%s: %s", at, fragment)
			found := counterName.FindSubmatch(fragment)
			if found == nil { // a topic that the counter mentions
				continue
			}
			n, err := strconv.Atoi(string(found[1]))
			require.NoError(s.t, err)
			all = append(all, n)
		}
		path = ""
		if link := archiveLink.FindSubmatch(document); link != nil {
			path = strings.TrimPrefix(string(link[1]), s.nodes[0].url())
		}
	}
	return all
}

// Links of a fragments feed: to the fragment of an entry, and to the document before.
var (
	fragmentLink = regexp.MustCompile(`<link rel="alternate"[^>]* href="([^"]*/fragments/[0-9a-f-]+\.xtm21)"`)
	archiveLink  = regexp.MustCompile(`<link rel="prev-archive"[^>]* href="([^"]*)"`)
)

// Writers count on three processes, which are killed and stopped at random, as is the database. Each number that was acknowledged is
// there once, and none is left out.
func TestProcessesOnOneDatabaseLoseAndDoubleNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database := pgserver.Start(t, "fsync=off")
	s := share(t, database.URL(), 3)
	collections := []string{"a", "b"}
	for _, c := range collections {
		code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/"+c, "{}", map[string]string{"Content-Type": "application/json"})
		require.Equal(t, http.StatusCreated, code, "%s", answer)
		code, answer, _ = s.request(0, http.MethodPut, "/topicmaps/"+c, counterMap(1), map[string]string{"Content-Type": "application/xtm+xml"})
		require.Equal(t, http.StatusOK, code, "%s", answer)
		out, err := exec.Command("tmshare-client", "--store", s.follower(), "subscribe", s.nodes[0].url()+"/topicmaps/"+c, "--as", "of-"+c).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var over atomic.Bool
	acknowledged := map[string]map[int]int{"a": {}, "b": {}} // how often
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(testenv.Seed(), uint64(w)))
			for c := collections[w%2]; !over.Load(); {
				if n := s.count(c, rng); n > 0 {
					mu.Lock()
					acknowledged[c][n]++
					mu.Unlock()
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(testenv.Seed(), 99))
	kinds := map[string]int{}
	for range testenv.Rounds(4, 200) {
		i := 1 + rng.IntN(len(s.nodes)-1) // links lead to the first
		time.Sleep(time.Duration(200+rng.IntN(400)) * time.Millisecond)
		p := s.nodes[i]
		switch kind := []string{"killed", "stopped", "database killed"}[rng.IntN(3)]; kind {
		case "killed":
			kinds[kind]++
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
			s.start(i)
		case "stopped": // for longer than its lease
			kinds[kind]++
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
			time.Sleep(6 * time.Second)
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
		default:
			kinds[kind]++
			database.Kill()
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			database.Run()
		}
	}
	time.Sleep(time.Second)
	over.Store(true)
	all.Wait()
	out, err := exec.Command("tmshare-client", "--store", s.follower(), "sync").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, c := range collections {
		last := slices.Max(append(slices.Collect(maps.Keys(acknowledged[c])), 0))
		require.Positive(t, last)
		for n, times := range acknowledged[c] {
			assert.Equal(t, 1, times, "%s: %d was acknowledged to several", c, n)
		}
		log := s.log(c)
		slices.Reverse(log)
		require.GreaterOrEqual(t, len(log), last)
		for i, n := range log {
			require.Equal(t, i+1, n, "%s: each number is in the log once, and in order", c)
		}
		out, err := exec.Command("tmshare-client", "--store", s.follower(), "verify", "of-"+c).CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s: %d numbers, %d of them acknowledged; %v", c, len(log), len(acknowledged[c]), kinds)
	}
}
