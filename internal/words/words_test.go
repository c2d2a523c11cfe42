package words

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/iri"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

const own = iri.Own

func TestWordsOfTermsAndLanguages(t *testing.T) {
	for iri, want := range map[string]string{
		"http://www.w3.org/2004/02/skos/core#prefLabel":                     "preferred label",
		"http://www.w3.org/2004/02/skos/core#broader":                       "broader concept",
		"http://www.w3.org/2008/05/skos-xl#literalForm":                     "literal form",
		"http://www.w3.org/1999/02/22-rdf-syntax-ns#type":                   "type",
		"http://www.w3.org/2000/01/rdf-schema#seeAlso":                      "see also",
		"http://www.w3.org/2002/07/owl#disjointWith":                        "disjoint with",
		"http://purl.org/dc/elements/1.1/creator":                           "creator",
		"http://purl.org/dc/terms/ISO639-2":                                 "code of ISO 639-2",
		"http://xmlns.com/foaf/0.1/mbox_sha1sum":                            "SHA-1 digest of the mailbox",
		"https://schema.org/dateModified":                                   "modified",
		"http://schema.org/dateModified":                                    "modified",
		"http://www.w3.org/ns/prov#wasDerivedFrom":                          "was derived from",
		"http://psi.topicmaps.org/iso13250/model/type-instance":             "type and instance",
		"http://psi.topicmaps.org/iso13250/model/topic-name":                "name",
		"http://www.topicmaps.org/xtm/1.0/core.xtm#superclass":              "supertype",
		"http://www.topicmaps.org/xtm/1.0/psi1.xtm#role-superclass":         "supertype",
		"https://github.com/tmshare/tmshare/ns/1/language/de":               "German",
		"https://github.com/tmshare/tmshare/ns/1/language/pt-br":            "Brazilian Portuguese",
		"http://www.topicmaps.org/xtm/1.0/language.xtm#en":                  "English",
		"http://psi.oasis-open.org/iso/639/#nor":                            "Norwegian",
		"https://creativecommons.org/licenses/by-nc-sa/4.0/":                "CC BY-NC-SA 4.0",
		"http://creativecommons.org/licenses/by/3.0/de":                     "CC BY 3.0 de",
		"http://creativecommons.org/publicdomain/zero/1.0/":                 "CC0 1.0",
		"https://creativecommons.org/licenses/":                             "",
		own + "language/und":                                                "",
		own + "language/sr":                                                 "Serbian",
		"http://id.loc.gov/vocabulary/iso639-2/fre":                         "French",
		"http://publications.europa.eu/resource/authority/language/DEU":     "German",
		"http://www.topicmaps.org/xtm/1.0/country.xtm#NO":                   "Norway",
		"https://github.com/tmshare/tmshare/ns/1/language/nothing-as-such!": "",
		"http://www.w3.org/2004/02/skos/core#":                              "",
		"http://www.w3.org/2004/02/skos/core#nosuch":                        "",
		"http://www.w3.org/ns/dcat#Dataset":                                 "",
		"http://example.org/prefLabel":                                      "",
		"":                                                                  "",
	} {
		assert.Equal(t, want, Word(iri), iri)
	}
}

