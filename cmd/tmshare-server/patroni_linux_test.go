package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// cluster is that of docs/patroni.md. Its machines are addresses of the loopback interface.
type cluster struct {
	t        *testing.T
	dir      string
	guide    string // the document, with the addresses of the machines, and a password
	machines []*machine
}

// machine has etcd, Patroni and PostgreSQL. All of its processes are at work in its folder, or below that.
type machine struct {
	*cluster
	name, address, dir string
	etcd               *exec.Cmd
}

// clusterDisk is the size in bytes of the disk for the database of a machine.
const clusterDisk = 2 << 30

const clusterPassword = "word-of-the-cluster"

// newCluster starts a cluster as the guide has it, until the test ends. Without its programs the test is skipped.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	for _, name := range []string{"patroni", "etcd", "haproxy", "psql"} {
		testenv.Command(t, name)
	}
	if _, err := os.Stat("/usr/lib/postgresql/15/bin/initdb"); err != nil {
		t.Skip("NOT CHECKED: PostgreSQL 15, which the guide names, is not installed (Debian: postgresql)")
	}
	c := &cluster{t: t}
	var err error
	c.dir, err = os.MkdirTemp("", "patroni")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(c.dir, 0o755))
	t.Cleanup(func() {
		c.signal(c.dir, "", syscall.SIGKILL)
		if !t.Failed() {
			for _, m := range c.machines {
				_ = syscall.Unmount(m.data(), syscall.MNT_DETACH)
			}
			os.RemoveAll(c.dir)
		}
	})
	// No other test has this port, and so this network.
	_, port, _ := strings.Cut(freeAddress(t), ":")
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	network := fmt.Sprintf("127.%d.%d.", number/250, number%250+1)
	c.guide = strings.NewReplacer("10.0.0.0/24", "127.0.0.0/8", "10.0.0.", network, "SECRET", clusterPassword).
		Replace(readDocument(t, "docs/patroni.md"))
	for i := range 3 {
		name := fmt.Sprint("db", i+1)
		c.machines = append(c.machines, &machine{cluster: c, name: name, address: fmt.Sprint(network, i+1),
			dir: filepath.Join(c.dir, name)})
	}
	for _, m := range c.machines {
		for _, dir := range []string{m.dir, m.data(), filepath.Join(m.dir, "etcd")} {
			require.NoError(t, os.Mkdir(dir, 0o700))
			if dir == m.data() {
				_ = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", clusterDisk)) // fillDisk asks
			}
			_, err := pgserver.AsUser(dir)
			require.NoError(t, err)
		}
		m.start()
	}
	testenv.Eventually(t, c.healthy, "the cluster has no leader and two standbys")
	return c
}

// block returns the block of the guide in a language, as it is for the machine at an address.
func (c *cluster) block(language string, number int, name, address, dir string) string {
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(c.guide, -1)
	return strings.NewReplacer("NAME", name, "ADDRESS", address, "/var/lib/etcd", filepath.Join(dir, "etcd"),
		"/var/lib/postgresql/15", filepath.Join(dir, "data"), "/var/lib/postgresql", dir, "/var/run/postgresql",
		dir).Replace(blocks[number][1])
}

func (m *machine) data() string { return filepath.Join(m.dir, "data") }

