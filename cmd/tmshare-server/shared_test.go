package main

import (
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
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

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

const (
	sharedToken = "0123456789abcdef"
	counter     = "http://psi.example.org/counter"
)

// sharing are server processes on one database, behind a balancer.
type sharing struct {
	t        *testing.T
	dir      string
	nodes    []*process
	ended    []chan struct{} // closed when the process has ended
	balancer *httptest.Server
	pause    time.Duration // pause between two numbers of one writer
	restarts int           // of processes that ended by themselves when they were started
}

// share starts processes on a database. They find it at store, which may lead through something that makes faults.
func share(t *testing.T, database, store string, n int) *sharing {
	t.Helper()
	var nodes []*process
	for range n {
		nodes = append(nodes, &process{store: store, address: freeAddress(t)})
	}
	return shareAt(t, database, nodes)
}

// shareAt starts processes with addresses of their own, each with its own path to the database.
func shareAt(t *testing.T, database string, nodes []*process) *sharing {
	t.Helper()
	s := &sharing{t: t, dir: t.TempDir(), nodes: nodes, ended: make([]chan struct{}, len(nodes))}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "tokens"), []byte(sharedToken), 0o600))
	for _, at := range []string{database, follower(database)} {
		out, err := exec.Command("tmshare-server", "migrate", "--store", at).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for i, p := range s.nodes {
		p.dir = filepath.Join(s.dir, fmt.Sprint("n", i))
	}
	s.balancer = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", s.nodes[0].address },
		Transport: &balancing{s: s, to: &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: 5 * time.Second}},
		ErrorLog:  log.New(io.Discard, "", 0),
	})
	t.Cleanup(s.balancer.Close)
	t.Cleanup(func() {
		for i, p := range s.nodes {
			if s.kill(i); t.Failed() {
				t.Logf("node %d:\n%s", i, tail(p.log.String()))
			}
		}
	})
	for i := range s.nodes {
		s.start(i)
	}
	return s
}

// balancing takes a request to a node that accepts connections, beginning with the next one each time.
type balancing struct {
	s    *sharing
	next atomic.Int64
	to   http.RoundTripper
}

func (b *balancing) RoundTrip(r *http.Request) (res *http.Response, err error) {
	first := b.next.Add(1)
	for i := range b.s.nodes {
		r.URL.Host = b.s.nodes[(int(first)+i)%len(b.s.nodes)].address
		res, err = b.to.RoundTrip(r)
		var refused *net.OpError
		if err == nil || !errors.As(err, &refused) || refused.Op != "dial" {
			return res, err
		}
	}
	return nil, err
}

// follower is the address of the store of a node that follows, in the database of another one.
func follower(store string) string { return store + "&search_path=follower" }

