package editing_test

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
)

// The published change is the one in the preview: an entry of the feed with its author and note, and the same words
// on the page of the change.
func TestEditingATopic(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, a := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	assert.Equal(t, layout.PolicyWithScript, a.Header.Get("Content-Security-Policy"))
	assert.Contains(t, a.Header.Get("Cache-Control"), "private")
	assert.Contains(t, served.TextOf(t, a), "By Ada")
	name := f.Row(t, "name", "value", "Oslo")
	f.Set(name+"value", "Christiania", f.Row(t, "name", "value", "")+"value", "Oslove")
	occurrence := f.Row(t, "occurrence", "value", "")
	f.Set(occurrence+"value", "https://oslo.example.org/", occurrence+"type", "http://psi.example.org/homepage", occurrence+"datatype", "http://www.w3.org/2001/XMLSchema#anyURI")
	f.Set(f.Row(t, "type", "type", "")+"type", "http://psi.example.org/city", "note", "Two names & a <type>")
	as := f.Row(t, "association", "type", "")
	f.Set(as+"type", "http://psi.example.org/near", as+"role", "http://psi.example.org/role-1", as+"other-0-type", "http://psi.example.org/role-2", as+"other-0-player", "http://psi.example.org/tromsø")
	preview := b.Publish(f)
	words := served.TextOf(t, preview)
	for _, text := range []string{"Christiania", "Oslove", "https://oslo.example.org/", "Ada", "Two names & a <type>", "http://psi.example.org/near added", "tromsø, updated"} {
		assert.Contains(t, words, text)
	}
	for _, text := range []string{"name “Christiania”", "homepage (psi.example.org): “https://oslo.example.org/” (xsd:anyURI)", "association of type near (psi.example.org) (part: Christiania, whole: Tromsø)"} {
		assert.Contains(t, words, text, "topics have their names, or else a short identifier")
	}
	assert.Contains(t, string(preview.Bytes), `title="http://psi.example.org/near"`)
	entries := n.Feed("/topicmaps/m/fragments").Entries
	found := false
	for _, e := range entries {
		if strings.Contains(served.DataURL(t, e), "/fragments/") && e.Titles[0] != "" && strings.Contains(e.Titles[0], "Christiania") {
			found = true
			change := b.Do(strings.TrimPrefix(served.DataURL(t, e), n.BaseURL)+pages.Ending, nil)
			assert.Equal(t, statementsOf(t, preview)[served.Oslo+", updated"], statementsOf(t, change)[""], "the same words")
			assert.Len(t, statementsOf(t, change)[""], 6)
			page := served.TextOf(t, change)
			assert.Contains(t, page, "Two names & a <type>")
			assert.Contains(t, page, "Ada")
		}
	}
	assert.True(t, found)
	topic := served.TextOf(t, b.Do(served.TopicPath("m", served.Oslo)+pages.Ending, nil))
	for _, text := range []string{"Christiania", "Oslove", "City", "Tromsø"} {
		assert.Contains(t, topic, text)
	}
}

// statementsOf returns the statements that a change adds and removes by its page, by the text beside the title of the
// topic.
func statementsOf(t *testing.T, a served.Answer) map[string][]string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(a.Bytes))
	require.NoError(t, err)
	all, about := map[string][]string{}, ""
	for node := range root.Descendants() {
		switch {
		case node.Data == "small" && node.Parent.Data == "h3":
			about = node.FirstChild.Data
		case node.Data == "li" && (served.Attr(node, "class") == "come" || served.Attr(node, "class") == "gone"):
			var lines strings.Builder
			for inner := range node.Descendants() {
				if inner.Type == html.TextNode {
					lines.WriteString(inner.Data)
				}
			}
			all[about] = append(all[about], lines.String())
		}
	}
	return all
}

