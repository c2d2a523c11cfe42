package editing_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// towns has two topics that are called Springfield, and a language of another vocabulary.
func towns() []byte {
	return served.TopicMap(
		served.Topic("city", "City"), served.Topic("river", "River"), served.Topic("part-of", "part of"), served.Topic("role-1", "part"), served.Topic("role-2", "whole"),
		served.Topic("springfield-1", "Springfield"), served.Topic("springfield-2", "Springfield"), served.Topic("oslo", "Oslo"), served.Topic("länd", "Österreich"),
		served.Identified("de", []string{"http://psi.oasis-open.org/iso/639/#deu"}, "German"),
		served.Association("part-of", "oslo", "länd"),
	)
}

// Types, themes, roles and players are named as people call them: by a name, whatever its case and accents, or by the
// word for a term that the map does not name.
func TestTopicsAreNamedInForms(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, towns())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	f.Set(f.Row(t, "type", "type", "")+"type", "CITY")
	as := f.Row(t, "association", "type", "")
	f.Set(as+"type", "Part of", as+"role", "part", as+"other-0-type", "whole", as+"other-0-player", "osterreich", as+"scope", "River\r\ncity")
	name := f.Row(t, "name", "value", "")
	f.Set(name+"value", "Christiania", name+"language", "de", name+"type", "Preferred label")
	note := f.Row(t, "occurrence", "value", "")
	f.Set(note+"value", "The capital", note+"type", "definition", note+"language", "en-GB")
	b.Publish(f)
	oslo := record(n, "m", served.Oslo)
	assert.Contains(t, oslo.Names, fragment.Name{Value: "Christiania", Type: "http://www.w3.org/2004/02/skos/core#prefLabel", Scope: []fragment.Ref{"http://psi.oasis-open.org/iso/639/#deu"}}, "the language that the map has")
	require.Len(t, oslo.Occurrences, 1)
	assert.Equal(t, []fragment.Ref{words.LanguageNamespace + "en-gb"}, oslo.Occurrences[0].Scope)
	assert.Equal(t, fragment.Ref("http://www.w3.org/2004/02/skos/core#definition"), oslo.Occurrences[0].Type)
	text := served.TextOf(t, b.Do(served.TopicPath("m", served.Oslo)+".html", nil))
	assert.Contains(t, text, "City")
	assert.Contains(t, text, "Österreich")
}

// If several topics have a name, or none has it, the form reports that, and proposes topics that may be meant. A
// button takes one, without a script.
func TestSeveralTopicsAreCalledSo(t *testing.T) {
	t.Parallel()
	_, b := served.Editor(t, towns())
	for _, c := range []struct{ text, says, choice string }{
		{"springfield", "Several topics are called springfield. Choose one.", served.PSI + "springfield-1"},
		{"spring", "No topic is called spring. Choose one of these", served.PSI + "springfield-2"},
		{"Sprungfeld", "No topic is called Sprungfeld. Write another name.", ""},
	} {
		f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
		at := f.Row(t, "type", "type", "")
		a := b.Send(f.Set(at+"type", c.text), "preview")
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
		assert.Contains(t, strings.Join(strings.Fields(served.TextOf(t, a)), " "), c.says)
		buttons := regexp.MustCompile(`name="do" value="(use [^"]*)"`).FindAllStringSubmatch(string(a.Bytes), -1)
		if c.choice == "" {
			assert.Empty(t, buttons)
			continue
		}
		require.Len(t, buttons, 2)
		use := "use " + at + "type " + c.choice + " " + c.text
		assert.Contains(t, []string{buttons[0][1], buttons[1][1]}, use)
		chosen := served.FormOf(t, f.At, b.Send(served.FormOf(t, f.At, a), use))
		assert.Equal(t, "Springfield", chosen.Fields.Get(at+"type"), "by its name")
		assert.Contains(t, served.TextOf(t, b.Send(chosen, "preview")), "instance of Springfield")
		b.Publish(chosen)
		assert.Contains(t, string(b.Do(served.TopicPath("m", served.Oslo)+".html", nil).Bytes), fragment.Key(tmdm.Locator(c.choice)))
	}
}