// run starts a program of the machine.
func (m *machine) run(program string, args ...string) *exec.Cmd {
	m.t.Helper()
	log, err := os.OpenFile(filepath.Join(m.cluster.dir, m.name+"."+program), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(m.t, err)
	defer log.Close()
	attributes, err := pgserver.AsUser("")
	require.NoError(m.t, err)
	attributes.Pdeathsig = syscall.SIGKILL // it ends with the test
	if program == "patroni" {
		attributes.Pdeathsig = syscall.SIGTERM // it ends PostgreSQL first
	}
	cmd := exec.Command(testenv.Command(m.t, program), args...)
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = attributes, m.dir, log, log
	cmd.Env = append(os.Environ(), "HOME="+m.dir)
	require.NoError(m.t, cmd.Start())
	go func() { _ = cmd.Wait() }()
	return cmd
}

func (m *machine) file(name, content string) string {
	path := filepath.Join(m.dir, name)
	require.NoError(m.t, os.WriteFile(path, []byte(content), 0o600))
	_, err := pgserver.AsUser(path)
	require.NoError(m.t, err)
	return path
}

// start starts all of the machine.
func (m *machine) start() {
	m.startEtcd()
	m.run("patroni", m.file("patroni.yml", m.block("yaml", 1, m.name, m.address, m.dir)))
}

func (m *machine) startEtcd() {
	m.etcd = m.run("etcd", "--config-file", m.file("etcd.yml", m.block("yaml", 0, m.name, m.address, m.dir)))
}

// signal sends a signal to all processes with their working directory in a folder or below it, and with a word in their
// command line. It returns their number.
func (c *cluster) signal(dir, word string, by syscall.Signal) (n int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(c.t, err)
	for _, process := range all {
		at, err := os.Readlink(filepath.Join(process, "cwd"))
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if err == nil && (at == dir || strings.HasPrefix(at, dir+"/")) && strings.Contains(string(line), word) {
			pid, err := strconv.Atoi(filepath.Base(process))
			require.NoError(c.t, err)
			_ = syscall.Kill(pid, by) // it may have ended
			n++
		}
	}
	return n
}

// crash ends all of the machine at once.
func (m *machine) crash() {
	m.signal(m.dir, "", syscall.SIGSTOP)
	for m.signal(m.dir, "", syscall.SIGKILL) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// member is Patroni's description of a member.
type member struct {
	Name, Role, State string
	Timeline          int
	Lag               any // a number, or "unknown"
}

var quick = &http.Client{Timeout: 3 * time.Second}

// members requests the members from the first Patroni that answers.
func (c *cluster) members() (all map[string]member) {
	for _, m := range c.machines {
		res, err := quick.Get("http://" + m.address + ":8008/cluster")
		if err != nil {
			continue
		}
		var answer struct{ Members []member }
		err = json.NewDecoder(res.Body).Decode(&answer)
		res.Body.Close()
		if err == nil {
			all = map[string]member{}
			for _, m := range answer.Members {
				all[m.Name] = m
			}
			return all
		}
	}
	return nil
}

// healthy reports whether one leads, and both others follow it, one of them synchronously.
func (c *cluster) healthy() bool {
	roles, timelines := map[string]int{}, map[int]bool{}
	for _, m := range c.members() {
		if m.State != "running" && m.State != "streaming" || m.Role != "leader" && fmt.Sprint(m.Lag) != "0" && m.Timeline == 0 {
			return false
		}
		roles[m.Role]++
		timelines[m.Timeline] = true
	}
	return len(timelines) == 1 && maps.Equal(roles, map[string]int{"leader": 1, "sync_standby": 1, "replica": 1})
}

// with returns a machine with a role, and waits for it.
func (c *cluster) with(role string) (found *machine) {
	c.t.Helper()
	testenv.Eventually(c.t, func() bool {
		for name, m := range c.members() {
			if m.Role == role && m.State != "stopped" {
				i := slices.IndexFunc(c.machines, func(m *machine) bool { return m.name == name })
				found = c.machines[i]
			}
		}
		return found != nil
	}, "no machine is", role)
	return found
}

// fillDisk takes all space from the database of the machine, and returns a function that frees it. ok: it has a disk of
// its own.
func (m *machine) fillDisk() (free func(), ok bool) {
	var s syscall.Statfs_t
	require.NoError(m.t, syscall.Statfs(m.data(), &s))
	size := func(bytes int64) error {
		return syscall.Mount("tmpfs", m.data(), "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", bytes))
	}
	if int64(s.Blocks)*s.Bsize != clusterDisk {
		return nil, false
	}
	for { // until no process wrote meanwhile
		require.NoError(m.t, syscall.Statfs(m.data(), &s))
		if size(int64(s.Blocks-s.Bfree)*s.Bsize) == nil {
			return func() { require.NoError(m.t, size(clusterDisk)) }, true
		}
	}
}

// posting has the answers to writers, each of which publishes topics of its own at one server.
type posting struct {
	*sharing
	mu           sync.Mutex
	acknowledged [][]int         // by writer, in order
	refusals     map[string]int  // their number, by answer
	seen         map[string]bool // entries that some server has shown
	last         time.Time       // of the acknowledgements
	longest      time.Duration   // between two of them
	all          sync.WaitGroup
	over         chan struct{}
}

func (s *sharing) post(writers int) *posting {
	p := &posting{sharing: s, acknowledged: make([][]int, writers), refusals: map[string]int{}, seen: map[string]bool{},
		over: make(chan struct{})}
	code, answer, _ := s.request(0, http.MethodPut, "/topicmaps/p", `{"documentSize": 100}`,
		map[string]string{"Content-Type": "application/json"})
	require.Equal(s.t, http.StatusCreated, code, "%s", answer)
	p.begin()
	for w := range writers {
		p.repeat(0, func(n int) { p.write(w, n) })
	}
	for i := range s.nodes {
		p.repeat(200*time.Millisecond, func(int) { p.look(i) })
	}
	return p
}

// begin has the time between acknowledgements measured from now on, and refusals collected.
func (p *posting) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.longest, p.refusals = time.Now(), 0, map[string]int{}
}