// A new topic, and its deletion.
func TestMakingAndDeletingATopic(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	before := n.Current("m")
	f, _ := b.Open("/topicmaps/m/topics/new.html")
	f.Set("name-0-value", "Hamar", "type-0-type", "http://psi.example.org/city")
	a := b.Send(f, "preview")
	made := served.FormOf(t, f.At, a)
	si := made.Fields.Get("identifier")
	assert.True(t, strings.HasPrefix(si, n.SP("m")+"topic/"), si)
	done := b.Send(made, "publish")
	require.Equal(t, http.StatusSeeOther, done.StatusCode, "%s", done.Bytes)
	topic := done.Header.Get("Location")
	assert.Equal(t, n.URL(served.TopicPath("m", si))+pages.Ending, topic)
	assert.Contains(t, served.TextOf(t, b.Do(topic, nil)), "Hamar")
	assert.Equal(t, http.StatusSeeOther, n.Get(si).StatusCode, "the identifier leads to it")
	again := b.Send(made, "publish")
	assert.Equal(t, topic, again.Header.Get("Location"), "sent again, it makes no second one")
	again = b.Send(made.Set("note", "another form"), "publish")
	assert.Equal(t, http.StatusUnprocessableEntity, again.StatusCode)
	assert.Contains(t, served.TextOf(t, again), "There is a topic with this identifier: Hamar")

	f, a = b.Open(strings.TrimSuffix(topic, pages.Ending) + "/delete.html")
	assert.Contains(t, served.TextOf(t, a), "Hamar")
	require.Equal(t, http.StatusSeeOther, b.Send(f.Set("note", "a mistake"), "publish").StatusCode)
	assert.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode, "it is gone already")
	assert.Contains(t, served.TextOf(t, b.Do(topic, nil)), "a mistake")
	assert.NotContains(t, n.Current("m"), "Hamar")
	assert.Contains(t, before, "Oslo")

	_, a = b.Open(served.TopicPath("m", "http://psi.example.org/note") + "/delete.html")
	assert.Contains(t, served.TextOf(t, a), "cannot be deleted")
	assert.Contains(t, served.TextOf(t, a), "Oslo")
}

// An editor of what others have changed meanwhile sees both, and loses nothing.
func TestConflictsAreShown(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	f.Set(f.Row(t, "name", "value", "Oslo")+"value", "Christiania", f.Row(t, "occurrence", "value", "the capital")+"remove", "on")
	preview := served.FormOf(t, f.At, b.Send(f, "preview"))
	served.Published(t, n.Put("m", served.Small("Bergen", "Bjørgvin"), "Authorization", "Bearer "+served.Token))
	a := b.Send(f, "preview")
	assert.Equal(t, http.StatusOK, a.StatusCode, "another topic is no conflict")

	served.Published(t, n.Put("m", served.Small("Bergen", "Bjørgvin", "Oslo", "Kristiania"), "Authorization", "Bearer "+served.OtherToken, "TMShare-Author", "Grace", "TMShare-Note", "with a K"))
	for _, sent := range []served.Form{f, preview} {
		do := map[bool]string{true: "publish", false: "preview"}[sent.Fields.Has("plan")]
		a = b.Send(sent, do)
		assert.Equal(t, http.StatusPreconditionFailed, a.StatusCode, do)
		text := served.TextOf(t, a)
		for _, words := range []string{"What you wanted", "Christiania", "What others have changed since", "Kristiania", "Grace", "with a K", "the capital"} {
			assert.Contains(t, text, words)
		}
	}
	assert.Contains(t, served.TextOf(t, a), "Both would stay: yours, “Christiania”, and what others have written since, “Kristiania”")
	assert.Regexp(t, `\d\d:\d\d:\d\d UTC`, served.TextOf(t, a))
	assert.NotContains(t, n.Current("m"), "Christiania")
	resolved := served.FormOf(t, f.At, a)
	again := served.FormOf(t, f.At, b.Send(resolved, "edit"))
	again.Row(t, "name", "value", "Kristiania")
	again.Row(t, "name", "value", "Christiania")
	assert.Equal(t, "on", again.Fields.Get(again.Row(t, "occurrence", "value", "the capital")+"remove"))
	require.Equal(t, http.StatusSeeOther, b.Send(resolved, "publish").StatusCode)
	now := n.Current("m")
	assert.Contains(t, now, "Christiania", "the name that was to be another one is a new one")
	assert.Contains(t, now, "Kristiania")
	assert.NotContains(t, now, "the capital")
	a = b.Send(f, "preview")
	assert.Contains(t, served.TextOf(t, a), "nothing is left to change")
}

