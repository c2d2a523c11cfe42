package followtest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Publisher is a real server of one collection whose map is edited at random, a [Source].
type Publisher struct {
	*node.Origin
	Name string
	rng  *rand.Rand

	mu       sync.Mutex // of the edited map: it may change during a round
	tm       *tmdm.TopicMap
	editor   *testedit.Editor
	seed     uint64
	saved    string // a backup
	restarts int    // into another history, or an older state
	signed   bool   // so is each history of it
	pasts    int    // histories that it has left
	withheld bool   // some formats of records are not offered
	versions int
	watchers []func()
}

// subject is one of those of which all publishers speak.
func subject(i int) string { return fmt.Sprintf("http://psi.example.org/shared/%d", i) }

// start is the map of a publisher: topics of which others speak, a class, and one that has no identifier.
func (p *Publisher) start() string {
	var topics strings.Builder
	for n := range 4 {
		fmt.Fprintf(&topics, `<topic id="t%d"><subjectIdentifier href="%s"/><name><value>%d of %s</value></name></topic>`, n,
			subject(n), n, p.Name)
	}
	return docs.Map(topics.String(), `<topic id="own"><instanceOf><topicRef href="#t0"/></instanceOf></topic>`,
		`<topic id="b"><subjectIdentifier href="http://psi.example.org/b"/>`+
			`<subjectIdentifier href="http://psi.example.org/bb"/>`+
			`<instanceOf><topicRef href="#t1"/></instanceOf></topic>`,
		`<topic id="nameless"><name><value>without an identifier</value></name></topic>`)
}

// NewPublisher starts a server.
func NewPublisher(t testing.TB, seed uint64, change ...func(*server.Config)) *Publisher {
	p := &Publisher{Name: fmt.Sprint("m", seed%1000), rng: rand.New(rand.NewPCG(seed, 0)), seed: seed}
	p.Origin = node.New(t, append([]func(*server.Config){node.DocumentSize(3 + int(seed%2))}, change...)...)
	p.begin()
	return p
}

func (p *Publisher) begin() {
	p.Create(p.Name, p.start())
	p.pasts++
	if p.signed {
		p.Sign(p.Name)
	}
	p.seed++
	p.editor = testedit.New(nil, p.SP(p.Name), p.seed)
	p.reread()
	p.withheld = false
}

// BeginSigning has the collection signed from now on, with a new key for each of its histories.
func (p *Publisher) BeginSigning() {
	p.signed = true
	p.Sign(p.Name)
}

// Pasts counts the histories that the publisher has begun: subscribers to a signed source refuse each but the first.
func (p *Publisher) Pasts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pasts
}

// reread replaces the edited map by that of the server.
func (p *Publisher) reread() {
	now := p.Get("/topicmaps/" + p.Name + "/snapshots/current.xtm21")
	tm, err := xtm.Read(p.T.Context(), strings.NewReader(now), xtm.Options{Base: tmdm.Locator(p.SP(p.Name))})
	require.NoError(p.T, err)
	p.tm, p.editor.Map = tm, tm
}

// event is something that happens to a publisher.
type event struct {
	name   string
	weight int
	do     func(p *Publisher, n int)
}

var events = []event{
	{"edit", 30, (*Publisher).edit},
	{"bridge", 3, (*Publisher).bridge},
	{"post", 4, func(p *Publisher, n int) {
		p.Post(p.Name,
			docs.Map(fmt.Sprintf(`<topic><subjectIdentifier href="%s"/><name><value>posted %d</value></name></topic>`,
				p.any(n), n)))
		p.reread()
	}},
	{"delete", 4, func(p *Publisher, n int) { p.Remove(p.Name, p.any(n)); p.reread() }},
	{"snapshot", 5, func(p *Publisher, _ int) { p.TakeSnapshotOf(p.Name) }},
	{"collect garbage", 4, func(p *Publisher, n int) { p.CollectGarbage(p.Name, 2*n) }},
	{"prune", 2, func(p *Publisher, n int) { p.Prune(p.Name, n) }},
	{"resize", 2, func(p *Publisher, n int) { p.Resize(p.Name, n) }},
	{"offer", 2, func(p *Publisher, n int) {
		p.withheld = true
		p.Offer(p.Name, [][]string{{"xtm1"}, {"xtm2.1"}, {}}[n%3]...)
	}},
	{"begin anew", 1, func(p *Publisher, _ int) { p.Delete(p.Name); p.begin() }},
	{"rebuild", 1, func(p *Publisher, _ int) { p.Rebuild(); p.begin(); p.saved = ""; p.restarts++ }},
	{"back up or restore", 3, (*Publisher).backUpOrRestore},
}

// Happen implements [Source].
func (p *Publisher) Happen(during bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, n := events[0], 1+p.rng.IntN(6)
	if !during {
		e = p.draw()
	}
	e.do(p, n)
	for _, f := range p.watchers {
		f()
	}
	return fmt.Sprintf("%s (%d)", e.name, n)
}

