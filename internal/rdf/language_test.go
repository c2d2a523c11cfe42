package rdf_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/rdf"
)

// Tags are well-formed or not as RFC 5646 has it: its examples (Appendix A), its irregular tags, and one tag for each
// way to break its grammar. An underscore is a hyphen.
func TestLanguageTags(t *testing.T) {
	for tag := range strings.FieldsSeq(`de fr ja i-enochian zh-Hant zh-Hans sr-Cyrl sr-Latn zh-cmn-Hans-CN cmn-Hans-CN zh-yue-HK yue-HK zh-Hans-CN
		sr-Latn-RS sl-rozaj sl-rozaj-biske sl-nedis de-CH-1901 sl-IT-nedis hy-Latn-IT-arevela de-DE en-US es-419 de-CH-x-phonebk az-Arab-x-AZE-derbend
		x-whatever qaa-Qaaa-QM-x-southern de-Qaaa sr-Latn-QM sr-Qaaa-RS en-US-u-islamcal zh-CN-a-myext-x-private en-a-myext-b-another
		en-GB-oed i-klingon i-default sgn-BE-FR art-lojban cel-gaulish no-bok zh-min-nan zh-xiang EN eNg-gB abcd abcdefgh x-a-1 ar-a-aaa-b-bbb-a-ccc`) {
		normal, err := rdf.Language(tag)
		assert.NoError(t, err)
		assert.Equal(t, tag, normal)
	}
	for tag, want := range map[string]string{"en_US": "en-US", "sr_Latn-RS": "sr-Latn-RS", "x_a": "x-a"} {
		normal, err := rdf.Language(tag)
		assert.NoError(t, err)
		assert.Equal(t, want, normal)
	}
	for _, tag := range []string{
		"", "-", "_", "a", "en-", "-en", "en--US", "en US", " en", "en\n", "e1", "abcdefghi", "de-419-DE", "a-DE", "en-a", "en-x", "x", "x-abcdefghi", "i-unknown", "de-1", "en-ab1",
		"en_US.UTF-8", "en__US", "é", "en-é", "en-u-a", "en-Latn-Latn", "en-gan-yue-hak-nan",
	} {
		_, err := rdf.Language(tag)
		assert.ErrorContains(t, err, "is not well-formed", tag)
	}
}

// A text in no language is a plain one: there is no text of the type rdf:langString without a tag.
func TestNoTextInALanguageWithoutATag(t *testing.T) {
	plain := rdf.NewLiteral("a", "")
	assert.Equal(t, plain, rdf.NewLiteral("a", rdf.LangStr))
	assert.Equal(t, plain, rdf.NewText("a", ""))
}