// Values that a form does not show, or that a person does not change, stay: reifiers, item identifiers, variants,
// other statements of a large topic.
func TestEditingKeepsWhatItDoesNotShow(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, `<name><scope><topicRef href="#theme"/></scope><value>name %05d</value></name>`, i)
	}
	doc := `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
	<topic id="theme"><subjectIdentifier href="http://x/theme"/></topic><topic id="sort"><subjectIdentifier href="http://x/sort"/></topic>
	<topic id="reifier"><subjectIdentifier href="http://x/reifier"/><name><value>The naming</value></name></topic>
	<topic id="t"><subjectIdentifier href="http://x/t"/>
	<name reifier="#reifier"><itemIdentity href="#n1"/><value>A` + "&#13;\n" + ` &lt;b&gt;</value><variant><scope><topicRef href="#sort"/></scope><resourceData>a</resourceData></variant></name>
	<occurrence><itemIdentity href="#o1"/><type><topicRef href="#sort"/></type><resourceData>` + strings.Repeat("long ", 200_000) + `</resourceData></occurrence>
	` + many.String() + `</topic></topicMap>`
	n, b := served.Editor(t, []byte(doc))
	at := served.TopicPath("m", "http://x/t")
	f, a := b.Open(at + "/edit.html")
	assert.Less(t, len(a.Bytes), 512<<10)
	assert.Contains(t, served.TextOf(t, a), "about this: The naming")
	assert.Contains(t, served.TextOf(t, a), "With the variants a")
	a = b.Send(f, "preview")
	assert.Contains(t, served.TextOf(t, a), "You have changed nothing", "other line ends are no change")
	row := ""
	for name, values := range f.Fields {
		if strings.HasPrefix(values[0], "A") && strings.HasSuffix(name, "-value") {
			row = strings.TrimSuffix(name, "value")
		}
	}
	require.NotEmpty(t, row)
	before := record(n, "m", "http://x/t")
	b.Publish(f.Set(row+"value", "B", row+"scope", "http://x/theme"))
	after := record(n, "m", "http://x/t")
	require.Len(t, after.Names, len(before.Names))
	assert.Equal(t, before.Occurrences, after.Occurrences)
	assert.Equal(t, before.Names[1:], after.Names[1:])
	changed := before.Names[0]
	changed.Value, changed.Scope = "B", []fragment.Ref{"http://x/theme"}
	changed.Variants = slices.Clone(changed.Variants)
	changed.Variants[0].Scope = []fragment.Ref{"http://x/sort", "http://x/theme"}
	assert.Equal(t, changed, after.Names[0])
	assert.NotEmpty(t, changed.Reifier)
	assert.NotEmpty(t, changed.ItemIdentifiers)

	f, _ = b.Open(at + "/edit.html?name=5000")
	shown := f.Fields.Get("name-0-value")
	require.Contains(t, shown, "name ")
	b.Publish(f.Set("name-0-remove", "on"))
	less := record(n, "m", "http://x/t").Names
	assert.Len(t, less, len(after.Names)-1)
	assert.False(t, slices.ContainsFunc(less, func(n fragment.Name) bool { return n.Value == shown }))

	long := ""
	f, _ = b.Open(at + "/edit.html")
	for name := range f.Fields {
		if strings.HasSuffix(name, "-long") {
			long = strings.TrimSuffix(name, "long")
		}
	}
	require.NotEmpty(t, long, "a value that is too long for a field can go only")
	b.Publish(f.Set(long+"remove", "on"))
	assert.Empty(t, record(n, "m", "http://x/t").Occurrences)

	f, _ = b.Open(at + "/edit.html")
	row = f.Row(t, "name", "value", "B")
	a = b.Send(f.Set(row+"scope", "http://x/sort"), "preview")
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Contains(t, served.TextOf(t, a), "has no theme of its own")
}

