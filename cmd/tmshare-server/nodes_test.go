package main

import (
	"errors"
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
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tmshare/tmshare/internal/testenv"
)

// seedOfNodes is the variable that sets the seed of the script command "nodes".
const seedOfNodes = "TMSHARE_NODES_SEED"

// topology is a configuration of nodes. Node i publishes a collection n<i>, if others follow that.
type topology struct {
	nodes   int
	follows []following
	derives map[int]string // nodes that publish the merge of these collections, as "all<i>"
}

// following is a subscription of a node. The first address is the authority; a replica is served on.
type following struct {
	node       int
	at         []int
	collection string
	replicate  bool
}

var topologies = map[string]topology{
	// Peers. Each follows the next one, and publishes the merge of both.
	"ring": {3, []following{{0, []int{1}, "n1", false}, {1, []int{2}, "n2", false}, {2, []int{0}, "n0", false}}, map[int]string{0: "n0,n1", 1: "n1,n2", 2: "n2,n0"}},
	// A hub publishes the merge of its own and its peers' collections, and one of these reads that.
	"star": {4, []following{{0, []int{1}, "n1", false}, {0, []int{2}, "n2", false}, {0, []int{3}, "n3", true}, {3, []int{0}, "all0", false}}, map[int]string{0: "n0,n1,n2,n3"}},
	// Replicas of replicas; the last one derives from its replica.
	"chain": {4, []following{{1, []int{0}, "n0", true}, {2, []int{1}, "n0", true}, {3, []int{2}, "n0", true}}, map[int]string{3: "n0,n3"}},
	// Two replicas, each of which is an address of the other's source too, and a reader of all.
	"mesh": {4, []following{{1, []int{0}, "n0", true}, {2, []int{0, 1}, "n0", true}, {3, []int{0, 2, 1}, "n0", false},
		{3, []int{1}, "n1", false}, {0, []int{1}, "n1", false}, {2, []int{3}, "n3", true}, {1, []int{2}, "n3", false}}, map[int]string{3: "n0,n1,n3", 2: "n0,n3"}},
}

// nodes is the command "nodes TOPOLOGY...": it runs topologies at once, each for some steps.
func nodes(ts *testscript.TestScript, _ bool, args []string) {
	seed := testenv.Seed()
	if given := os.Getenv(seedOfNodes); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		ts.Check(err)
	}
	ts.Logf("%s=%d", seedOfNodes, seed)
	args = args[:testenv.Usual(1, len(args))]
	failed := make([]error, len(args))
	var all sync.WaitGroup
	for i, name := range args {
		all.Go(func() {
			w := &world{topology: topologies[name], rng: rand.New(rand.NewPCG(seed, uint64(i))), dir: ts.MkAbs(name), path: ts.Getenv("PATH"), env: os.Environ()}
			if err := w.run(testenv.Rounds(4, 150)); err != nil {
				failed[i] = fmt.Errorf("%s: %w\n%s", name, err, strings.Join(w.messages, "\n"))
			}
		})
	}
	all.Wait()
	ts.Check(errors.Join(failed...))
}

// world is a topology that runs.
type world struct {
	topology
	rng       *rand.Rand
	dir, path string
	env       []string
	all       []*process
	messages  []string
	kills     int
}

// process is a node. Its address stays when it is started again.
type process struct {
	dir, address string
	store        string    // in a database; "": in the folder
	cmd          *exec.Cmd // nil while it does not run
	log          testenv.Log
}

func (p *process) url() string { return "http://" + p.address }

func (w *world) say(format string, args ...any) {
	w.messages = append(w.messages, fmt.Sprintf(format, args...))
}

func (w *world) run(steps int) (err error) {
	defer func() {
		for i, p := range w.all {
			if p.cmd != nil {
				err = errors.Join(err, p.end(syscall.SIGKILL))
			}
			if err != nil {
				w.say("log of node %d:\n%s", i, tail(p.log.String()))
			}
		}
	}()
	if err := w.begin(); err != nil {
		return err
	}
	for range steps {
		if err := w.step(); err != nil {
			return err
		}
	}
	if w.kills == 0 {
		return errors.New("nothing was killed; choose another seed")
	}
	return w.settle()
}

