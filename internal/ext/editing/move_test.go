package editing_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/served"
)

const movingPrefixes = `@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://e/> .
`

// concepts publishes a vocabulary of animals with its structure, and returns a browser in which it is edited.
func concepts(t *testing.T, structure string) (*served.Node, *served.Browser) {
	t.Helper()
	n, b := served.Editor(t, served.Small())
	n.PutSettings("voc", "{}", "Authorization", "Bearer "+served.Token)
	doc := movingPrefixes + structure + "\n:dog a :Kennel ; skos:prefLabel \"kennel of the dog\"@en . :zoo skos:prefLabel \"zoo\"@en .\n"
	for _, concept := range []string{"animal", "pet", "dog", "poodle", "plant"} {
		doc += ":" + concept + " a skos:Concept ; skos:prefLabel \"" + concept + "\"@en .\n"
	}
	a := n.Put("voc", []byte(doc), "Authorization", "Bearer "+served.Token, "Content-Type", "text/turtle")
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	return n, b
}

// structureOf returns the statements of a vocabulary about the places of its concepts, in order.
func structureOf(n *served.Node) (all []string) {
	short := strings.NewReplacer("<http://e/", "", "<http://www.w3.org/2004/02/skos/core#", "", ">", "", " .", "")
	for line := range strings.Lines(string(n.MustGet("/topicmaps/voc/snapshots/current.nt").Bytes)) {
		if said := strings.TrimSpace(short.Replace(line)); strings.Contains(line, "core#") && !strings.Contains(line, "abel>") && !strings.Contains(line, "#type>") {
			all = append(all, said)
		}
	}
	slices.Sort(all)
	return all
}

// A concept is moved beneath another one, in one commit: in the directions that the map has, and nothing of its old
// place is left.
func TestMovingAConcept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		structure string
		from      []string // the old place that is left out; nil: the one that the form proposes
		want      []string
	}{
		"broader":          {":dog skos:broader :animal . :poodle skos:broader :dog .", nil, []string{"dog broader pet", "poodle broader dog"}},
		"narrower":         {":animal skos:narrower :dog . :dog skos:narrower :poodle .", nil, []string{"dog narrower poodle", "pet narrower dog"}},
		"both":             {":animal skos:narrower :dog . :dog skos:broader :animal ; skos:related :plant .", nil, []string{"dog broader pet", "dog related plant", "pet narrower dog"}},
		"either":           {":animal skos:narrower :dog . :dog skos:broader :plant .", nil, []string{"dog broader pet", "pet narrower dog"}},
		"one of two":       {":dog skos:broader :animal, :plant .", []string{"http://e/plant"}, []string{"dog broader animal", "dog broader pet"}},
		"one more":         {":dog skos:broader :animal .", []string{}, []string{"dog broader animal", "dog broader pet"}},
		"at the top":       {":dog skos:topConceptOf :s . :s skos:hasTopConcept :dog, :animal .", nil, []string{"dog broader pet", "dog inScheme s", "s hasTopConcept animal"}},
		"in the scheme":    {":dog skos:topConceptOf :s ; skos:inScheme :s .", nil, []string{"dog broader pet", "dog inScheme s"}},
		"as those beneath": {":pet skos:narrower :plant .", nil, []string{"pet narrower dog", "pet narrower plant"}},
		"nowhere":          {"", nil, []string{"dog broader pet"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, b := concepts(t, c.structure)
			before := structureOf(n)
			path := linkTo(t, b, served.TopicPath("voc", "http://e/dog")+".html", "Move it under another concept")
			asked := string(b.Do(path, nil).Bytes)
			from := c.from
			if from == nil {
				for _, concept := range []string{"animal", "plant"} {
					if strings.Contains(asked, `name="from" value="http://e/`+concept+`" checked`) {
						from = append(from, "http://e/"+concept)
					}
				}
			}
			f, preview := b.Open(path + "?" + url.Values{"under": {"Pet"}, "from": from}.Encode())
			assert.Contains(t, string(preview.Bytes), `will be below`)
			assert.Equal(t, before, structureOf(n), "nothing is published yet")
			head := n.State("voc")
			done := b.Send(f.Set("note", "a better place"), "publish")
			require.Equal(t, http.StatusSeeOther, done.StatusCode, "%s", done.Bytes)
			assert.Equal(t, c.want, structureOf(n))
			assert.NotEqual(t, head, n.State("voc"))
			_, again := b.Open(path + "?" + url.Values{"under": {"pet"}}.Encode())
			assert.Contains(t, string(again.Bytes), "It is below that already.")
			undo := linkTo(t, b, linkTo(t, b, served.TopicPath("voc", "http://e/dog")+".html", `<time[^<]*</time>`), "Undo the whole commit")
			f, _ = b.Open(undo)
			require.Equal(t, http.StatusSeeOther, b.Send(f, "publish").StatusCode)
			assert.Equal(t, before, structureOf(n), "it is one commit")
		})
	}
}

// A concept cannot be beneath itself, or beneath a narrower concept of it, nor beneath a topic that is no concept. A
// person chooses between uncertain places.
func TestMovingAConceptWhereItCannotBe(t *testing.T) {
	t.Parallel()
	n, b := concepts(t, ":animal skos:narrower :pet . :dog skos:broader :pet . :dog skos:narrower :poodle . :other a skos:Concept ; skos:altLabel \"plant\"@en .")
	path := served.TopicPath("voc", "http://e/pet") + "/move.html"
	before := structureOf(n)
	ask := func(under string) served.Answer {
		a := b.Do(path+"?"+url.Values{"under": {under}, "from": {"http://e/animal"}}.Encode(), nil)
		require.Equal(t, http.StatusOK, a.StatusCode)
		assert.NotContains(t, string(a.Bytes), "will be below")
		return a
	}
	assert.Contains(t, served.TextOf(t, ask("pet")), "A concept cannot be below itself.")
	assert.Contains(t, served.TextOf(t, ask("http://e/pet")), "A concept cannot be below itself.")
	assert.Contains(t, served.TextOf(t, ask("poodle")), "poodle is below this concept.")
	assert.Contains(t, served.TextOf(t, ask("zoo")), "No concept is called zoo.")
	assert.Contains(t, served.TextOf(t, ask("http://e/new")), "No concept is called http://e/new.")
	several := ask("plant")
	assert.Contains(t, served.TextOf(t, several), "Several topics are called plant. Choose one.")
	assert.Contains(t, string(several.Bytes), `value="use under http://e/other plant"`)
	f, _ := b.Open(path + "?" + url.Values{"under": {"plant"}, "from": {"http://e/animal"}, "do": {"use under http://e/other plant"}}.Encode())
	assert.Equal(t, before, structureOf(n))

	other, _ := b.Open(served.TopicPath("voc", "http://e/pet") + "/edit.html") // others change the concept meanwhile
	b.Publish(other.Set(other.Row(t, "name", "value", "pet")+"value", "pets"))
	late := b.Send(f, "publish")
	assert.Equal(t, http.StatusPreconditionFailed, late.StatusCode)
	assert.Equal(t, before, structureOf(n))
	require.Equal(t, http.StatusSeeOther, b.Send(served.FormOf(t, f.At, late), "publish").StatusCode)
	assert.Contains(t, structureOf(n), "other narrower pet")
	assert.Contains(t, n.Browser().Do(path, nil).Header.Get("Location"), "/sign-in.html")
}
