package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// entryWatch has the representations of the entries of the collection m when they were published: in all forms and
// codings, by URL.
type entryWatch struct {
	*node
	t       *testing.T
	dir     string
	answers map[string]served.Answer
}

// codings are those in which they are repeatedly requested.
var codings = []string{"identity", "zstd"}

func watchEntries(t *testing.T) *entryWatch {
	w := &entryWatch{t: t, dir: t.TempDir(), answers: map[string]served.Answer{}}
	w.begin()
	require.Equal(t, http.StatusCreated, w.PutSettings("m", `{"rdf": true}`).StatusCode)
	return w
}

// restart clears the caches by a new process.
func (w *entryWatch) restart() {
	w.t.Helper()
	w.Stop()
	w.begin()
}

func (w *entryWatch) begin() {
	later := time.Now().Add(time.Hour) // the second of each change is over: all that is dated has its date
	w.node = recordsAt(w.t, w.dir, served.DocumentSize(4), func(c *server.Config) { c.Now = func() time.Time { return later } })
}

// put publishes a version, records the new entries, and checks the others in another process.
func (w *entryWatch) put(doc []byte, mediaType string) {
	w.t.Helper()
	served.Published(w.t, w.node.Put("m", doc, "Content-Type", mediaType, "TMShare-Max-Delete", "all"))
	for url := range w.served() {
		for _, coding := range codings {
			if at := url + " " + coding; w.answers[at].Response == nil {
				w.answers[at] = w.MustGet(url, "Accept-Encoding", coding)
				assert.Equal(w.t, forEver, w.answers[at].Header.Get("Cache-Control"), url)
				assert.Empty(w.t, w.answers[at].Header.Get("TMShare-Updated"), url)
			}
		}
	}
	w.restart()
	w.unchanged()
}

// served returns the URLs of the representations of kept entries.
func (w *entryWatch) served() map[string]bool {
	w.t.Helper()
	urls := map[string]bool{}
	require.NoError(w.t, w.Store.View(w.t.Context(), "m", func(v *store.View) error {
		for e, err := range v.Entries(1) {
			require.NoError(w.t, err)
			at := w.URL("/topicmaps/m/fragments/" + v.ID(&e).String())
			for _, form := range []string{".xtm1", ".xtm21"} {
				urls[at+form] = true
				urls[strings.Replace(at, "/fragments/", "/mementos/", 1)+form] = true
			}
			for _, form := range []string{".ttl", ".nt", ".rdf"} {
				urls[at+form] = v.OffersRDF(e.Seq)
			}
		}
		return nil
	}))
	maps.DeleteFunc(urls, func(_ string, offered bool) bool { return !offered })
	return urls
}

// unchanged checks that the representations of all entries are unchanged, except pruned ones.
func (w *entryWatch) unchanged() {
	w.t.Helper()
	kept := w.served()
	for at, was := range w.answers {
		url, coding, _ := strings.Cut(at, " ")
		if !kept[url] {
			require.Equal(w.t, http.StatusGone, w.Get(url, "Accept-Encoding", coding).StatusCode, url)
			continue
		}
		now := w.MustGet(url, "Accept-Encoding", coding)
		require.True(w.t, bytes.Equal(was.Bytes, now.Bytes), "%s was\n%.2000s\nand is\n%.2000s", at, was.Plain(w.t), now.Plain(w.t))
		for _, header := range []string{"ETag", "Cache-Control", "Content-Type", "Content-Encoding", "Vary", "Memento-Datetime"} {
			require.Equal(w.t, was.Header.Get(header), now.Header.Get(header), "%s of %s", header, at)
		}
		w.sameHead(now)
		again := w.Get(url, "Accept-Encoding", coding, "If-None-Match", was.Header.Get("ETag"))
		require.Equal(w.t, http.StatusNotModified, again.StatusCode, at)
		require.Equal(w.t, was.Header.Get("ETag"), again.Header.Get("ETag"))
	}
}