// begin starts the nodes, publishes their maps, and lets them follow each other.
func (w *world) begin() error {
	for i := range w.nodes {
		address, err := testenv.FreeAddress()
		if err != nil {
			return err
		}
		w.all = append(w.all, &process{dir: filepath.Join(w.dir, fmt.Sprint("n", i)), address: address})
		if err := w.start(i); err != nil {
			return err
		}
		if _, _, err := w.request(http.MethodPut, w.own(i), "{}"); err != nil {
			return err
		}
		if err := w.edit(i); err != nil {
			return err
		}
	}
	derived := func() error {
		for i, from := range w.derives {
			if _, err := w.exec("tmshare-server", "derive", fmt.Sprint("all", i), "--from", from, "--server", w.all[i].url()); err != nil {
				return err
			}
		}
		return nil
	}
	done := false
	for _, f := range w.follows {
		if strings.HasPrefix(f.collection, "all") && !done {
			if err := derived(); err != nil {
				return err
			}
			done = true
		}
		command := "subscribe"
		if f.replicate {
			command = "replicate"
		}
		args := []string{"--data", w.all[f.node].dir, command, "--as", f.collection}
		for _, at := range f.at {
			args = append(args, w.all[at].url()+"/topicmaps/"+f.collection)
		}
		if _, err := w.exec("tmshare-client", args...); err != nil {
			return err
		}
		if _, err := w.exec("tmshare-client", "--data", w.all[f.node].dir, "sync", f.collection); err != nil {
			return err
		}
	}
	if done {
		return nil
	}
	return derived()
}

// step changes a map, kills a node, or starts one again.
func (w *world) step() error {
	i := w.rng.IntN(w.nodes)
	time.Sleep(time.Duration(w.rng.IntN(150)) * time.Millisecond)
	switch {
	case w.all[i].cmd == nil:
		return w.start(i)
	case w.rng.IntN(2) == 0:
		w.say("node %d is killed", i)
		w.kills++
		return w.all[i].end(syscall.SIGKILL)
	}
	return w.edit(i)
}

// settle starts the stopped processes, brings everything in step, and checks it.
func (w *world) settle() error {
	for i, p := range w.all {
		if p.cmd == nil {
			if err := w.start(i); err != nil {
				return err
			}
		}
		if err := w.edit(i); err != nil {
			return err
		}
	}
	for range w.nodes { // as far as a change can have to go
		for _, f := range w.follows {
			if _, err := w.exec("tmshare-client", "--data", w.all[f.node].dir, "sync", f.collection); err != nil {
				return err
			}
		}
	}
	if err := w.quiet(); err != nil {
		return err
	}
	for _, f := range w.follows {
		if out, err := w.exec("tmshare-client", "--data", w.all[f.node].dir, "verify", "--full", f.collection); err != nil {
			return err
		} else if !strings.Contains(out, "equal") {
			return fmt.Errorf("node %d does not say that %s is equal: %s", f.node, f.collection, out)
		}
		if !f.replicate {
			continue
		}
		there, err := w.entries(f.at[0], f.collection)
		if err != nil {
			return err
		}
		if here, err := w.entries(f.node, f.collection); err != nil || here != there {
			return errors.Join(err, fmt.Errorf("the replica of %s at node %d has\n%s\n, its origin\n%s", f.collection, f.node, here, there))
		}
	}
	for i, from := range w.derives {
		if err := w.derived(i, from); err != nil {
			return err
		}
	}
	for _, p := range w.all {
		if err := p.end(syscall.SIGTERM); err != nil {
			return err
		}
		if _, err := w.exec("tmshare-client", "--data", p.dir, "check"); err != nil {
			return err
		}
	}
	return nil
}