func (p *posting) repeat(pause time.Duration, do func(n int)) {
	p.all.Go(func() {
		for n := 1; ; n++ {
			do(n)
			select {
			case <-p.over:
				return
			case <-time.After(pause):
			}
		}
	})
}

func postedTopic(w, n int) string { return fmt.Sprintf("http://psi.example.org/%d/%d", w, n) }

func (p *posting) write(w, n int) {
	topic := fmt.Sprintf(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="c"><subjectIdentifier href=%q/><name><value>n%d</value></name></topic></topicMap>`, postedTopic(w, n), n)
	code, answer, _ := p.request(w%len(p.nodes), http.MethodPost, "/topicmaps/p/topics", topic,
		map[string]string{"Content-Type": "application/xtm+xml"})
	p.mu.Lock()
	defer p.mu.Unlock()
	if code != http.StatusOK {
		p.refusals[fmt.Sprintf("%d %s", code, requestID.ReplaceAll(answer, nil))]++
		return
	}
	now := time.Now()
	p.longest, p.last = max(p.longest, now.Sub(p.last)), now
	p.acknowledged[w] = append(p.acknowledged[w], n)
}

// refused returns the number of answers of a form.
func (p *posting) refused(form string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for answer, times := range p.refusals {
		if regexp.MustCompile(form).MatchString(answer) {
			n += times
		}
	}
	return n
}

var requestID = regexp.MustCompile(`,"requestId":"[0-9a-f]*"`)

// written returns the number of acknowledged writes.
func (p *posting) written() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range p.acknowledged {
		n += len(all)
	}
	return n
}

// goesOn waits until each writer, at each server, has more writes acknowledged.
func (p *posting) goesOn() {
	p.t.Helper()
	before := make([]int, len(p.acknowledged))
	for w, all := range p.acks() {
		before[w] = len(all) + 10
	}
	testenv.Eventually(p.t, func() bool {
		for w, all := range p.acks() {
			if len(all) < before[w] {
				return false
			}
		}
		return true
	}, "writers do not go on")
}

func (p *posting) acks() [][]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([][]int, len(p.acknowledged))
	for w := range all {
		all[w] = slices.Clone(p.acknowledged[w])
	}
	return all
}

type postedFeed struct {
	Entries []struct {
		ID      string `xml:"id"`
		TopicSI string `xml:"http://www.egovpt.org/tmshare TopicSI"`
	} `xml:"entry"`
	Links []struct {
		Rel  string `xml:"rel,attr"`
		Href string `xml:"href,attr"`
	} `xml:"link"`
}

// look notes the entries that a server shows.
func (p *posting) look(i int) {
	code, document, _ := p.request(i, http.MethodGet, "/topicmaps/p/fragments", "", nil)
	if code != http.StatusOK {
		return
	}
	var feed postedFeed
	if assert.NoError(p.t, xml.Unmarshal(document, &feed)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range feed.Entries {
			p.seen[e.ID] = true
		}
	}
}

// check compares the acknowledged and the served data with those of each server.
func (p *posting) check() {
	p.t.Helper()
	acks := p.acks()
	p.mu.Lock()
	seen := maps.Clone(p.seen)
	p.mu.Unlock()
	for i := range p.nodes {
		var log []string // topics, the newest first
		ids := map[string]bool{}
		for path := "/topicmaps/p/fragments"; path != ""; {
			code, document, _ := p.request(i, http.MethodGet, path, "", nil)
			require.Equal(p.t, http.StatusOK, code, "%s", document)
			var feed postedFeed
			require.NoError(p.t, xml.Unmarshal(document, &feed))
			for _, e := range feed.Entries {
				require.False(p.t, ids[e.ID], "an entry is in the feed twice")
				ids[e.ID] = true
				log = append(log, e.TopicSI)
			}
			path = ""
			for _, l := range feed.Links {
				if l.Rel == "prev-archive" {
					path = strings.TrimPrefix(l.Href, p.balancer.URL)
				}
			}
		}
		for id := range seen {
			assert.True(p.t, ids[id], "node %d: what was shown is lost: %s", i, id)
		}
		_, snapshot, _ := p.request(i, http.MethodGet, "/topicmaps/p/snapshots/current.xtm21", "", nil)
		at := map[string]int{}
		for n, topic := range log {
			at[topic] = len(log) - n
		}
		held := map[string]string{}
		for _, topic := range regexp.MustCompile(`(?s)href="(http://psi\.example\.org/[^"]*)"/>\s*<name>\s*<value>([^<]*)`).
			FindAllStringSubmatch(string(snapshot), -1) {
			held[topic[1]] = topic[2]
		}
		for w, all := range acks {
			last := 0
			for _, n := range all {
				topic := postedTopic(w, n)
				assert.Equal(p.t, fmt.Sprint("n", n), held[topic], "node %d: what was acknowledged is lost: %s", i, topic)
				assert.Greater(p.t, at[topic], last, "node %d: %s is not in the log, or not in order", i, topic)
				last = at[topic]
			}
		}
	}
}

