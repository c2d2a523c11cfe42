package editing_test

import (
	"bytes"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/words"
)

// Pages of each kind, and forms, have 64 kB at most, whatever statements a topic has: in a map of topics with very
// many statements, in many languages and of many types, and in real maps.
func TestNoPageIsLarge(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "all pages of large maps take much")
	t.Parallel()
	for _, m := range []struct{ name, file string }{
		{"much", ""}, {"voc4cat", "voc4cat/v07.ttl.gz"}, {"GCL", "GCL-2-1.xtm"}, {"mondial", "mondial.xtm.gz"},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			doc, mediaType := muchIsSaid(), "application/x-tm+xml"
			if m.file != "" {
				doc = testenv.SharedFile(t, "data/"+m.file)
			}
			if strings.HasSuffix(m.file, ".ttl.gz") {
				mediaType = "text/turtle"
			}
			n, b := served.Editor(t, served.Small(), func(c *server.Config) { c.Lenient = true })
			for _, version := range [][]byte{doc, bytes.Replace(doc, []byte(" is said"), []byte(" was said"), -1)} {
				n.PutSettings("big", "{}", "Authorization", "Bearer "+served.Token)
				a := n.Put("big", version, "Content-Type", mediaType, "Authorization", "Bearer "+served.Token, "Tmshare-Note", strings.Repeat("why ", 200))
				require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
			}
			w := walk{b: b, sizes: map[string]int{}, seen: map[string]int{}}
			for _, si := range talkedOf(t, n) {
				path := served.TopicPath("big", si.String())
				w.add(path+".html", path+"/edit.html", path+"/compare.html", path+"/delete.html", path+"/restore.html?at=2020-01-01")
				w.special = append(w.special, fragment.Key(si))
			}
			w.add("/topicmaps.html", "/topicmaps/big.html", "/topicmaps/big/topics/new.html", "/topicmaps/big/search.html?q=a", "/search.html?q=e")
			w.all(t, testenv.Rounds(1, 10))
			for _, kind := range []string{"KEY/edit.html", "hierarchies/", "/types.html", "/index.html", "/compare.html", "/api.html", "/fragments.html", "/undo.html", "/snapshots.html", "/delete.html", "&page", "new.html"} {
				if m.file == "" {
					assert.True(t, slices.ContainsFunc(w.kinds, func(k string) bool { return strings.Contains(k, kind) }), kind)
				}
			}
		})
	}
}

// A form that comes back has 64 kB at most, too: with something wrong in each row, with more rows, or with what others
// have changed. It has all that was written.
func TestFormsThatComeBackAreSmall(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	var doc strings.Builder
	doc.WriteString("@prefix : <http://example.org/a/long/address/of/a/topic/of/which/something/is/said/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n")
	for i := range 20 {
		fmt.Fprintf(&doc, ":hub a :type%[1]d ; skos:altLabel \"name %[1]d\"@en ; skos:note \"note %[1]d\" ; skos:related :concept%[1]d . :concept%[1]d skos:prefLabel \"Concept of which something is said %[1]d\"@en .\n", i)
	}
	n.PutSettings("big", "{}", "Authorization", "Bearer "+served.Token)
	require.Equal(t, http.StatusOK, n.Put("big", []byte(doc.String()), "Content-Type", "text/turtle", "Authorization", "Bearer "+served.Token).StatusCode)
	fits := func(a served.Answer, status int, what string) {
		t.Helper()
		t.Logf("%d bytes: %s", len(a.Bytes), what)
		assert.Equal(t, status, a.StatusCode, what)
		assert.LessOrEqual(t, len(a.Bytes), 64<<10, what)
	}
	at := served.TopicPath("big", "http://example.org/a/long/address/of/a/topic/of/which/something/is/said/hub") + "/edit.html"
	f, first := b.Open(at)
	t.Logf("%d bytes at first", len(first.Bytes))
	for field, values := range f.Fields { // in each row that has a value
		if strings.HasSuffix(field, "-value") && values[0] != "" {
			f.Set(field, values[0]+" changed")
		}
	}
	fits(b.Send(f, "preview"), http.StatusOK, "preview")
	f, _ = b.Open(at)
	for range 6 {
		more := b.Send(f, "association")
		fits(more, http.StatusOK, "more rows")
		f = served.FormOf(t, at, more)
	}
	for field := range f.Fields {
		if strings.HasPrefix(field, "name-") && strings.HasSuffix(field, "-language") {
			f.Set(field, "no language", field+"-is", "")
		}
		if typeOfRow.MatchString(field) {
			f.Set(field, "something is said")
		}
	}
	a := b.Send(f, "preview")
	fits(a, http.StatusUnprocessableEntity, "wrong in many rows")
	assert.Contains(t, string(a.Bytes), "No language:")
	assert.Contains(t, string(a.Bytes), "use association-", "topics that may be meant")
	back := served.FormOf(t, at, a)
	written := func(f served.Form) (all []string) {
		for field, values := range f.Fields {
			if values[0] == "no language" || values[0] == "something is said" {
				all = append(all, numberOfRow.ReplaceAllString(field, "-"))
			}
		}
		slices.Sort(all)
		return all
	}
	assert.Equal(t, written(f), written(back), "the written text comes back")
	assert.NotContains(t, string(a.Bytes), "note 7", "other text need not")
	fits(b.Send(f, "edit"), http.StatusOK, "going on with an error")
}