// record returns the published record of a topic.
func record(n *served.Node, collection string, si fragment.Ref) (t *fragment.Topic) {
	n.T.Helper()
	require.NoError(n.T, n.Store.View(n.T.Context(), collection, func(v *store.View) (err error) {
		t, err = v.Source().Topic(si)
		return err
	}))
	require.NotNil(n.T, t)
	return t
}

// Whatever is filled in is published as text, or refused in the form.
func TestHostileForms(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	at := served.TopicPath("m", served.Oslo) + "/edit.html"
	for _, hostile := range []string{"<script>alert(1)</script>", `"'></textarea><b>`, "\u202eright to left", "]]>&amp;", strings.Repeat("x", 1<<20), "\n\nlines\n"} {
		f, _ := b.Open(at)
		b.Publish(f.Set("name-0-value", hostile))
		f, a := b.Open(at)
		assert.NotContains(t, string(a.Bytes), "<script>")
		if len(hostile) < 1000 {
			assert.Equal(t, strings.ReplaceAll(hostile, "\n", "\r\n"), f.Fields.Get("name-0-value"))
		} else {
			b.Publish(f.Set("name-0-remove", "on"))
			f, _ = b.Open(at)
			b.Publish(f.Set("name-0-value", "Oslo"))
		}
	}
	before := n.Current("m")
	f, _ := b.Open(at)
	empty := f.Row(t, "occurrence", "value", "")
	as := f.Row(t, "association", "type", "")
	for why, fields := range map[string][]string{
		"No topic is called nobody":      {"name-0-type", "nobody"},
		"No subject identifier: x\u0001": {"type-0-type", "x\u0001"},
		"The name is empty":              {"name-0-value", ""},
		"The type is missing":            {empty + "value", "x"},
		"No address":                     {empty + "value", "x", empty + "type", "http://x/t", empty + "datatype", "http://www.w3.org/2001/XMLSchema#anyURI"},
		"No datatype":                    {empty + "value", "x", empty + "type", "http://x/t", empty + "datatype", "x"},
		"This cannot be published":       {empty + "value", "<a>", empty + "type", "http://x/t", empty + "datatype", "http://www.w3.org/2001/XMLSchema#anyType"},
		"This cannot be published: ":     {"name-0-value", "nul\u0000"},
		"This cannot be published:":      {"name-0-value", "\xff\xfe"},
		"Something is missing":           {as + "type", "http://x/t"},
	} {
		f, _ := b.Open(at)
		if _, ok := f.Fields["type-0-type"]; !ok {
			f.Set("type-0-is", "")
		}
		a := b.Send(f.Set(fields...), "publish")
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, why)
		assert.Contains(t, served.TextOf(t, a), strings.TrimSuffix(why, "x\u0001"), why)
		leadsToWrong(t, a, fields[0])
	}
	assert.Equal(t, before, n.Current("m"))
	a := b.Send(f.Set("note", strings.Repeat("x", 1001)), "preview")
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Equal(t, strings.Repeat("x", 1001), served.FormOf(t, at, a).Fields.Get("note"), "the typed text is kept")
	assert.Contains(t, string(a.Bytes), `aria-describedby="note-wrong"`)
	assert.Equal(t, http.StatusRequestEntityTooLarge, b.Send(f.Set("note", strings.Repeat("x", 5<<20)), "preview").StatusCode)
	assert.Equal(t, http.StatusUnsupportedMediaType, b.Do(at, f.Fields, "Content-Type", "text/plain").StatusCode)
	assert.Equal(t, http.StatusBadRequest, b.Do(at+"?name=x", nil).StatusCode)
}

// leadsToWrong requires that a page leads to one field with an error, in the row of the field with the name, with the
// message beside it.
func leadsToWrong(t *testing.T, a served.Answer, name string) {
	t.Helper()
	id := regexp.MustCompile(`<li><a href="#([^"]+)">`).FindSubmatch(a.Bytes)
	require.NotNil(t, id, "no link to a field")
	field := string(id[1])
	assert.Equal(t, name[:strings.LastIndex(name, "-")], field[:len(name[:strings.LastIndex(name, "-")])])
	assert.Regexp(t, `<(input|textarea) id="`+field+`"[^>]* aria-invalid="true" aria-describedby="`+field+`-wrong"`, string(a.Bytes))
	assert.Contains(t, string(a.Bytes), `id="`+field+`-wrong"`)
}