// sameDigest waits until all servers state the same digest, without writers.
func (p *posting) sameDigest() {
	digests := map[string]bool{}
	for i := range p.nodes {
		code, answer, h := p.request(i, http.MethodGet, "/topicmaps/p/digest", "", nil)
		require.Equal(p.t, http.StatusOK, code, "%s", answer)
		digests[h.Get("TMShare-Digest")] = true
	}
	require.Len(p.t, digests, 1)
}

// A leader is switched over, killed and stopped, and returns; etcd loses its quorum; the leader's disk is full; the
// synchronous standby is suspended. No acknowledged or served data is lost, all continues without intervention, and
// messages name the cause.
func TestClusterOfTheGuideLosesNothing(t *testing.T) {
	if !testenv.Long() {
		t.Skip("it needs Patroni, etcd and HAProxy, and takes minutes: it runs with -long")
	}
	c := newCluster(t)
	t.Setenv("PGPASSWORD", clusterPassword)
	several := regexp.MustCompile(`--store '([^']*)'`).FindStringSubmatch(c.guide)[1]
	create := regexp.MustCompile(`(?s)psql '.*?tmshare"\n`).FindString(c.guide)
	out, err := exec.Command("sh", "-c", create).CombinedOutput()
	require.NoError(t, err, "%s", out)
	testenv.Eventually(t, func() bool { // a standby may come first in the address, and have the database later
		out, err = exec.Command("tmshare-server", "migrate", "--store", several).CombinedOutput()
		return err == nil || !strings.Contains(string(out), "is not there")
	})
	require.NoError(t, err, "%s", out)
	network := strings.TrimSuffix(c.machines[0].address, "1")
	front := &machine{cluster: c, name: "front", address: network + "13", dir: filepath.Join(c.dir, "front")}
	require.NoError(t, os.Mkdir(front.dir, 0o755))
	front.run("haproxy", "-db", "-f", front.file("haproxy.cfg", front.block("haproxy", 0, "", front.address, front.dir)))
	behind := strings.ReplaceAll(regexp.MustCompile("`(postgres://tmshare@ADDRESS[^`]*)`").FindStringSubmatch(c.guide)[1],
		"ADDRESS", front.address)
	s := shareAt(t, several, []*process{
		{address: network + "11:8080", store: several}, {address: network + "12:8080", store: several},
		{address: network + "13:8080", store: behind}})
	s.pause = 500 * time.Millisecond
	counts, p := s.countOn("a"), s.post(4)
	copies := []*copying{
		s.copyTo([]string{"--store", follower(several)}, "a", "p"),
		s.copyTo([]string{"--data", filepath.Join(s.dir, "copy")}, "a", "p"),
	}
	for _, follows := range copies {
		counts.repeat(3*time.Second, follows.sync)
	}
	event := func(name string, do func()) {
		t.Helper()
		begun, before := time.Now(), p.written()
		p.begin()
		do()
		p.goesOn()
		testenv.Eventually(t, c.healthy, "the cluster is not whole again")
		p.goesOn()
		p.mu.Lock()
		longest, refusals := p.longest, p.refusals
		p.mu.Unlock()
		p.check()
		t.Logf("%s: %.1f s, writers waited for %.1f s, %d writes acknowledged", name, time.Since(begun).Seconds(),
			longest.Seconds(), p.written()-before)
		for answer, n := range refusals {
			t.Logf("%d times: %s", n, answer)
		}
	}
	says := func(i int, what string) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			for at, n := range s.nodes {
				if (i < 0 || i == at) && strings.Contains(n.log.String(), what) {
					return true
				}
			}
			return false
		}, "no log says:", what)
	}
	event("switch-over", func() {
		leader, to := c.with("leader"), c.with("sync_standby")
		res, err := http.Post("http://"+leader.address+":8008/switchover", "application/json",
			strings.NewReader(fmt.Sprintf(`{"leader": %q, "candidate": %q}`, leader.name, to.name)))
		require.NoError(t, err)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", answer)
		require.Equal(t, to, c.with("leader"))
	})
	event("the leader is killed, and returns", func() {
		old := c.with("leader")
		old.crash()
		p.goesOn()
		require.NotEqual(t, old, c.with("leader"))
		old.start()
	})
	event("the leader stands still, and returns", func() {
		old := c.with("leader")
		c.signal(old.dir, "", syscall.SIGSTOP)
		p.goesOn()
		c.signal(old.dir, "", syscall.SIGCONT)
	})
	event("etcd has no quorum", func() {
		for _, m := range c.machines[:2] {
			require.NoError(t, m.etcd.Process.Kill())
		}
		testenv.Eventually(t, func() bool {
			for i := range s.nodes {
				if code, _, _ := s.request(i, http.MethodGet, "/readyz", "", nil); code != http.StatusServiceUnavailable {
					return false
				}
			}
			return true
		}, "servers are ready without a leader")
		for i := range s.nodes {
			code, answer, _ := s.request(i, http.MethodGet, "/topicmaps/p/fragments", "", nil)
			require.Equal(t, http.StatusServiceUnavailable, code, "%s", answer)
			require.Contains(t, string(answer), "the database of the server does not answer, or takes no changes")
		}
		says(0, "All that answer are standbys")
		says(2, "the database cannot be reached")
		for _, m := range c.machines[:2] {
			m.startEtcd()
		}
	})
	event("the leader's disk is full", func() {
		free, ok := c.with("leader").fillDisk()
		if !ok {
			t.Log("NOT CHECKED: a full disk: no small one can be made here")
			return
		}
		defer free()
		leader := c.with("leader")
		testenv.Eventually(t, func() bool { // or it ends, when its log does not grow
			return p.refused("507 .*the disk of the store is full") >= 20 || c.with("leader") != leader
		}, "the disk is not full")
		if p.refused("507 ") > 0 {
			says(-1, "Free some space there")
		}
		for i := range s.nodes {
			testenv.Eventually(t, func() bool {
				code, _, _ := s.request(i, http.MethodGet, "/topicmaps/p/fragments", "", nil)
				return code == http.StatusOK
			}, "nothing is read where the disk is full")
		}
	})
	event("the standby that commits wait for stands still", func() {
		standby := c.with("sync_standby")
		require.Positive(t, c.signal(standby.dir, "walreceiver", syscall.SIGSTOP))
		p.goesOn()
		c.signal(standby.dir, "walreceiver", syscall.SIGCONT)
	})
	testenv.Eventually(t, func() bool { return p.written() >= 5000 }, "fewer than 5,000 writes are acknowledged")
	counts.stop()
	close(p.over)
	p.all.Wait()
	p.check()
	p.sameDigest()
	for _, follows := range copies {
		follows.prove()
	}
	t.Logf("%d writes acknowledged, %d entries shown", p.written(), len(p.seen))
}
