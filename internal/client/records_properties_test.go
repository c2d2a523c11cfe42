package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// happening is one step of a history of records: of a server's map, or of a source that
// follows it.
type happening struct {
	what, server, source, n int
}

// whatHappens are the kinds, with how often each comes.
var whatHappens = []struct {
	name   string
	weight int
	do     func(h *publisher, source string, n int) error
}{
	{"edit", 8, func(p *publisher, _ string, n int) error { return p.edit(n) }},
	{"post", 2, func(p *publisher, _ string, n int) error { return p.postTopic(n) }},
	{"delete", 2, func(p *publisher, _ string, n int) error { return p.deleteTopic(n) }},
	{"prune", 1, func(p *publisher, _ string, n int) error { p.origin.prune(p.name, n); return nil }},
	{"resize", 1, func(p *publisher, _ string, n int) error { p.origin.resize(p.name, n); return nil }},
	{"offer", 2, func(p *publisher, _ string, n int) error {
		p.origin.offer(p.name, [][]string{{"xtm1"}, {"xtm2.1"}, {}}[n%3]...)
		return nil
	}},
	{"begin anew", 1, func(p *publisher, _ string, _ int) error { return p.beginAnew() }},
	{"sync", 5, func(p *publisher, source string, _ int) error { return p.round(source, p.client.Sync) }},
	{"replace", 1, func(p *publisher, source string, _ int) error { return p.round(source, p.client.Replace) }},
	{"sync while it changes", 4, (*publisher).syncWhileItChanges},
	{"cancel", 2, func(p *publisher, source string, n int) error { return p.cancelled(source, p.client.Sync, n) }},
	{"cancel a replacement", 1, func(p *publisher, source string, n int) error { return p.cancelled(source, p.client.Replace, n) }},
	{"die", 2, (*publisher).dies},
	{"subscribe again", 1, func(p *publisher, source string, _ int) error {
		require.NoError(p.t, p.client.Unsubscribe(context.Background(), source))
		p.subscribe(source)
		return nil
	}},
	{"restart", 1, func(p *publisher, _ string, _ int) error { p.client.restart(small); return nil }},
}

func (h happening) String() string {
	return fmt.Sprintf("%s %d/%d (%d)", whatHappens[h.what].name, h.server, h.source, h.n)
}

// small makes rounds have several commits.
func small(c *client.Config) { c.Batch, c.Parallel, c.Tries = 4, 3, 2 }

// TestRecordsAreFollowedThroughRandomHistories follows 1 to 3 servers whose maps are edited
// at random, each by the records in all forms and by the fragments. No source is changed
// by what concerns another. In the end, after one round, each is record for record what
// its server has, and "verify" says so too.
func TestRecordsAreFollowedThroughRandomHistories(t *testing.T) {
	var kinds []int
	for i := range whatHappens {
		for range whatHappens[i].weight {
			kinds = append(kinds, i)
		}
	}
	steps := rapid.Custom(func(t *rapid.T) happening {
		return happening{
			rapid.SampledFrom(kinds).Draw(t, "what"), rapid.IntRange(0, 2).Draw(t, "server"),
			rapid.IntRange(0, 3).Draw(t, "source"), rapid.IntRange(1, 6).Draw(t, "n"),
		}
	})
	done := map[string]int{}
	testenv.Check(t, 4, 20, func(r *rapid.T) {
		servers, seed := rapid.IntRange(1, 3).Draw(r, "servers"), rapid.Uint64().Draw(r, "seed")
		plan := rapid.SliceOfN(steps, 15, 50).Draw(r, "steps")
		if !t.Run("", func(t *testing.T) { followRecords(t, servers, seed, plan, done) }) {
			r.FailNow()
		}
	})
	t.Logf("%v", done)
	if !testenv.Race { // which runs few histories
		require.NotZero(t, done["records applied to a source that was there"])
	}
}

// publisher is a server with a map, and what follows it.
type publisher struct {
	t      *testing.T
	name   string // of the collection
	origin *origin
	client *subscriber
	done   map[string]int

	mu     sync.Mutex // of what is edited: it may be in the middle of a round
	tm     *tmdm.TopicMap
	editor *testedit.Editor
	seed   uint64
}