// start starts a process, again and again until it serves.
func (s *sharing) start(i int) {
	p := s.nodes[i]
	for begun := time.Now(); ; s.restarts++ {
		require.Less(s.t, time.Since(begun), time.Minute, "node %d does not start", i)
		p.cmd = exec.Command("tmshare-server", "serve", "--store", p.store, "--listen", p.address, "--data", p.dir, "--interval", "1s",
			"--base-url", s.balancer.URL, "--token-file", filepath.Join(s.dir, "tokens"), "--document-size", "20", "--shutdown-grace", "2s")
		p.cmd.Stderr = &p.log
		require.NoError(s.t, p.cmd.Start())
		ended, cmd := make(chan struct{}), p.cmd
		s.ended[i] = ended
		go func() {
			_ = cmd.Wait()
			close(ended)
		}()
		for over := false; !over; {
			if code, _, _ := s.request(i, http.MethodGet, "/healthz", "", nil); code == http.StatusOK {
				return
			}
			select {
			case <-ended:
				over = true
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// kill kills a process, if it was started, and waits for its end.
func (s *sharing) kill(i int) {
	if s.ended[i] == nil {
		return
	}
	_ = s.nodes[i].cmd.Process.Kill()
	<-s.ended[i]
}

// patient gives up on a process that stands still.
var patient = &http.Client{Timeout: 20 * time.Second}

// anyNode is the balancer.
const anyNode = -1

// request sends a request to a process. The code is 0 without an answer.
func (s *sharing) request(i int, method, path, body string, header map[string]string) (code int, answer []byte, h http.Header) {
	at := s.balancer.URL
	if i != anyNode {
		at = s.nodes[i].url()
	}
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, at+path, sent)
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

// count adds one to the counter of a collection, if no other writer has done so since it was read. It returns the
// acknowledged number, or 0.
func (s *sharing) count(collection string, rng *rand.Rand) int {
	code, _, h := s.request(anyNode, http.MethodGet, "/topicmaps/"+collection, "", nil)
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

// get returns a document. It retries if the server requests it, because a connection to the database was cut.
func (s *sharing) get(path string) []byte {
	for tries := 0; ; tries++ {
		code, document, h := s.request(anyNode, http.MethodGet, path, "", nil)
		if code == http.StatusServiceUnavailable && h.Get("Retry-After") != "" && tries < 20 {
			continue
		}
		require.Equal(s.t, http.StatusOK, code, "%s: %s", path, document)
		return document
	}
}

// log returns the numbers of the counter in the log of a collection, the newest first.
func (s *sharing) log(collection string) (all []int) {
	last := ""
	for path := "/topicmaps/" + collection + "/fragments"; path != ""; {
		document := s.get(path)
		for _, link := range fragmentLink.FindAllSubmatch(document, -1) {
			at := strings.TrimPrefix(string(link[1]), s.balancer.URL)
			if at == last {
				continue
			}
			last = at
			found := counterName.FindSubmatch(s.get(at))
			if found == nil { // a topic that the counter mentions
				continue
			}
			n, err := strconv.Atoi(string(found[1]))
			require.NoError(s.t, err)
			all = append(all, n)
		}
		path = ""
		if link := archiveLink.FindSubmatch(document); link != nil {
			path = strings.TrimPrefix(string(link[1]), s.balancer.URL)
		}
	}
	return all
}

// Links of a fragments feed: to the fragment of an entry, and to the document before.
var (
	fragmentLink = regexp.MustCompile(`<link rel="alternate"[^>]* href="([^"]*/fragments/[0-9a-f-]+\.xtm21)"`)
	archiveLink  = regexp.MustCompile(`<link rel="prev-archive"[^>]* href="([^"]*)"`)
)

// counting has the answers to writers.
type counting struct {
	*sharing
	mu           sync.Mutex
	acknowledged map[string]map[int]int // by collection and number: their number
	over         atomic.Bool
	all          sync.WaitGroup
}

// countOn makes collections, and has two writers count in each, until stop is called.
func (s *sharing) countOn(collections ...string) *counting {
	c := &counting{sharing: s, acknowledged: map[string]map[int]int{}}
	for at, name := range collections {
		code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/"+name, "{}", map[string]string{"Content-Type": "application/json"})
		require.Equal(s.t, http.StatusCreated, code, "%s", answer)
		code, answer, _ = s.request(0, http.MethodPut, "/topicmaps/"+name, counterMap(1), map[string]string{"Content-Type": "application/xtm+xml"})
		require.Equal(s.t, http.StatusOK, code, "%s", answer)
		c.acknowledged[name] = map[int]int{}
		for w := range 2 {
			rng := rand.New(rand.NewPCG(testenv.Seed(), uint64(2*at+w)))
			c.repeat(s.pause, func() {
				if n := s.count(name, rng); n > 0 {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.acknowledged[name][n]++
				}
			})
		}
	}
	return c
}

// repeat does something again and again, until all is over.
func (c *counting) repeat(pause time.Duration, do func()) {
	c.all.Go(func() {
		for !c.over.Load() {
			do()
			time.Sleep(pause)
		}
	})
}

// last returns the last number that was acknowledged.
func (c *counting) last(collection string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Max(append(slices.Collect(maps.Keys(c.acknowledged[collection])), 0))
}

// stop ends the counting. Each acknowledged number is in the log once, and none is missing.
func (c *counting) stop() {
	c.over.Store(true)
	c.all.Wait()
	for name, acknowledged := range c.acknowledged {
		last := c.last(name)
		require.Positive(c.t, last)
		for n, times := range acknowledged {
			assert.Equal(c.t, 1, times, "%s: %d was acknowledged to several", name, n)
		}
		log := c.log(name)
		slices.Reverse(log)
		require.GreaterOrEqual(c.t, len(log), last)
		for i, n := range log {
			require.Equal(c.t, i+1, n, "%s: each number is in the log once, and in order", name)
		}
		c.t.Logf("%s: %d numbers, %d of them acknowledged", name, len(log), len(acknowledged))
	}
}

// copying is a client that follows collections, with the store of its arguments.
type copying struct {
	t      *testing.T
	args   []string
	rounds atomic.Int64
}

func (s *sharing) copyTo(args []string, collections ...string) *copying {
	c := &copying{t: s.t, args: args}
	for _, name := range collections {
		c.must("subscribe", s.balancer.URL+"/topicmaps/"+name, "--as", "of-"+name)
	}
	return c
}

func (c *copying) run(args ...string) ([]byte, error) {
	return exec.Command("tmshare-client", append(slices.Clone(c.args), args...)...).CombinedOutput()
}

func (c *copying) sync() {
	if _, err := c.run("sync", "--quiet"); err == nil {
		c.rounds.Add(1)
	}
}

// must carries out a command, again where a connection to the database was cut: that of the client, or of the server.
func (c *copying) must(command ...string) (out string) {
	for range 20 {
		answer, err := c.run(command...)
		if out = string(answer); err == nil {
			return out
		}
		if !strings.Contains(out, "the database cannot be reached") && !strings.Contains(out, "503 Service Unavailable") {
			break
		}
	}
	require.FailNow(c.t, "the command fails", "%s: %s", command, out)
	return ""
}

// prove brings the copies in step, and proves them equal. Connections to the database may be cut meanwhile.
func (c *copying) prove() {
	require.Contains(c.t, c.must("sync"), "proven")
	c.must("verify", "--full")
}

// walker reads the feed of a collection back to its beginning, again and again.
type walker struct {
	s          *sharing
	collection string
	before     []string                     // the entries of the last walk, the newest first
	kept       map[string][sha256.Size]byte // documents that never change, as they were
	walks      int
}

func (s *sharing) walker(collection string) *walker {
	return &walker{s: s, collection: collection, before: []string{}, kept: map[string][sha256.Size]byte{}}
}

func (w *walker) walk() {
	entries := []string{}
	for path := "/topicmaps/" + w.collection + "/fragments"; path != ""; {
		code, document, h := w.s.request(anyNode, http.MethodGet, path, "", nil)
		if code != http.StatusOK {
			return // it is tried again
		}
		if strings.Contains(h.Get("Cache-Control"), "immutable") {
			now := sha256.Sum256(document)
			if was, ok := w.kept[path]; ok {
				assert.Equal(w.s.t, was, now, "%s has changed", path)
			}
			w.kept[path] = now
		}
		var feed struct {
			Entries []struct {
				ID string `xml:"id"`
			} `xml:"entry"`
			Links []struct {
				Rel  string `xml:"rel,attr"`
				Href string `xml:"href,attr"`
			} `xml:"link"`
		}
		if !assert.NoError(w.s.t, xml.Unmarshal(document, &feed), path) {
			return
		}
		for _, e := range feed.Entries {
			entries = append(entries, e.ID)
		}
		path = ""
		for _, l := range feed.Links {
			if l.Rel == "prev-archive" {
				path = strings.TrimPrefix(l.Href, w.s.balancer.URL)
			}
		}
	}
	w.walks++
	once := map[string]bool{}
	for _, id := range entries {
		assert.False(w.s.t, once[id], "%s is in the feed of %s twice", id, w.collection)
		once[id] = true
	}
	if assert.GreaterOrEqual(w.s.t, len(entries), len(w.before), "entries of %s are lost", w.collection) {
		assert.Equal(w.s.t, w.before, entries[len(entries)-len(w.before):], "what was in the feed of %s stays as it is", w.collection)
	}
	w.before = entries
}

// Writers count on three processes, readers walk the feeds and clients follow them, while processes are killed and
// stopped at random, the database is killed, and connections to it are cut. Nothing that was acknowledged is lost or
// doubled, readers see each entry once, and all copies are proven.
func TestProcessesOnOneDatabaseLoseAndDoubleNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database := pgserver.Start(t, "fsync=off")
	cutter := pgserver.NewCutter(t, database.URL(), 30_000, 1_000_000)
	s := share(t, database.URL(), cutter.URL(), 3)
	c := s.countOn("a", "b")
	copies := []*copying{
		s.copyTo([]string{"--store", follower(cutter.URL())}, "a", "b"),
		s.copyTo([]string{"--data", filepath.Join(s.dir, "copy")}, "a", "b"),
	}
	walkers := []*walker{s.walker("a"), s.walker("b")}
	for _, w := range walkers {
		c.repeat(50*time.Millisecond, w.walk)
	}
	for _, follows := range copies {
		c.repeat(300*time.Millisecond, follows.sync)
	}
	rng := rand.New(rand.NewPCG(testenv.Seed(), 99))
	faults := map[string]int{}
	for range testenv.Rounds(6, 200) {
		i := rng.IntN(len(s.nodes))
		time.Sleep(time.Duration(200+rng.IntN(600)) * time.Millisecond)
		kind := []string{"killed", "stopped", "database killed", "cut", "cut", "killed"}[rng.IntN(6)]
		faults[kind]++
		switch kind {
		case "killed":
			s.kill(i)
			s.start(i)
		case "stopped": // for longer than its lease
			require.NoError(t, s.nodes[i].cmd.Process.Signal(syscall.SIGSTOP))
			time.Sleep(6 * time.Second)
			require.NoError(t, s.nodes[i].cmd.Process.Signal(syscall.SIGCONT))
		case "cut":
			cutter.CutAll()
		default:
			database.Kill()
			time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			database.Run()
		}
	}
	time.Sleep(2 * time.Second)
	c.stop()
	for _, follows := range copies {
		follows.prove()
	}
	for _, w := range walkers {
		before := w.walks
		for range 10 { // a connection may be cut
			if w.walk(); w.walks > before {
				break
			}
		}
		assert.Positive(t, before)
		assert.Greater(t, w.walks, before)
	}
	assert.Positive(t, copies[0].rounds.Load()+copies[1].rounds.Load())
	t.Logf("%v; %d connections cut; %d and %d walks; %d and %d rounds of copies; %d restarts", faults, cutter.Cuts.Load(),
		walkers[0].walks, walkers[1].walks, copies[0].rounds.Load(), copies[1].rounds.Load(), s.restarts)
}

// The primary is killed and its synchronous standby promoted. The processes continue with that without intervention,
// with all acknowledged changes.
func TestProcessesGoOnWithAPromotedStandby(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	primary := pgserver.Start(t, "fsync=off", "synchronous_standby_names=*")
	standby := primary.Standby()
	both := "postgres://tmshare@/postgres?" + neturl.Values{"host": {primary.Dir() + "," + standby.Dir()}, "target_session_attrs": {"read-write"}}.Encode()
	s := share(t, both, both, 2)
	c := s.countOn("a")
	copy := s.copyTo([]string{"--data", filepath.Join(s.dir, "copy")}, "a")
	reaches := func(n int) func() bool { return func() bool { return c.last("a") >= n } }
	ready := func(status int) func() bool {
		return func() bool {
			for i := range s.nodes {
				if code, _, _ := s.request(i, http.MethodGet, "/readyz", "", nil); code != status {
					return false
				}
			}
			return true
		}
	}
	testenv.Eventually(t, reaches(10))
	testenv.Eventually(t, ready(http.StatusOK))
	before := s.opened(0, "a")
	require.Len(t, before, 1)
	primary.Kill()
	testenv.Eventually(t, ready(http.StatusServiceUnavailable))
	standby.Promote()
	testenv.Eventually(t, ready(http.StatusOK))
	testenv.Eventually(t, reaches(c.last("a")+10))
	testenv.Eventually(t, func() bool { now := s.opened(1, "a"); return len(now) == 2 && now[1] == before[0] }, "followers are told that the database has another history")
	c.stop()
	copy.prove()
}

// Collections are renamed through one process, then the other, while writers and followers continue at the first name
// through both. The other process knows a new name from its next answer on: the former address redirects readers,
// writers and waiting requests, and no acknowledged change is lost.
func TestRenamesBesideAnotherProcess(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	database := pgserver.Start(t, "fsync=off")
	s := share(t, database.URL(), database.URL(), 2)
	c := s.countOn("n0")
	code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/all", `{"derivedFrom": ["n0"]}`, map[string]string{"Content-Type": "application/json"})
	require.Equal(t, http.StatusCreated, code, "%s", answer)
	copies := []*copying{
		s.copyTo([]string{"--store", follower(database.URL())}, "n0", "all"),
		s.copyTo([]string{"--data", filepath.Join(s.dir, "copy")}, "n0", "all"),
	}
	for _, follows := range copies {
		c.repeat(300*time.Millisecond, follows.sync)
	}
	for i := range testenv.Rounds(6, 100) {
		name, to, other := fmt.Sprint("n", i), fmt.Sprint("n", i+1), (i+1)%2
		before := c.last("n0")
		testenv.Eventually(t, func() bool { return c.last("n0") > before })
		client, err := admin.New(s.nodes[i%2].url(), sharedToken)
		require.NoError(t, err)
		_, err = client.Rename(t.Context(), name, to, "")
		require.NoError(t, err)
		for _, former := range []string{name, "n0"} {
			for method, path := range map[string]string{http.MethodGet: "/fragments", http.MethodPut: "", http.MethodHead: "/snapshots/current.xtm21"} {
				r, err := http.NewRequest(method, s.nodes[other].url()+"/topicmaps/"+former+path, strings.NewReader(counterMap(-1)))
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+sharedToken)
				r.Header.Set("Content-Type", "application/xtm+xml")
				r.Header.Set("Prefer", "wait=5")
				res, err := http.DefaultTransport.RoundTrip(r)
				require.NoError(t, err)
				res.Body.Close()
				require.Equal(t, http.StatusPermanentRedirect, res.StatusCode, "%s %s%s", method, former, path)
				require.Equal(t, s.balancer.URL+"/topicmaps/"+to+path, res.Header.Get("Location"))
			}
		}
		code, answer, _ := s.request(other, http.MethodGet, "/topicmaps/"+to+"/fragments", "", nil)
		require.Equal(t, http.StatusOK, code, "%s", answer)
	}
	before := c.last("n0")
	testenv.Eventually(t, func() bool { return c.last("n0") > before }, "writers go on")

	// Requests that wait at the other process are redirected to the new name at once.
	code, answer, _ = s.request(0, http.MethodPut, "/topicmaps/still", "{}", map[string]string{"Content-Type": "application/json"})
	require.Equal(t, http.StatusCreated, code, "%s", answer)
	code, _, h := s.request(1, http.MethodGet, "/topicmaps/still/fragments", "", nil)
	require.Equal(t, http.StatusOK, code)
	led := make(chan string)
	go func() {
		r, _ := http.NewRequest(http.MethodGet, s.nodes[1].url()+"/topicmaps/still/fragments", nil)
		r.Header.Set("If-None-Match", h.Get("ETag"))
		r.Header.Set("Prefer", "wait=60")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			led <- err.Error()
			return
		}
		res.Body.Close()
		led <- fmt.Sprint(res.StatusCode, " ", res.Header.Get("Location"))
	}()
	testenv.Eventually(t, func() bool {
		_, metrics, _ := s.request(1, http.MethodGet, "/metrics", "", nil)
		return regexp.MustCompile(`(?m)^tmshare_http_requests_waiting [1-9]`).Match(metrics)
	})
	client, err := admin.New(s.nodes[0].url(), sharedToken)
	require.NoError(t, err)
	_, err = client.Rename(t.Context(), "still", "moved", "")
	require.NoError(t, err)
	require.Equal(t, "308 "+s.balancer.URL+"/topicmaps/moved/fragments", <-led)
	c.stop()
	counted := c.last("n0")
	for i := range s.nodes {
		testenv.Eventually(t, func() bool {
			_, document, _ := s.request(i, http.MethodGet, "/topicmaps/all/snapshots/current.xtm21", "", nil)
			found := counterName.FindSubmatch(document)
			return found != nil && string(found[1]) == fmt.Sprint(counted)
		}, "what is derived goes on")
	}
	for _, follows := range copies {
		follows.prove()
		require.Positive(t, follows.rounds.Load())
	}
}