func TestShortIsReadable(t *testing.T) {
	kept := iri.KeepApart
	for iri, want := range map[string]string{
		"http://www.w3.org/2004/02/skos/core#prefLabel":                                "preferred label",
		"http://www.w3.org/2004/02/skos/core#nosuch":                                   "skos:nosuch",
		"http://www.w3.org/ns/dcat#Dataset":                                            "dcat:Dataset",
		"http://www.w3.org/2001/XMLSchema#date":                                        "xsd:date",
		"http://purl.obolibrary.org/obo/BFO_0000050":                                   "obo:BFO_0000050",
		"https://w3id.org/nfdi4cat/voc4cat_0000001":                                    "voc4cat_0000001 (w3id.org)",
		"http://www.example.org/onto#Wheel":                                            "Wheel (example.org)",
		"http://example.org:8080/map.xtm#t1":                                           "map.xtm#t1 (example.org:8080)",
		"http://example.org/years/2024/12":                                             "years/2024/12 (example.org)",
		"http://example.org/2024/12":                                                   "2024/12 (example.org)",
		"http://example.org/stra%C3%9Fe/":                                              "straße (example.org)",
		"http://example.org/a%00b%FFc":                                                 "a%00b%FFc (example.org)",
		"http://user:secret@example.org/page/?id=7":                                    "page?id=7 (example.org)",
		"http://example.org/":                                                          "example.org",
		"http://example.org#me":                                                        "me (example.org)",
		"file:///home/me/map.xtm#topic":                                                "topic",
		"urn:isbn:0451450523":                                                          "urn:isbn:0451450523",
		"mailto:a@example.org":                                                         "mailto:a@example.org",
		"nothing":                                                                      "nothing",
		kept("http://www.w3.org/ns/dcat#%7EDataset"):                                   "~Dataset (w3.org)",
		own + "iri/zz":                                                                 "iri/zz (github.com)",
		own + "datatype/anyURI":                                                        "xsd:anyURI",
		own + "language/x-none":                                                        "x-none",
		own + "unidentified/0e8dd4a5-6c4c-5b0e-8f43-1f8c5c2b6b":                        Unnamed,
		"http://example.org/.well-known/genid/b0123456789abcdef0123456789abcdef-2":     Unnamed,
		"http://www.example.org/" + strings.Repeat("very-", 100) + "long":              strings.Repeat("very-", 100) + "long (example.org)",
		"https://example.org/.well-known/genid/b0123456789abcdef0123456789abcdef/else": "else (example.org)",
	} {
		assert.Equal(t, want, Short(iri), iri)
	}
}

// Each line of the tables is read, and each word has one meaning. No language has a word that English does not have.
func TestTables(t *testing.T) {
	known, namespaceOf := map[string]bool{"language": true}, map[string]bool{}
	for prefix, namespace := range lines(namespaces) {
		assert.False(t, namespaceOf[namespace], "%s is there twice", namespace)
		assert.Regexp(t, `^https?://.*[/#]$`, namespace)
		known[prefix], namespaceOf[namespace] = true, true
	}
	for _, tag := range inLanguages {
		table, err := tables.ReadFile(tag + ".txt")
		require.NoError(t, err)
		seen := map[string]bool{}
		for name, word := range lines(string(table)) {
			prefix, local, ok := strings.Cut(name, ":")
			assert.True(t, ok && known[prefix] && local != "", "%s: no prefix of namespaces.txt", name)
			assert.False(t, seen[name], "%s is there twice", name)
			seen[name] = true
			assert.Regexp(t, `^[\pL0-9][\pL0-9,' -]*$`, word, name)
			assert.NotContains(t, word, "  ", name)
			assert.NotEmpty(t, words()["en"][name], "%s: only %s has a word for it", name, tag)
			iri := own + "language/" + local
			if prefix != "language" {
				iri = Namespaces(prefix)[prefix] + local
			}
			is, other := WordIn(tag, iri)
			assert.Equal(t, word, is, name)
			assert.Empty(t, other, name)
			if prefix != "language" {
				assert.Contains(t, IRIs(word), iri)
			}
		}
	}
	assert.Equal(t, map[string]string{"schema": "https://schema.org/", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}, Namespaces("schema", "rdf", "nosuch"))
}

// A missing word of a language is in English, and marked so. Languages and countries have their own names.
func TestWordsOfAnotherLanguage(t *testing.T) {
	for iri, want := range map[string][2]string{
		"http://www.w3.org/2004/02/skos/core#broader":              {"Oberbegriff"},
		"http://xmlns.com/foaf/0.1/tipjar":                         {"tip jar", "en"},
		"https://github.com/tmshare/tmshare/ns/1/language/fr":      {"Französisch"},
		"http://www.topicmaps.org/xtm/1.0/country.xtm#NO":          {"Norwegen"},
		"http://www.w3.org/ns/dcat#Dataset":                        {"dcat:Dataset"},
		"http://example.org/a/thing":                               {"thing (example.org)"},
		"https://github.com/tmshare/tmshare/ns/1/language/sr-Latn": {"Serbisch in lateinischer Schrift"},
	} {
		short, lang := ShortIn("de", iri)
		assert.Equal(t, want, [2]string{short, lang}, iri)
	}
	assert.Equal(t, "nl", LanguageCalled("niederländisch"))
	assert.Equal(t, "nl", LanguageCalled("Dutch"))
}