// The representations of an entry and their ETags never change, whatever changes in its topic, in mentioned topics, in
// the settings, and in earlier history. Another process on the same folder serves the same.
func TestWhatAnEntrySaysNeverChanges(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	turtle := func(text string, more ...string) []byte {
		return []byte(`@prefix : <http://psi.example.org/> . :oslo :name "Oslo" ; :in [ :called "` + text + `" ; :near :bergen ] . ` + strings.Join(more, " "))
	}
	identify := func(doc []byte, id, more string) []byte {
		return served.Replace(t, doc, `<topic id="`+id+`"><subjectIdentity>`, `<topic id="`+id+`"><subjectIdentity><subjectIndicatorRef xlink:href="`+more+`"/>`)
	}
	for name, c := range map[string]struct {
		mediaType string
		versions  [][]byte
	}{
		"towns": {served.XTM1Type, [][]byte{
			served.Small(),
			served.Small("Oslo", "Christiania"),
			served.Small("Norway", "Noreg", "part of", "within"),
			identify(identify(served.Small(), "part-of", served.PSI+"z-within"), "norway", served.PSI+"z-noreg"),                                                      // stubs have further identifiers
			identify(served.Small(), "norway", "http://a.example.org/noreg"),                                                                                          // its TopicSI is another
			served.Replace(t, served.Small(), `<subjectIndicatorRef xlink:href="`+served.PSI+`tromsø"/>`, `<subjectIndicatorRef xlink:href="`+served.PSI+`bergen"/>`), // two become one
		}},
		"classes": {served.XTM1Type, [][]byte{served.Classified(3, "Town"), served.Classified(2, "Town"), served.Classified(2, "Village"), served.Classified(4, "Village")}},
		"blank nodes": {"text/turtle", [][]byte{
			turtle("a region"), turtle("another region"), turtle("another region", `:bergen :name "Bergen" .`), turtle("a region", `:bergen :in [ :called "x" ] .`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "classes" {
				testenv.OnlyWithAll(t, "many entries are read in each form")
			}
			t.Parallel()
			w := watchEntries(t)
			for _, doc := range c.versions {
				w.put(doc, c.mediaType)
			}
			for _, omit := range []bool{true, false} {
				w.MustSet("m", fmt.Sprintf(`{"omitInstances": %t, "rdf": true}`, omit))
				w.put(c.versions[0], c.mediaType)
				w.put(c.versions[1], c.mediaType)
			}
			w.put(served.TopicMap(served.Topic("other", "Other")), served.XTM1Type)
			w.put(c.versions[0], c.mediaType)

			before := len(w.served())
			for keep := 20; keep > 0; keep -= 10 {
				require.Contains(t, []int{http.StatusOK, http.StatusCreated}, w.Post("/topicmaps/m/snapshots").StatusCode)
				w.Settings("m", func(s *store.Settings) { s.KeepEntries = uint64(keep) })
				require.Equal(t, http.StatusOK, w.Post("/topicmaps/m/gc").StatusCode)
				after := len(w.served())
				require.Less(t, after, before)
				require.Positive(t, after)
				before = after
				w.unchanged()
				w.restart()
			}
			assert.Empty(t, w.errors())
		})
	}
}

// After the entry at which the setting was changed, fragments of classes have no instances. Earlier ones have them.
func TestFragmentsLeaveInstancesOutFromTheSettingOn(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Classified(3, "Town"))
	count := func() int {
		t.Helper()
		for _, e := range n.Feed("/topicmaps/m/fragments").Entries {
			if e.TopicSI[0] == served.PSI+"town" {
				return bytes.Count(n.MustGet(served.DataURL(t, e)+".xtm21").Bytes, []byte(served.PSI+"town-"))
			}
		}
		return -1
	}
	n.MustSet("m", `{"omitInstances": true}`)
	require.Positive(t, count(), "of an entry before")
	n.MustPut("m", served.Classified(3, "Village"))
	n.MustSet("m", `{"omitInstances": false}`)
	require.Zero(t, count(), "of an entry before")
	n.MustPut("m", served.Classified(3, "Hamlet"))
	require.Positive(t, count())
}

