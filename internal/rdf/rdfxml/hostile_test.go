package rdfxml_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/rdfxml"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Each message states the place, the fault and the remedy. Nothing is fetched, and nothing grows without a
// bound.
func TestMessages(t *testing.T) {
	long := strings.Repeat("x", 9000)
	const begin = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">`
	bomb := `<!DOCTYPE rdf:RDF [<!ENTITY a "` + strings.Repeat("a", 1000) + `">`
	for i := 'b'; i < 'k'; i++ {
		bomb += `<!ENTITY ` + string(i) + ` "` + strings.Repeat("&"+string(i-1)+";", 100) + `">`
	}
	for document, want := range map[string]string{
		``:     "doc:1:1: ",
		`<a/>`: `the name a has no namespace; declare one with xmlns`,
		begin + "\n<e:a e:b='c' d='e'/></rdf:RDF>":                           `doc:2:1: the attribute d has no namespace; a property is an attribute with a prefix`,
		begin + `<e:a rdf:about="http://e/a b"/></rdf:RDF>`:                  `the IRI <http://e/a b> has the character ' ', which no IRI has; escape it with a percent sign`,
		begin + `<e:a xmlns:f="http://f/{"><f:b/></e:a></rdf:RDF>`:           `the IRI <http://f/{> has the character '{'`,
		begin + `<e:a xml:base="x:"><e:b rdf:resource="c"/></e:a></rdf:RDF>`: `is relative`,
		begin + `<e:a rdf:ID="a"/><e:a rdf:ID="a"/></rdf:RDF>`:               `rdf:ID gives the name doc#a again`,
		begin + `<e:a><e:b>` + "\x01" + `</e:b></e:a></rdf:RDF>`:             `doc:1:`,
		begin + strings.Repeat(`<e:a><e:b>`, 100_000):                        `elements are more than 1000 deep`,
		begin + "\n<e:a xml:lang='en US'/></rdf:RDF>":                        `doc:2:1: the language tag "en US" is not well-formed (BCP 47); write one such as en or en-GB`,
		begin + "<e:a>\n<e:b xml:lang='en-'>c</e:b></e:a></rdf:RDF>":         `doc:2:1: the language tag "en-" is not well-formed`,
		begin + "\n<f:a xmlns:f='http://f/" + long + "'/></rdf:RDF>":         `doc:2:1: the IRI <http://f/xxx`,
		begin + "<e:a f:b='c' xmlns:f='http://f/" + long + "'/></rdf:RDF>":   `has 9009 bytes; the most for an IRI is 8192: shorten the namespace or the base`,
		begin + "\n<e:a xml:base='http://f/" + long + "'/></rdf:RDF>":        `doc:2:1: the IRI <http://f/xxx`,
		`<!DOCTYPE rdf:RDF [<!ENTITY p "` + long[:1000] + `"><!ENTITY q "` + strings.Repeat("&p;", 10) + `">]>` + strings.Replace(begin, "http://e/", "http://e/"+strings.Repeat("&q;", 5), 1) + strings.Repeat(`<e:a/>`, 700): `has 50009 bytes`,
		strings.Replace(begin, "http://e/", "http://f/"+long[:8000], 1) + strings.Repeat(`<e:a/>`, 2000):                                                                                                                       `namespaces and bases add more than 8388608 bytes to the document; shorten them`,
		bomb + `]>` + begin + `<e:a><e:b>&j;</e:b></e:a></rdf:RDF>`:                                                                                                                                                            `limit`,
		`<!DOCTYPE rdf:RDF [<!ENTITY a SYSTEM "file:///etc/passwd">]>` + begin + `<e:a><e:b>&a;</e:b></e:a></rdf:RDF>`:                                                                                                         `external`,
		begin + `<e:a><e:b>` + strings.Repeat(strings.Repeat("c", 1000)+"<!---->", 17_000) + `</e:b></e:a></rdf:RDF>`:                                                                                                          `a text has more than 16777216 bytes`,
		begin + `<e:a><e:b>` + strings.Repeat("c", 200_000) + `</e:b></e:a></rdf:RDF>`:                                                                                                                                         `limit`,
	} {
		err := rdfxml.Read(strings.NewReader(document), rdfxml.Options{URI: "doc", Base: "http://e/doc", Limits: scan.Limits{Token: 100_000}}, func(rdf.Quad) error { return nil })
		var syntax *rdf.SyntaxError
		require.ErrorAs(t, err, &syntax, "%.200s", document)
		assert.Contains(t, strings.ReplaceAll(err.Error(), "http://e/doc", "doc"), want)
	}
}

// Constructs of RDF 1.2 are refused by that name, with their place.
func TestSyntaxOfRDF12IsNamed(t *testing.T) {
	const begin = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/" xmlns:its="http://www.w3.org/2005/11/its"`
	for document, want := range map[string]string{
		begin + ` rdf:version="1.2"/>`:                                             "1:1: this is RDF 1.2 syntax (rdf:version)",
		begin + "\n its:version='2.0'/>":                                           "1:1: this is RDF 1.2 syntax (its:version)",
		begin + ">\n<e:a its:dir='rtl'/>":                                          "2:1: this is RDF 1.2 syntax (its:dir)",
		begin + ">\n<e:a rdf:version='1.2'/>":                                      "2:1: this is RDF 1.2 syntax (rdf:version)",
		begin + "><e:a>\n <e:b its:dir='rtl'>c":                                    "2:2: this is RDF 1.2 syntax (its:dir)",
		begin + "><e:a><e:b rdf:annotation='c'/>":                                  `rdf:annotation`,
		begin + "><e:a>\n<e:b rdf:parseType='Triple'><e:c/></e:b></e:a></rdf:RDF>": `2:1: this is RDF 1.2 syntax (rdf:parseType="Triple")`,
		begin + "><e:a>\n<e:b rdf:annotationNodeID='n'>c</e:b></e:a></rdf:RDF>":    `2:1: this is RDF 1.2 syntax (rdf:annotationNodeID)`,
	} {
		err := rdfxml.Read(strings.NewReader(document), rdfxml.Options{URI: "doc", Base: "http://e/doc"}, func(rdf.Quad) error { return nil })
		var syntax *rdf.SyntaxError
		require.ErrorAs(t, err, &syntax, document)
		assert.ErrorContains(t, err, want, document)
		assert.ErrorContains(t, err, ", which this reader does not know; write the document in RDF 1.1", document)
	}
}