var (
	numberOfRow = regexp.MustCompile(`-\d+-`)
	typeOfRow   = regexp.MustCompile(`^association-\d+-type$`)
)

// walk gets pages, and those that they lead to.
type walk struct {
	b       *served.Browser
	todo    []string
	special []string // keys of topics whose pages are all read
	seen    map[string]int
	sizes   map[string]int
	kinds   []string
}

func (w *walk) add(paths ...string) {
	for _, path := range paths {
		if w.seen[path]++; w.seen[path] == 1 {
			w.todo = append(w.todo, path)
		}
	}
}

var (
	keyOf      = regexp.MustCompile(`/(topics|hierarchies)/[a-z2-7]{26}`)
	numberOf   = regexp.MustCompile(`/fragments/[-0-9a-f]+`)
	valueOf    = regexp.MustCompile(`=[^&]*`)
	hrefOf     = regexp.MustCompile(` href="([^"#]*)`)
	pageEnding = regexp.MustCompile(`\.html(\?|$)`)
)

// kind returns the kind of the page at a path.
func (w *walk) kind(path string) string {
	kind := valueOf.ReplaceAllString(numberOf.ReplaceAllString(keyOf.ReplaceAllString(path, "/$1/KEY"), "/fragments/ID"), "")
	if i := slices.IndexFunc(w.special, func(key string) bool { return strings.Contains(path, key) }); i >= 0 {
		kind += fmt.Sprint(" of ", i)
	}
	return kind
}

// all gets pages, most of each kind.
func (w *walk) all(t *testing.T, most int) {
	got := map[string]int{}
	for len(w.todo) > 0 {
		path := w.todo[0]
		w.todo = w.todo[1:]
		kind := w.kind(path)
		if got[kind]++; got[kind] > most {
			continue
		}
		if got[kind] == 1 {
			w.kinds = append(w.kinds, kind)
		}
		a := w.b.Do(path, nil)
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
			continue
		}
		if w.sizes[kind] = max(w.sizes[kind], len(a.Bytes)); len(a.Bytes) > 64<<10 {
			t.Errorf("%s has %d bytes", path, len(a.Bytes))
		}
		base, err := url.Parse(w.b.Node.URL(path))
		require.NoError(t, err)
		for _, found := range hrefOf.FindAllSubmatch(a.Bytes, -1) {
			to, err := base.Parse(html.UnescapeString(string(found[1])))
			if err == nil && to.Host == base.Host && pageEnding.MatchString(to.RequestURI()) && !to.Query().Has("ui") {
				w.add(to.RequestURI())
			}
		}
	}
	slices.SortFunc(w.kinds, func(a, b string) int { return w.sizes[b] - w.sizes[a] })
	for _, kind := range w.kinds[:min(len(w.kinds), 12)] {
		t.Logf("%d bytes: %s", w.sizes[kind], kind)
	}
	t.Logf("%d kinds", len(w.kinds))
}

// talkedOf returns the topics with the most statements.
func talkedOf(t *testing.T, n *served.Node) (all []fragment.Ref) {
	much := map[fragment.Ref]int{}
	require.NoError(t, n.Store.View(t.Context(), "big", func(v *store.View) error {
		for topic, err := range v.State().Topics() {
			if err != nil {
				return err
			}
			ref := topic.TopicSI()
			much[ref] = len(topic.Names) + len(topic.Occurrences)
			for i := range topic.Occurrences {
				much[ref] += len(topic.Occurrences[i].Value) / 500
			}
			for _, part := range fragment.Parts {
				for range v.State().AssociationsOf(ref, part) {
					if much[ref]++; much[ref] > 2000 {
						break
					}
				}
			}
			all = append(all, ref)
		}
		return nil
	}))
	slices.SortFunc(all, func(a, b fragment.Ref) int { return much[b] - much[a] })
	return all[:min(len(all), 5)]
}