func (p *Publisher) draw() event {
	total := 0
	for _, e := range events {
		total += e.weight
	}
	n := p.rng.IntN(total)
	for _, e := range events {
		if n -= e.weight; n < 0 {
			return e
		}
	}
	panic("the weights do not add up")
}

func (p *Publisher) edit(n int) {
	for range n {
		p.editor.Edit()
	}
	p.put()
}

// Much implements [Source].
func (p *Publisher) Much() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions++
	for i := range 250 {
		t := p.tm.CreateTopicBySubjectIdentifier(tmdm.Locator(docs.SI(fmt.Sprint("many/", i))))
		t.AddName(fmt.Sprintf("version %d", p.versions), nil)
	}
	p.put()
	for _, f := range p.watchers {
		f()
	}
}

// bridge makes two subjects of which others speak one.
func (p *Publisher) bridge(n int) {
	if p.tm.TopicBySubjectIdentifier(tmdm.Locator(subject(n))) == nil {
		for topic := range p.tm.Topics() {
			require.NoError(p.T, topic.AddSubjectIdentifier(tmdm.Locator(subject(n))))
			break
		}
	}
	p.put()
}

// backUpOrRestore copies the store, or continues with the copy.
func (p *Publisher) backUpOrRestore(n int) {
	if p.saved == "" {
		p.saved = p.Backup()
		return
	}
	p.Restore(p.saved)
	p.saved = ""
	p.restarts++
	p.pasts++
	p.reread()
	if n%2 == 0 {
		p.edit(n)
	}
}

func (p *Publisher) put() { p.PutAs(p.Name, p.document()) }

func (p *Publisher) document() string {
	var b strings.Builder
	_, err := xtm.Write(&b, p.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(p.SP(p.Name))})
	require.NoError(p.T, err)
	return b.String()
}

// any returns a subject identifier of a topic of the map.
func (p *Publisher) any(n int) string {
	var all []string
	for t := range p.tm.Topics() {
		for _, si := range t.SubjectIdentifiers() {
			if !strings.Contains(string(si), "topicmaps.org") {
				all = append(all, string(si))
			}
		}
	}
	if len(all) == 0 {
		return subject(n)
	}
	return all[n*7%len(all)]
}

// Edited returns the map as it was edited, with the subject identifiers that the server has assigned.
func (p *Publisher) Edited() (m *fragment.Map) {
	sp := p.SP(p.Name)
	tm, err := xtm.Read(p.T.Context(), strings.NewReader(p.document()),
		xtm.Options{Base: tmdm.Locator(sp), DropClashes: true})
	require.NoError(p.T, err)
	p.Source(p.Name, func(v *store.View, src fragment.Source) {
		m, err = fragment.NameTopics(p.T.Context(), tm, v.SP, src)
	})
	require.NoError(p.T, err)
	return m
}

// URL implements [Source].
func (p *Publisher) URL(k Kind) string { return p.RecordsURL(p.Name, string(k)) }

// Feed implements [Source].
func (p *Publisher) Feed(r *http.Request) bool {
	return node.IsRecent(r) || node.IsArchive(r) || node.IsSnapshots(r) || node.IsRecordsFeed(r)
}

// Record implements [Source].
func (p *Publisher) Record(r *http.Request) string {
	if !node.IsFragment(r) && !node.IsRecord(r) {
		return ""
	}
	id, _, _ := strings.Cut(path.Base(r.URL.Path), ".")
	return id
}

// Settle implements [Source].
func (p *Publisher) Settle() {
	if p.withheld {
		p.Offer(p.Name)
		p.withheld = false
	}
}

// Watch implements [Source].
func (p *Publisher) Watch(f func()) { p.watchers = append(p.watchers, f) }

// Spare implements [Source].
func (p *Publisher) Spare(*http.Request, faults.Sign) bool { return false }

// Whole implements [Source].
func (p *Publisher) Whole() bool { return false }

var (
	idElement = regexp.MustCompile(`<id>([^<]*)</id>`)
	selfLink  = regexp.MustCompile(`<link rel="self"[^>]* href="([^"]*).atom"`)
	xtm21Link = regexp.MustCompile(`<link rel="alternate" type="application/x-tm\+xml;version=2.1" href="([^"]*)"`)
)

// Records implements [Source]: those in XTM 2.1, or all resources that are listed. It reads the whole complete feed.
func (p *Publisher) Records(k Kind) map[string]string {
	all := map[string]string{}
	for _, e := range faults.Entry.FindAllString(p.Get("/topicmaps/"+p.Name+"/records/complete"), -1) {
		id, link := idElement.FindStringSubmatch(e)[1], xtm21Link.FindStringSubmatch(e)
		if k == Lists {
			link = selfLink.FindStringSubmatch(e)
			id = link[1]
		}
		if link != nil {
			all[id] = p.Get(strings.TrimPrefix(link[1], p.Origin.URL))
		}
	}
	return all
}

// Updated returns the time of the last change.
func (p *Publisher) Updated() (at time.Time) {
	p.Source(p.Name, func(v *store.View, _ fragment.Source) { at = v.Updated.UTC() })
	return at
}