// sources are the names of what follows the server.
func (p *publisher) sources() []string {
	return []string{p.name + "-archived", p.name + "-complete", p.name + "-lists", p.name + "-fragments"}
}

func (p *publisher) subscribe(source string) {
	at := p.origin.URL + "/topicmaps/" + p.name
	switch strings.TrimPrefix(source, p.name) {
	case "-archived":
		at += archived
	case "-complete":
		at += complete
	case "-lists":
		at += lists
	}
	_, err := p.client.Subscribe(context.Background(), at, client.SubscribeOptions{Name: source})
	require.NoError(p.t, err)
}

func newPublisher(t *testing.T, s *subscriber, i int, seed uint64, done map[string]int) *publisher {
	p := &publisher{t: t, name: fmt.Sprintf("m%d", i), origin: newOrigin(t, documentSize(3)), client: s, done: done, seed: seed}
	p.create()
	for _, source := range p.sources() {
		p.subscribe(source)
	}
	return p
}

func (p *publisher) create() {
	var topics strings.Builder
	for n := range 5 {
		fmt.Fprintf(&topics, `<topic id="t%d"><subjectIdentifier href="%s"/><name><value>%d of %s</value></name></topic>`, n, shared(n), n, p.name)
	}
	p.origin.create(p.name, doc(topics.String(), `<topic id="own"><instanceOf><topicRef href="#t0"/></instanceOf></topic>`))
	p.seed++
	p.editor = testedit.New(nil, p.origin.sp(p.name), p.seed)
	p.reread()
}

// reread makes what is edited next of what the server has.
func (p *publisher) reread() {
	sp := p.origin.sp(p.name)
	now := p.origin.get("/topicmaps/" + p.name + "/snapshots/current.xtm21")
	tm, err := xtm.Read(p.t.Context(), strings.NewReader(now), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(p.t, err)
	p.tm, p.editor.Map = tm, tm
}

func (p *publisher) edit(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range n {
		p.editor.Edit()
	}
	p.origin.putAs(p.name, p.document())
	return nil
}

func (p *publisher) document() string {
	var b strings.Builder
	_, err := xtm.Write(&b, p.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(p.origin.sp(p.name))})
	require.NoError(p.t, err)
	return b.String()
}

// any returns a subject identifier of a topic of the map.
func (p *publisher) any(n int) string {
	var all []string
	for t := range p.tm.Topics() {
		for _, si := range t.SubjectIdentifiers() {
			if !strings.Contains(string(si), "topicmaps.org") {
				all = append(all, string(si))
			}
		}
	}
	if len(all) == 0 {
		return shared(n)
	}
	return all[n*7%len(all)]
}

func (p *publisher) postTopic(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.origin.post(p.name, doc(fmt.Sprintf(`<topic><subjectIdentifier href="%s"/><name><value>posted %d</value></name></topic>`, p.any(n), n)))
	p.reread()
	return nil
}

func (p *publisher) deleteTopic(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.origin.remove(p.name, p.any(n))
	p.reread()
	return nil
}

// beginAnew deletes the collection and creates it again: its feeds have other ids.
func (p *publisher) beginAnew() error {
	w := p.origin.ask(http.MethodDelete, "/topicmaps/"+p.name, "", "")
	require.Equal(p.t, http.StatusOK, w.Code, "%s", w.Body)
	p.create()
	return nil
}

func (p *publisher) round(source string, round func(context.Context, string) (*client.Round, error)) error {
	there := p.client.known(source).State != nil
	r, err := round(context.Background(), source)
	if err == nil && there && !r.CleanStart && !strings.HasSuffix(source, "-fragments") {
		p.done["records applied to a source that was there"] += r.Applied
	}
	return err
}

// syncWhileItChanges does a round in which the map is edited between two answers.
func (p *publisher) syncWhileItChanges(source string, n int) error {
	var once sync.Once
	answers := 0
	p.origin.breakWith(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		p.mu.Lock()
		answers++
		now := answers > n
		p.mu.Unlock()
		if now {
			once.Do(func() { _ = p.edit(n) })
		}
		return false
	})
	defer p.origin.breakWith(nil)
	return p.round(source, p.client.Sync)
}