// muchIsSaid returns a map with topics that have very many statements.
func muchIsSaid() []byte {
	var b bytes.Buffer
	b.WriteString(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`)
	const skos = "http://www.w3.org/2004/02/skos/core#"
	long := "http://example.org/a/long/address/" + strings.Repeat("of/a/topic/", 8)
	ref := func(si string) string { return `<subjectIdentifierRef href="` + si + `"/>` }
	topic := func(si, more string) {
		fmt.Fprintf(&b, "<topic id=\"t%d\"><subjectIdentifier href=%q/>%s</topic>\n", b.Len(), si, more)
	}
	name := func(typ, language, value string) string {
		all := `<name>`
		if typ != "" {
			all += `<type>` + ref(typ) + `</type>`
		}
		if language != "" {
			all += `<scope>` + ref(words.LanguageNamespace+language) + `</scope>`
		}
		return all + `<value>` + value + `</value></name>`
	}
	occurrence := func(typ, value string) string {
		return `<occurrence><type>` + ref(typ) + `</type><resourceData>` + value + `</resourceData></occurrence>`
	}
	var all, types, texts string
	for i := range 150 {
		language := string([]byte{'a' + byte(i/26), 'a' + byte(i%26)})
		all += name(skos+"prefLabel", language, fmt.Sprint("What is said ", strings.Repeat("ö &amp; ", 20), i)) + name(skos+"altLabel", language, fmt.Sprint("another ", i))
		types += ref(fmt.Sprint(long, "type/", i))
		texts += occurrence(fmt.Sprint(long, "property/", i%70), fmt.Sprint(strings.Repeat("Much is said &lt;b&gt; here. ", 1+i*i), i))
		topic(fmt.Sprint(long, "type/", i), name("", "", fmt.Sprint("Type ", strings.Repeat("long ", 10), i)))
		topic(fmt.Sprint(long, "property/", i), name("", "", fmt.Sprint("Property ", strings.Repeat("long ", 10), i)))
	}
	topic("http://example.org/kinds", name("", "", "Of many kinds"))
	for i := range 900 { // 120 kinds
		fmt.Fprintf(&b, `<association><type>%s</type><role><type>%s</type>%s</role><role><type>%s</type>%s</role></association>`, ref(fmt.Sprint(long, "type/", i%120)),
			ref(long+"type/1"), ref("http://example.org/kinds"), ref(fmt.Sprint(long, "type/", i%7)), ref(fmt.Sprint(long, "concept/", i%700)))
	}
	topic("http://example.org/hub", `<instanceOf>`+ref(skos+"Concept")+types+`</instanceOf>`+all+texts)
	topic(long+"plain", name("", "", "Plain"))
	for i := range 700 {
		si := fmt.Sprint(long, "concept/", i)
		topic(si, `<instanceOf>`+ref(skos+"Concept")+`</instanceOf>`+name(skos+"prefLabel", "en", fmt.Sprint("Concept of which something is said ", i))+occurrence(skos+"definition", strings.Repeat("It is said. ", 30)))
		above := "http://example.org/hub"
		if i > 300 {
			above = fmt.Sprint(long, "concept/", i/3)
		}
		for _, pair := range [][2]string{{skos + "broader", above}, {fmt.Sprint(long, "property/", i%25), "http://example.org/hub"}} {
			fmt.Fprintf(&b, `<association><type>%s</type><role><type>%s</type>%s</role><role><type>%s</type>%s</role></association>`, ref(pair[0]),
				ref("http://www.w3.org/1999/02/22-rdf-syntax-ns#subject"), ref(si), ref("http://www.w3.org/1999/02/22-rdf-syntax-ns#object"), ref(pair[1]))
		}
		if i%10 == 0 {
			fmt.Fprintf(&b, `<association><type>%s</type><role><type>%s</type>%s</role>`, ref(long+"type/1"), ref(long+"type/2"), ref("http://example.org/hub"))
			for j := range 25 {
				fmt.Fprintf(&b, `<role><type>%s</type>%s</role>`, ref(fmt.Sprint(long, "type/", j)), ref(fmt.Sprint(long, "concept/", (i+j)%700)))
			}
			b.WriteString(`</association>`)
		}
	}
	b.WriteString(`</topicMap>`)
	return b.Bytes()
}