// A fragment that is not made in memory is made in a file. It is as lasting as a small one, in each form and coding.
func TestLargeFragmentsAreTheSameForEver(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	w := watchEntries(t)
	many := func(name string) []byte { return served.Classified(rendered.MaxSmall/1000+20, name) }
	served.Published(t, w.node.Put("m", many("Town")))
	w.restart()
	entries, _ := w.History("/topicmaps/m/fragments")
	data := served.DataURL(t, entries[entryOf(entries, served.PSI+"town")])
	for _, form := range []string{".xtm1", ".xtm21", ".ttl", ".nt"} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			a := w.MustGet(data+form, "Accept-Encoding", coding)
			assert.Equal(t, forEver, a.Header.Get("Cache-Control"))
			if plain := a.Plain(t); strings.HasPrefix(form, ".xtm") {
				assert.Greater(t, len(plain), rendered.MaxSmall, form)
				assert.Equal(t, coding == "gzip", a.Header.Get("Content-Length") != "", "the file is served as it is, or unpacked on the way")
			}
			w.answers[data+form+" "+coding] = a
		}
	}
	w.unchanged()
	for _, next := range [][]byte{many("Village"), served.Classified(2, "Village"), served.TopicMap(served.Topic("other", "Other"))} {
		served.Published(t, w.node.Put("m", next, "TMShare-Max-Delete", "all"))
		w.restart()
		w.unchanged()
	}
	assert.Empty(t, w.errors())
}

// Before the horizon there are no fragments. The address of each topic still answers with its record, which pruning
// does not change, nor its ETag in XTM, of present and of deleted topics.
func TestRecordsStayWhenTheirEntriesArePruned(t *testing.T) {
	t.Parallel()
	w := watchEntries(t)
	towns := served.Replace(t, served.Small(), "</topicMap>", served.Topic("large", "Large", served.Note("note", strings.Repeat("x", rendered.MaxSmall)))+"</topicMap>")
	served.Published(t, w.node.Put("m", towns))
	with := served.Replace(t, towns, `<subjectIndicatorRef xlink:href="`+served.PSI+`norway"/>`, `<subjectIndicatorRef xlink:href="`+served.PSI+`norway"/><subjectIndicatorRef xlink:href="`+served.PSI+`z-noreg"/>`)
	served.Published(t, w.node.Put("m", with)) // what Oslo is part of has another identifier
	require.Equal(t, http.StatusOK, w.Delete("m", served.PSI+"tromsø").StatusCode)
	address := func(id string) string {
		return w.URL("/topicmaps/m/topics/" + fragment.Key(fragment.Ref(served.PSI+id)))
	}
	entries, _ := w.History("/topicmaps/m/fragments")
	was := map[string]served.Answer{}
	topics := []string{"oslo", "bergen", "norway", "part-of", "tromsø", "large"}
	for _, id := range topics {
		for _, form := range []string{"", ".xtm1", ".xtm21", ".ttl"} {
			was[address(id)+form] = w.MustGet(address(id) + form)
		}
	}
	for i := range 3 {
		served.Published(t, w.postTopics("m", served.TopicMap(served.Topic("other", fmt.Sprint("Other ", i)), served.Topic("another", fmt.Sprint("Another ", i))), nil))
	}
	same := func() {
		t.Helper()
		for url, before := range was {
			now := w.MustGet(url)
			assert.Equal(t, string(before.Bytes), string(now.Bytes), url)
			if strings.HasSuffix(url, ".ttl") {
				continue
			}
			assert.Equal(t, before.Header.Get("ETag"), now.Header.Get("ETag"), url)
			assert.Equal(t, shortly, now.Header.Get("Cache-Control"), url)
			assert.Equal(t, http.StatusNotModified, w.Get(url, "If-None-Match", before.Header.Get("ETag")).StatusCode, url)
			w.sameHead(now)
		}
	}
	same()
	require.Equal(t, http.StatusCreated, w.Post("/topicmaps/m/snapshots").StatusCode)
	w.Settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	require.Equal(t, http.StatusOK, w.Post("/topicmaps/m/gc").StatusCode)
	gone := 0
	for i := range entries {
		if !slices.ContainsFunc(topics, func(id string) bool { return entries[i].TopicSI[0] == served.PSI+id }) {
			continue
		}
		for _, form := range []string{".xtm1", ".xtm21", ".ttl"} {
			assert.Equal(t, http.StatusGone, w.Get(served.DataURL(t, entries[i])+form).StatusCode, form)
			gone++
		}
	}
	assert.Greater(t, gone, 3*len(topics))
	same()
	w.restart()
	same()
	served.Published(t, w.postTopics("m", served.TopicMap(served.Topic("other", "Others")), nil))
	same()
	served.Published(t, w.postTopics("m", served.TopicMap(served.Topic("bergen", "Bjørgvin")), nil))
	assert.NotEqual(t, was[address("bergen")].Header.Get("ETag"), w.MustGet(address("bergen")).Header.Get("ETag"))
}
