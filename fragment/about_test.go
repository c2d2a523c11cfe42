package fragment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

func documentOf(topics ...string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + strings.Join(topics, "") + `</topicMap>`
}

func bareTopic(id string) string {
	return `<topic id="` + id + `"><subjectIdentifier href="http://a.org/` + id + `"/></topic>`
}

func namedTopic(id string) string {
	return `<topic id="` + id + `"><subjectIdentifier href="http://a.org/` + id + `"/><name><value>` + id + `</value></name></topic>`
}

func association(players ...string) string {
	var b strings.Builder
	b.WriteString(`<association><type><topicRef href="#type"/></type>`)
	for _, p := range players {
		b.WriteString(`<role><type><topicRef href="#role"/></type><topicRef href="#` + p + `"/></role>`)
	}
	return b.String() + `</association>`
}

func TestReadRecordFindsWhatADocumentIsAbout(t *testing.T) {
	instance := `<topic id="x"><subjectIdentifier href="http://a.org/x"/><instanceOf><topicRef href="#c"/></instanceOf></topic>`
	for name, c := range map[string]struct {
		document string
		hints    []tmdm.Locator
		about    tmdm.Locator // "": nothing says so
	}{
		"the only topic":                    {document: documentOf(bareTopic("x")), about: "http://a.org/x"},
		"the only one with a name":          {document: documentOf(bareTopic("a"), namedTopic("x"), bareTopic("b")), about: "http://a.org/x"},
		"a hint":                            {document: documentOf(namedTopic("x"), namedTopic("y")), hints: []tmdm.Locator{"http://none", "http://a.org/y"}, about: "http://a.org/y"},
		"in all associations":               {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("b", "x")), about: "http://a.org/x"},
		"the instance, not the class":       {document: documentOf(instance, bareTopic("c")), about: "http://a.org/x"},
		"two with names":                    {document: documentOf(namedTopic("x"), namedTopic("y"))},
		"two bare ones":                     {document: documentOf(bareTopic("x"), bareTopic("y"))},
		"two in the only association":       {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"))},
		"no topic at all":                   {document: documentOf()},
		"no topic is in all associations":   {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("b", "c"))},
		"a name weighs more than playing":   {document: documentOf(bareTopic("type"), bareTopic("role"), association("x", "a"), association("x", "b"), namedTopic("b")), about: "http://a.org/b"},
		"hints of what is not in it do not": {document: documentOf(namedTopic("x")), hints: []tmdm.Locator{"http://none"}, about: "http://a.org/x"},
	} {
		t.Run(name, func(t *testing.T) {
			doc := strings.ReplaceAll(c.document, `</topicMap>`, "")
			for _, id := range []string{"x", "a", "b", "c"} { // players that are not described
				if strings.Contains(doc, `"#`+id+`"`) && !strings.Contains(doc, `id="`+id+`"`) {
					doc += bareTopic(id)
				}
			}
			f, err := fragment.ReadRecord(t.Context(), strings.NewReader(doc+`</topicMap>`), xtm.Options{Base: "http://a.org/", URI: "doc.xtm"}, c.hints...)
			if c.about == "" {
				var ambiguous *fragment.AmbiguousError
				require.ErrorAs(t, err, &ambiguous)
				assert.Equal(t, "doc.xtm", ambiguous.URI)
				assert.Contains(t, err.Error(), "doc.xtm: ")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.about, f.Topic.TopicSI())
			assert.Equal(t, c.about, f.TopicSI)
			for _, stub := range f.Stubs {
				assert.NotEqual(t, c.about, stub.TopicSI())
			}
		})
	}
}