// cancelled does a round that ends with the nth answer.
func (p *publisher) cancelled(source string, round func(context.Context, string) (*client.Round, error), n int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answers := 0
	p.origin.breakWith(func(http.ResponseWriter, *http.Request, http.Handler) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if answers++; answers == 3*n {
			cancel()
		}
		return false
	})
	defer p.origin.breakWith(nil)
	_, err := round(ctx, source)
	if errors.Is(err, context.Canceled) {
		p.done["cancelled"]++
		return nil
	}
	return err
}

// dies does a round after whose nth commit there is no other.
func (p *publisher) dies(source string, n int) error {
	p.client.configure(small, func(c *client.Config) { c.Store = &dyingStore{Store: p.client.db, left: n} })
	defer p.client.configure(small)
	_, err := p.client.Sync(context.Background(), source)
	if errors.Is(err, errDied) {
		p.done["died"]++
		return nil
	}
	return err
}

// here returns the records of each source at the subscriber, and of what is local.
func (s *subscriber) here() map[string]map[string]string {
	all := map[string]map[string]string{}
	require.NoError(s.t, s.db.ReadParts(s.t.Context(), local.Name, func(parts []store.Part) error {
		for _, p := range parts {
			all[p.Name] = contents(s.t, p.Source)
		}
		return nil
	}))
	return all
}

// followRecords runs one history.
func followRecords(t *testing.T, servers int, seed uint64, plan []happening, done map[string]int) {
	s := newSubscriber(t, small)
	_, err := s.local().Ensure(context.Background(), localSP)
	require.NoError(t, err)
	s.importLocal(doc(topic("mine", "mine"), `<topic><subjectIdentifier href="`+shared(1)+`"/><name><value>my name for it</value></name></topic>`), true)
	var all []*publisher
	for i := range servers {
		all = append(all, newPublisher(t, s, i, seed+uint64(1000*i), done))
	}
	for _, h := range plan {
		p := all[h.server%servers]
		source := p.sources()[h.source]
		before := s.here()
		done[whatHappens[h.what].name]++
		require.NoError(t, whatHappens[h.what].do(p, source, h.n), "%v", h)
		for name, now := range s.here() {
			if name != source {
				sameRecords(t, before[name], now, "%s, after %v", name, h)
			}
		}
	}
	for _, p := range all {
		p.origin.offer(p.name)
		for _, source := range p.sources() {
			p.settles(source)
		}
	}
	require.Equal(t, canonical(t, published(t, doc(topic("mine", "mine"), `<topic><subjectIdentifier href="`+shared(1)+`"/><name><value>my name for it</value></name></topic>`), localSP), localSP), s.canonicalOf(local.Name, localSP))
}

// settles asserts that one round brings a source in step.
func (p *publisher) settles(source string) {
	t, s := p.t, p.client
	r, err := s.Sync(context.Background(), source)
	require.NoError(t, err)
	require.Zero(t, r.Quarantined)
	again, err := s.Sync(context.Background(), source)
	require.NoError(t, err)
	require.Equal(t, client.Round{Name: source, Mark: again.Mark}, *again)
	s.hasRecordsOf(p.origin, p.name, source)
	sp := p.origin.sp(p.name)
	tm, err := xtm.Read(context.Background(), strings.NewReader(p.document()), xtm.Options{Base: tmdm.Locator(sp), DropClashes: true})
	require.NoError(t, err)
	var m *fragment.Map
	require.NoError(t, p.origin.db.View(p.t.Context(), p.name, func(v *store.View) (err error) {
		m, err = fragment.NameTopics(context.Background(), tm, v.SP, v.Source())
		return err
	}))
	require.Equal(t, canonical(t, m.TopicMap(), sp), s.canonicalOf(source, sp))
	v, err := s.Verify(context.Background(), source)
	require.NoError(t, err)
	require.True(t, v.Equal, "%v", v.Differences)
}

func (s *subscriber) canonicalOf(source, sp string) string {
	tm, _, err := s.Merged(s.t.Context(), false, source)
	require.NoError(s.t, err)
	return canonical(s.t, tm, sp)
}