// A field that is left alone names the topic that it named, whatever that and others are called by then.
func TestAFieldThatIsLeftAloneNamesTheSameTopic(t *testing.T) {
	t.Parallel()
	doc := func(first, second string) []byte {
		return served.TopicMap(served.Topic("kind-1", first), served.Topic("kind-2", second), served.Topic("oslo", "Oslo", served.Note("kind-1", "the capital")))
	}
	n, b := served.Editor(t, doc("Note", "Other"))
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	at := f.Row(t, "occurrence", "value", "the capital")
	assert.Equal(t, "Note", f.Fields.Get(at+"type"))
	served.Published(t, n.Put("m", doc("Remark", "Note"), "Authorization", "Bearer "+served.Token))
	b.Publish(f.Set(at+"value", "the old capital"))
	oslo := record(n, "m", served.Oslo)
	require.Len(t, oslo.Occurrences, 1)
	assert.Equal(t, fragment.Ref("http://psi.example.org/kind-1"), oslo.Occurrences[0].Type)
	assert.Equal(t, "the old capital", oslo.Occurrences[0].Value)
}

// A topic is named by a label of it that is a resource, too.
func TestTopicsAreNamedByLabelsInForms(t *testing.T) {
	t.Parallel()
	const xl, rdf = "http://www.w3.org/2008/05/skos-xl#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	ref := func(si string) string { return `<subjectIdentifierRef href="` + si + `"/>` }
	n, b := served.Editor(t, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">`+
		`<topic id="oslo"><subjectIdentifier href="`+served.Oslo+`"/><name><value>Oslo</value></name></topic><topic id="property"><subjectIdentifier href="`+xl+`prefLabel"/></topic>`+
		`<topic id="capital"><subjectIdentifier href="http://x/capital"/></topic>`+
		`<topic id="text"><subjectIdentifier href="http://x/text"/><occurrence><type>`+ref(xl+"literalForm")+`</type><resourceData>Seat of government</resourceData></occurrence></topic>`+
		`<association><type>`+ref(xl+"prefLabel")+`</type><role><type>`+ref(rdf+"subject")+`</type>`+ref("http://x/capital")+`</role><role><type>`+ref(rdf+"object")+`</type>`+ref("http://x/text")+`</role></association></topicMap>`))
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	b.Publish(f.Set(f.Row(t, "type", "type", "")+"type", "seat of Government"))
	a := n.MustGet(served.TopicPath("m", served.Oslo) + ".html")
	assert.Contains(t, string(a.Bytes), fragment.Key("http://x/capital"))
	assert.NotContains(t, string(a.Bytes), fragment.Key("http://x/text"))
}

// Each theme of a scope has a field, and there is an empty one. Errors stand beside their fields. A relation has the
// name that it has on the page of the topic.
func TestEachThemeHasAField(t *testing.T) {
	t.Parallel()
	n, b := served.Editor(t, served.Small())
	f, _ := b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	name := f.Row(t, "name", "value", "Oslo")
	require.True(t, f.Fields.Has(name+"scope"))
	require.False(t, f.Fields.Has(name+"scope-1"), "it has no themes")
	b.Publish(f.Set(name+"scope", "http://x/one\r\nhttp://x/two"))
	f, _ = b.Open(served.TopicPath("m", served.Oslo) + "/edit.html")
	name = f.Row(t, "name", "value", "Oslo")
	assert.Equal(t, "", f.Fields.Get(name+"scope-2"), "the empty one")
	require.True(t, f.Fields.Has(name+"scope-2"))
	assert.Contains(t, f.Fields.Get(name+"scope")+f.Fields.Get(name+"scope-1"), "two")

	a := b.Send(f.Set(name+"scope-2", "no such theme"), "preview")
	assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode)
	assert.Regexp(t, `(?s)<input id="`+name+`scope-2"[^>]*aria-invalid`, string(a.Bytes))
	assert.NotRegexp(t, `<input id="`+name+`scope(-1)?"[^>]*aria-invalid`, string(a.Bytes))
	b.Publish(f.Set(name+"scope-2", "http://x/three", name+"scope-1", ""))
	page := served.TextOf(t, n.Get(served.TopicPath("m", served.Oslo)+".html"))
	assert.Contains(t, page, "three")
	assert.Equal(t, 2, strings.Count(page, "(x)"), "one has gone, and one has come")
}
