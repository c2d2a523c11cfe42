package client_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	textencoding "golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// charsets are conversions of a document in UTF-8 by an intermediary, by their names: the sent document and its
// charset.
var charsets = map[string]func(document string) (sent, charset string){
	"transcoded, and the declaration is as it was": func(d string) (string, string) { return inLatin1(d), "iso-8859-1" },
	"declared as what it is not":                   func(d string) (string, string) { return declaring(d, "ISO-8859-1"), "UTF-8" },
	"a charset that it is not in":                  func(d string) (string, string) { return inLatin1(declaring(d, "ISO-8859-1")), "utf-8" },
	"the declaration alone":                        func(d string) (string, string) { return inLatin1(declaring(d, "ISO-8859-1")), "" },
	"a byte order mark": func(d string) (string, string) {
		wide, err := unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().String(d)
		must(err)
		return wide, "iso-8859-1"
	},
}

func inLatin1(document string) string {
	latin, err := textencoding.HTMLEscapeUnsupported(charmap.ISO8859_1.NewEncoder()).String(document)
	must(err)
	return latin
}

// declaring returns a document that declares another encoding.
func declaring(document, label string) string {
	if rest, ok := strings.CutPrefix(document, "<?xml"); ok {
		_, document, _ = strings.Cut(rest, "?>")
	}
	return `<?xml version="1.0" encoding="` + label + `"?>` + document
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// encoding answers with the documents of the server in another encoding.
func encoding(in func(document string) (sent, charset string)) fault {
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		answer, body := faults.Record(real, r)
		contentType := answer.Header().Get("Content-Type")
		if answer.Code != http.StatusOK || !strings.Contains(contentType, "xml") && !strings.HasPrefix(contentType, "application/x-tm") {
			return false
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Del("Content-Length")
		sent, charset := in(string(body))
		if charset != "" {
			contentType += "; charset=" + charset
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(sent))
		return true
	}
}

// The charset of the Content-Type has priority over the declaration, in each document of a source (RFC 7303 §3.2).
func TestCharsetOfASource(t *testing.T) {
	first, second := doc(topic("ä", "Märchen"), topic("b", "né à Paris")), doc(topic("ä", "Große Märchen"), topic("b", "né à Paris"), topic("ç", "Ça va"))
	for name, in := range charsets {
		t.Run(name, func(t *testing.T) {
			t.Run("fragments", func(t *testing.T) {
				o := publishing(t, first)
				o.TakeSnapshot()
				o.BreakWith(encoding(in))
				s := inStep(t, o)
				s.has(o, first)
				require.True(t, s.verify().Equal)
				o.Put(second)
				s.sync()
				s.has(o, second)
				require.True(t, s.verify().Equal)
			})
			t.Run("fragments one by one", func(t *testing.T) {
				o := publishing(t, first)
				o.BreakWith(encoding(in))
				s := inStep(t, o, singly)
				o.Put(second)
				s.sync()
				s.has(o, second)
			})
			for _, form := range []string{archived, complete} {
				t.Run(strings.TrimPrefix(form, "/"), func(t *testing.T) {
					o := publishing(t, first)
					o.BreakWith(encoding(in))
					s := recorded(t, o, form)
					o.Put(second)
					s.sync()
					s.hasRecordsOf(o, "egov", "egov")
				})
			}
			t.Run("lists", func(t *testing.T) {
				p := newProducer(t)
				p.BreakWith(encoding(in))
				p.put("ä.xtm", doc(topic("ä", "Märchen")))
				p.put("b.xtm", doc(topic("b", "né à Paris")))
				p.list(1, p.item("ä.xtm", 1, ""), p.item("b.xtm", 1, ""))
				s := p.following(t, "list.xml")
				s.sync()
				s.hasOf(p, "list.xml", topic("ä", "Märchen"), topic("b", "né à Paris"))
			})
			t.Run("RDF", func(t *testing.T) {
				o := newOrigin(t)
				put := func(body string) {
					w := o.Ask(http.MethodPut, "/topicmaps/egov", "text/turtle", body)
					require.Less(t, w.Code, 300, "%s", w.Body)
				}
				require.Less(t, o.Ask(http.MethodPut, "/topicmaps/egov", "application/json", "{}").Code, 300)
				put(`<http://psi.example.org/b> <http://www.w3.org/2000/01/rdf-schema#label> "né à Paris" .`)
				o.TakeSnapshot()
				o.BreakWith(encoding(in))
				s := newSubscriber(t)
				_, err := s.Subscribe(t.Context(), o.FeedURL("egov"), client.SubscribeOptions{Name: "egov", Asked: store.Asked{Format: "rdfxml"}})
				require.NoError(t, err)
				s.mayDiffer = true
				s.sync()
				require.Contains(t, s.canonicalOf("egov", o.SP("egov")), "né à Paris")
				put(`<http://psi.example.org/b> <http://www.w3.org/2000/01/rdf-schema#label> "Ça va" .`)
				s.sync()
				require.Contains(t, s.canonicalOf("egov", o.SP("egov")), "Ça va")
			})
		})
	}
}
