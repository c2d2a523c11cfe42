package pg_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

type requested struct{}

// ofRequests reports whether a question is asked for a request.
func ofRequests(ctx context.Context) bool { return ctx.Value(requested{}) != nil }

// markRequests has ofRequests tell the requests of this server from its other work.
func (m *measured) markRequests() {
	handler := m.http.Config.Handler
	m.http.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requested{}, true)))
	})
}

// How many questions a POST asks does not depend on how many topics it has, as long as they are some hundreds: one
// before the document is read, one for the state, one for the commit, the others for what is there.
func TestQuestionsOfPosts(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	s := pgserver.Start(t, "fsync=off")
	e := &kvtest.Asked{Engine: pgserver.Open(t, s.Store(t)), Of: ofRequests}
	m := measure(t, store.Options{Engine: e}, 3000)
	m.markRequests()
	for topics, most := range map[int]int{1: 8, 100: 9, 400: 11} {
		for round, from := range []int{0, 0, 0, 1000, 2800} { // changed for the first time, and again; with new ones
			before := e.Questions.Load()
			m.post(document(from, topics, 10*topics+round))
			n := e.Questions.Load() - before
			t.Logf("%d topics, round %d: %d questions", topics, round, n)
			assert.LessOrEqual(t, int(n), most, "%d topics, round %d", topics, round)
			assert.Positive(t, n)
		}
	}
}

// How many questions a page asks hardly depends on how many topics it names.
func TestQuestionsOfPages(t *testing.T) {
	t.Parallel()
	e := &kvtest.Asked{Engine: memory.New(), Of: ofRequests}
	m := measure(t, store.Options{Engine: e}, 100)
	m.markRequests()
	var hubs bytes.Buffer
	hubs.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	for _, n := range []int{1, 90} { // topics that are associated with as many others
		fmt.Fprintf(&hubs, `<topic id="hub%d"><subjectIdentifier href="http://psi.example.org/hub/%[1]d"/><name><value>Hub %[1]d</value></name></topic>`, n)
		for i := range n {
			fmt.Fprintf(&hubs, `<association><type><topicRef href="#class"/></type>
				<role><type><topicRef href="#note"/></type><topicRef href="#hub%d"/></role><role><type><topicRef href="#class"/></type><subjectIdentifierRef href="http://psi.example.org/t/%d"/></role></association>`, n, i)
		}
	}
	for _, n := range []int{2, 90} { // concepts that have as many beside them
		for i := range n {
			fmt.Fprintf(&hubs, `<topic id="c%[1]d-%[2]d"><subjectIdentifier href="http://psi.example.org/c/%[1]d/%[2]d"/><instanceOf><subjectIdentifierRef href="http://www.w3.org/2004/02/skos/core#Concept"/></instanceOf><name><value>C %[2]d</value></name></topic>
				<association><type><subjectIdentifierRef href="http://www.w3.org/2004/02/skos/core#broader"/></type><role><type><subjectIdentifierRef href="http://www.w3.org/1999/02/22-rdf-syntax-ns#subject"/></type><topicRef href="#c%[1]d-%[2]d"/></role>
				<role><type><subjectIdentifierRef href="http://www.w3.org/1999/02/22-rdf-syntax-ns#object"/></type><subjectIdentifierRef href="http://psi.example.org/broad/%[1]d"/></role></association>`, n, i)
		}
	}
	hubs.WriteString(`<topic id="scheme"><subjectIdentifier href="http://psi.example.org/scheme"/><instanceOf><subjectIdentifierRef href="http://www.w3.org/2004/02/skos/core#ConceptScheme"/></instanceOf></topic>
		<association><type><subjectIdentifierRef href="http://purl.org/dc/terms/license"/></type><role><type><subjectIdentifierRef href="http://www.w3.org/1999/02/22-rdf-syntax-ns#subject"/></type><topicRef href="#scheme"/></role>
		<role><type><subjectIdentifierRef href="http://www.w3.org/1999/02/22-rdf-syntax-ns#object"/></type><subjectIdentifierRef href="https://creativecommons.org/licenses/by/4.0/"/></role></association>`)
	hubs.WriteString(`<topic id="class"><subjectIdentifier href="http://psi.example.org/class"/></topic><topic id="note"><subjectIdentifier href="http://psi.example.org/note"/></topic></topicMap>`)
	m.post(hubs.Bytes())
	topic := func(si, ending string) string {
		return "/topics/" + fragment.Key(fragment.Ref("http://psi.example.org/"+si)) + ending
	}
	first, err := http.Get(m.http.URL + "/topicmaps/m/api.html") // finds what all pages of the state have
	require.NoError(t, err)
	first.Body.Close()
	for path, most := range map[string]int{
		topic("hub/1", ".html"): 11, topic("hub/90", ".html"): 13, topic("hub/1", ".xtm21"): 10, topic("hub/90", ".xtm21"): 11,
		topic("c/2/0", ".html"): 21, topic("c/90/0", ".html"): 21, topic("broad/90", ".html"): 19,
		"/search.html?q=topic": 35, "/types.html": 8, ".html": 45,
		"/hierarchies/" + fragment.Key("http://www.w3.org/2004/02/skos/core#broader") + ".html": 20, // whichever comes first asks one more
	} {
		m.ask(e, m.http.URL+"/topicmaps/m"+path, most)
	}
}