// Rows and roles are added by a round trip, with all that was filled in.
func TestMoreRows(t *testing.T) {
	t.Parallel()
	_, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	f.Set(f.Row(t, "name", "value", "")+"value", "Kept")
	for _, kind := range []string{"name", "occurrence", "type", "association"} {
		more := served.FormOf(t, f.At, b.Send(f, kind))
		count := func(f served.Form) (n int) {
			for f.Fields.Has(fmt.Sprintf("%s-%d-is", kind, n)) {
				n++
			}
			return n
		}
		assert.Equal(t, count(f)+3, count(more), kind)
		more.Row(t, "name", "value", "Kept")
	}
	as := f.Row(t, "association", "type", "")
	assert.False(t, f.Fields.Has(as+"other-1-type"))
	assert.True(t, served.FormOf(t, f.At, b.Send(f, "roles")).Fields.Has(as+"other-1-type"))
}

// A topic that is maintained elsewhere is not edited here: its pages lead to no form, and a form names the place.
func TestDerivedMapsAreNotEdited(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	_, err := n.Store.CreateCollection(t.Context(), store.Collection{Name: "all", SP: n.SP("all"), DerivedFrom: []string{"m"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	_, err = derive.CatchUp(t.Context(), n.Store.(*store.DB), "all")
	require.NoError(t, err)
	for _, path := range []string{"/topicmaps/all/topics/new.html", served.TopicPath("all", served.Oslo) + "/edit.html", served.TopicPath("all", served.Oslo) + "/delete.html"} {
		a := b.Do(path, nil)
		assert.Equal(t, http.StatusConflict, a.StatusCode, path)
		assert.Contains(t, served.TextOf(t, a), "is derived from m and cannot be written")
	}
	assert.NotContains(t, string(b.Do("/topicmaps/all.html", nil).Bytes), "new.html")
	assert.Contains(t, string(b.Do("/topicmaps/m.html", nil).Bytes), "new.html")
	assert.Equal(t, http.StatusNotFound, b.Do("/topicmaps/nope/topics/new.html", nil).StatusCode)
	assert.Equal(t, http.StatusNotFound, b.Do(served.TopicPath("m", "http://x/none")+"/edit.html", nil).StatusCode)
}

// A form of a session that has ended gets a message about that, and its topic stays as it is.
func TestFormsOfNobody(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	before := n.State("m")
	a := n.Browser().Do(f.At, f.Set("do", "publish").Fields)
	assert.Equal(t, http.StatusUnauthorized, a.StatusCode)
	assert.NotEmpty(t, a.Header.Get("WWW-Authenticate"))
	assert.Contains(t, served.TextOf(t, a), "sign in to go on")
	assert.Equal(t, before, n.State("m"))
}

// Changes of other topics are no conflict, however many there are.
func TestEditingWhileOthersPublish(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Cities(30, "a"))
	var si string
	for _, s := range n.TopicSIs("m") {
		if strings.Contains(string(s), "city") {
			si = string(s)
		}
	}
	ended, done := make(chan struct{}), make(chan int)
	go func() {
		published := 0
		for ; ; published++ {
			select {
			case <-ended:
				done <- published
				return
			default:
			}
			doc := served.TopicMap(served.Topic("busy", fmt.Sprint("Busy ", published)))
			a := n.Do(http.MethodPost, "/topicmaps/m/topics", bytes.NewReader(doc), "Authorization", "Bearer "+served.OtherToken)
			if !assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes) {
				published = -1 << 20
			}
		}
	}()
	for i := range 20 {
		f, _ := b.Open(served.TopicPath("m", si) + "/edit.html")
		b.Publish(f.Set("name-0-value", fmt.Sprint("Edited ", i)))
	}
	close(ended)
	assert.Greater(t, <-done, 5)
	assert.Contains(t, n.Current("m"), "Edited 19")
}