// derived checks that a derived collection is the merge of its inputs.
func (w *world) derived(i int, from string) error {
	together := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`
	for _, name := range strings.Split(from, ",") {
		origin, err := strconv.Atoi(name[1:])
		if err != nil {
			return err
		}
		if err := w.download(origin, name); err != nil {
			return err
		}
		together += `<mergeMap href="` + name + `.xtm"/>`
	}
	merged, name := filepath.Join(w.dir, "merged.xtm"), fmt.Sprint("all", i)
	if err := os.WriteFile(merged, []byte(together+"</topicMap>"), 0o600); err != nil {
		return err
	}
	if err := w.download(i, name); err != nil {
		return err
	}
	_, err := w.exec("tmshare-client", "diff", merged, filepath.Join(w.dir, name+".xtm"))
	return err
}

// download keeps a collection of a node in a file with its name.
func (w *world) download(i int, collection string) error {
	_, body, err := w.request(http.MethodGet, w.all[i].url()+"/topicmaps/"+collection+"/snapshots/current.xtm21", "")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, collection+".xtm"), []byte(body), 0o600)
}

// request makes a request that must succeed.
func (w *world) request(method, url, body string) (*http.Response, string, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("TMShare-Max-Delete", "all")
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	}
	return res, string(answer), err
}

// exec runs a program to its end. Its output is part of an error.
func (w *world) exec(program string, args ...string) (output string, err error) {
	w.say("%s %s", program, strings.Join(args, " "))
	cmd, err := w.command(program, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// command returns a program of the test's own folder.
func (w *world) command(program string, args ...string) (*exec.Cmd, error) {
	for _, dir := range filepath.SplitList(w.path) {
		if path := filepath.Join(dir, program); exists(path) {
			return exec.Command(path, args...), nil
		}
	}
	return nil, fmt.Errorf("%s is not in %s", program, w.path)
}

// own returns the address of the collection that a node publishes.
func (w *world) own(i int) string { return fmt.Sprintf("%s/topicmaps/n%d", w.all[i].url(), i) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// start starts a node, and waits until it answers.
func (w *world) start(i int) (err error) {
	p := w.all[i]
	w.say("node %d is started at %s", i, p.address)
	if p.cmd, err = w.command("tmshare-server", "serve", "--data", p.dir, "--listen", p.address, "--interval", "100ms"); err != nil {
		return err
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return err
	}
	for range 3000 {
		if _, _, err = w.request(http.MethodGet, p.url()+"/healthz", ""); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("node %d does not answer: %w", i, err)
}

// end ends a node, and waits for that.
func (p *process) end(by syscall.Signal) error {
	cmd := p.cmd
	p.cmd = nil
	err := cmd.Process.Signal(by)
	if ended := cmd.Wait(); by == syscall.SIGTERM {
		err = errors.Join(err, ended)
	}
	return err
}

// edit publishes a version of a node's own map. The maps share topics, and their identifiers vary.
func (w *world) edit(i int) error {
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="type"><subjectIdentifier href="http://psi.example.org/type"/></topic>`
	for n := range 6 {
		if w.rng.IntN(4) == 0 {
			continue
		}
		doc += fmt.Sprintf(`<topic id="t%d"><subjectIdentifier href="http://psi.example.org/%[1]d"/>`, n)
		if w.rng.IntN(4) == 0 {
			doc += fmt.Sprintf(`<subjectIdentifier href="http://psi.example.org/also-%d"/>`, n/2)
		}
		doc += fmt.Sprintf(`<instanceOf><topicRef href="#type"/></instanceOf><name><value>Name %d of node %d</value></name></topic>`, w.rng.IntN(100), i)
	}
	w.say("the map of node %d changes", i)
	_, _, err := w.request(http.MethodPut, w.own(i), doc+"</topicMap>")
	return err
}

// entriesOfFeeds matches the entries of a feed.
var entriesOfFeeds = regexp.MustCompile(`(?s)<entry[ >].*?</entry>`)

// links are the replica's own.
var links = regexp.MustCompile(`<link [^>]*>`)

// entries returns the entries of a feed, the newest first.
func (w *world) entries(i int, collection string) (string, error) {
	_, body, err := w.request(http.MethodGet, w.all[i].url()+"/topicmaps/"+collection+"/fragments", "")
	return links.ReplaceAllString(strings.Join(entriesOfFeeds.FindAllString(body, -1), "\n"), ""), err
}

// feeds returns the entries of everything that is published.
func (w *world) feeds() (all string, err error) {
	add := func(i int, collection string) {
		if err == nil {
			var entries string
			entries, err = w.entries(i, collection)
			all += fmt.Sprintf("%d %s\n%s\n", i, collection, entries)
		}
	}
	for i := range w.all {
		add(i, fmt.Sprint("n", i))
	}
	for _, i := range slices.Sorted(maps.Keys(w.derives)) {
		add(i, fmt.Sprint("all", i))
	}
	for _, f := range w.follows {
		if f.replicate {
			add(f.node, f.collection)
		}
	}
	return all, err
}

// quiet waits until there are no publications for the time of derived collections, and of many rounds.
func (w *world) quiet() error {
	const pause = 2500 * time.Millisecond
	before, err := w.feeds()
	for range 20 {
		if err != nil {
			return err
		}
		time.Sleep(pause)
		var now string
		if now, err = w.feeds(); now == before && err == nil {
			return nil
		}
		before = now
	}
	return errors.New("something is still published, though nothing has changed")
}

func tail(log string) string { return log[max(0, len(log)-2000):] }