// How many questions the documents of the fragments feed ask hardly depends on how many entries they have, and of how
// many commits: neither what entries have changed, nor their fragments.
func TestQuestionsOfFeeds(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		for _, entries := range []int{20, 80} {
			e := &kvtest.Asked{Engine: memory.New(), Of: ofRequests}
			m := measure(t, store.Options{Engine: e}, 394) // with six more that are mentioned; a document has 100
			for i := range entries {
				switch {
				case alone:
					m.post(document(i, 1, 1))
				case i == 0:
					m.post(document(0, entries, 1))
				}
			}
			m.markRequests()
			url := m.http.URL + "/topicmaps/m/fragments"
			recent := m.ask(e, url, 15)
			require.Equal(t, entries, strings.Count(recent, "Changed: name was “Topic "))
			require.Equal(t, entries, strings.Count(m.ask(e, url+".bundle", 17), "<content"))
			via := regexp.MustCompile(`rel="via"[^>]*href="([^"]*)"`).FindStringSubmatch(recent)
			require.NotNil(t, via, recent)
			archived := m.ask(e, via[1], 8)
			require.Equal(t, entries, strings.Count(archived, "<entry"))
			before := regexp.MustCompile(`rel="prev-archive"[^>]*href="([^"]*)"`).FindStringSubmatch(archived)
			require.NotNil(t, before, archived)
			require.Equal(t, 100, strings.Count(m.ask(e, before[1], 14), "<entry"))
			require.Equal(t, 100, strings.Count(m.ask(e, before[1]+".bundle", 26), "<content"))
		}
	}
}

// nearOrNot is an engine that answers many questions at once, or one by one.
type nearOrNot struct {
	*kvtest.Asked
	near atomic.Bool
}

func (e *nearOrNot) Snapshot(ctx context.Context) (kv.Reader, error) {
	if e.near.Load() {
		return e.Asked.Engine.Snapshot(ctx)
	}
	return e.Asked.Snapshot(ctx)
}

// The documents of the fragments feed have the same bytes whether what they need is read together or one by one.
func TestFeedsDoNotDependOnHowTheyAreRead(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Rounds(3, 60)) {
		seed += testenv.Seed() * 1000
		e := &nearOrNot{Asked: &kvtest.Asked{Engine: memory.New()}}
		m := measure(t, store.Options{Engine: e}, 5)
		for editor, n := storetest.NewEditor(t, seed), 0; n < 15; n++ {
			var version bytes.Buffer
			require.NoError(t, fragment.WriteSnapshot(&version, editor.Version(nil), fragment.Form{Version: xtm.V21, SP: prefix}))
			req, err := http.NewRequest(http.MethodPut, m.http.URL+"/topicmaps/m", &version)
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/xtm+xml")
			req.Header.Set("TMShare-Max-Delete", "all")
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			answer, err := io.ReadAll(res.Body)
			res.Body.Close()
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, res.StatusCode, "%s", answer)
		}
		var both [2][]string
		for i := range both {
			e.near.Store(i == 0)
			m.serve()
			recent := m.ask(e.Asked, m.http.URL+"/topicmaps/m/fragments", 1000)
			for at := regexp.MustCompile(`rel="via"[^>]*href="([^"]*)"`).FindStringSubmatch(recent); at != nil; {
				archived := m.ask(e.Asked, at[1], 1000)
				both[i] = append(both[i], recent, archived, m.ask(e.Asked, at[1]+".bundle", 1000))
				at = regexp.MustCompile(`rel="prev-archive"[^>]*href="([^"]*)"`).FindStringSubmatch(archived)
			}
		}
		require.GreaterOrEqual(t, len(both[0]), 3)
		require.Equal(t, both[0], both[1], "seed %d", seed)
	}
}

// ask returns the document with a URL, which asks so many questions at most.
func (m *measured) ask(e *kvtest.Asked, url string, most int) string {
	before := e.Questions.Load()
	res, err := http.Get(url)
	require.NoError(m.b, err)
	document, err := io.ReadAll(res.Body)
	res.Body.Close()
	require.NoError(m.b, err)
	require.Equal(m.b, http.StatusOK, res.StatusCode, "%s", document)
	n := e.Questions.Load() - before
	m.b.Logf("%s: %d questions, %d bytes", url, n, len(document))
	assert.LessOrEqual(m.b, int(n), most, url)
	assert.Positive(m.b, n, url)
	return string(document)
}

// How many questions the list of all collections asks after a commit of the process, and the metrics, does not depend on
// how many there are. Only what has changed is read again.
func TestQuestionsOfManyCollections(t *testing.T) {
	t.Parallel()
	for _, count := range []int{20, 400} {
		e := &kvtest.Asked{Engine: memory.New()}
		m := measure(t, store.Options{Engine: e}, 1)
		for i := range count {
			_, err := m.db.CreateCollection(t.Context(), store.Collection{Name: fmt.Sprint("c", i), SP: fmt.Sprint("http://example.org/", i)}, &merge.Memory{}, nil)
			require.NoError(t, err)
		}
		for round := range 4 {
			_, err := m.db.ChangeSettings(t.Context(), "c7", func(s *store.Settings) error { s.Title += "x"; return nil })
			require.NoError(t, err)
			most := 9
			if round == 0 { // nothing was read yet
				most = 10 * count
			}
			m.ask(e, m.http.URL+"/topicmaps", most)
			m.ask(e, m.http.URL+"/metrics", most)
		}
	}
}
