package scan

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// laughs returns declarations of entities, each of them ten times the one
// before.
func laughs(text string, levels int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!ENTITY e0 '%s'>", text)
	for i := range levels {
		fmt.Fprintf(&b, "<!ENTITY e%d '%s'>", i+1, strings.Repeat(fmt.Sprintf("&e%d;", i), 10))
	}
	return b.String()
}

func TestExpansionsAreBounded(t *testing.T) {
	testenv.SkipUnderRace(t)
	for _, document := range []string{
		"<!DOCTYPE a [" + laughs("ha", 9) + "]><a>&e9;</a>",
		"<!DOCTYPE a [" + laughs("ha", 9) + "]><a b='&e9;'/>",
		"<!DOCTYPE a [" + laughs("<b/>", 9) + "]><a>&e9;</a>",
		"<!DOCTYPE a [" + laughs("", 9) + "]><a>&e9;</a>", // nothing, a thousand million times
		"<!DOCTYPE a [" + laughs("", 9) + "]><a b='&e9;'/>",
		"<!DOCTYPE a [" + laughs("ha", 9) + "<!ATTLIST a b CDATA '&e9;'>]><a/>",
		// one large entity, many times
		"<!DOCTYPE a [<!ENTITY e '" + strings.Repeat("x", 100_000) + "'>]><a>" + strings.Repeat("&e;", 10_000) + "</a>",
		"<!DOCTYPE a [<!ENTITY e '" + strings.Repeat("x", 100_000) + "'>]><a b='" + strings.Repeat("&e;", 10_000) + "'/>",
		"<!DOCTYPE a [<!ENTITY e '" + strings.Repeat("x", 100_000) + "'>]><a>" + strings.Repeat("<b c='&e;'/>", 10_000) + "</a>",
		// and without entities
		"<!DOCTYPE a [<!ATTLIST b c CDATA '" + strings.Repeat("x", 100_000) + "'>]><a>" + strings.Repeat("<b/>", 10_000) + "</a>",
	} {
		_, size, err := drain(NewScanner(strings.NewReader(document), Options{}))
		var limit *LimitError
		if assert.True(t, errors.As(err, &limit), "%.100s: %v", document, err) {
			assert.Equal(t, "Expansion", limit.Limit, "%.100s", document)
		}
		assert.Less(t, size, 20<<20)
	}
	// parameter entities are part of the DTD
	var b strings.Builder
	b.WriteString("<!DOCTYPE a [<!ENTITY % e0 '<!--x-->'>")
	for i := range 9 {
		fmt.Fprintf(&b, "<!ENTITY %% e%d '%s'>", i+1, strings.Repeat(fmt.Sprintf("&#37;e%d;", i), 10))
	}
	_, _, err := drain(NewScanner(strings.NewReader(b.String()+"%e9;]><a/>"), Options{}))
	var limit *LimitError
	require.True(t, errors.As(err, &limit), err)
	assert.Equal(t, "DTD", limit.Limit)
}

// Moderate expansion is allowed, however often it occurs.
func TestExpansionsInProportion(t *testing.T) {
	document := "<!DOCTYPE a [<!ENTITY auml 'ä'><!ATTLIST b type CDATA 'simple'>]><a>" + strings.Repeat("some words, then &auml; <b c='d'/>", 10_000) + "</a>"
	_, _, err := drain(NewScanner(strings.NewReader(document), Options{Limits: Limits{Expansion: 1000}}))
	assert.NoError(t, err)
}

func TestDeepNesting(t *testing.T) {
	for _, begin := range []string{"<a>", "<!DOCTYPE a [<!ELEMENT a "} {
		unit := "<a>"
		if strings.HasPrefix(begin, "<!") {
			unit = "("
		}
		_, _, err := drain(NewScanner(strings.NewReader(begin+strings.Repeat(unit, 1_000_000)), Options{}))
		var limit *LimitError
		require.True(t, errors.As(err, &limit), err)
		assert.Equal(t, "Depth", limit.Limit)
	}
	deep := strings.Repeat("<a>", 100_000) + strings.Repeat("</a>", 100_000)
	_, _, err := drain(NewScanner(strings.NewReader(deep), Options{Limits: Limits{Depth: 100_000}}))
	assert.NoError(t, err)
}

// Each beginning of a document is an error with a place, or is complete.
func TestTruncations(t *testing.T) {
	for _, document := range []string{rich, strings.ReplaceAll(rich, "\r\n", "\n")} {
		root := strings.Index(document, "</r:root>") + len("</r:root>")
		for n := range len(document) {
			for _, size := range []int{32, 4096} {
				_, _, err := drain(NewScanner(strings.NewReader(document[:n]), Options{BufferSize: size}))
				if err == nil {
					assert.GreaterOrEqual(t, n, root)
					continue
				}
				var syntax *SyntaxError
				if assert.True(t, errors.As(err, &syntax), "%d: %v", n, err) {
					lines := 1 + strings.Count(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(document[:n]), "\n")
					assert.Equal(t, lines, syntax.Line, "%d: %v", n, err)
					assert.Contains(t, syntax.Reason, "the document", "%d: %v", n, err)
				}
			}
		}
	}
}

// Documents that are spoilt in a few places are accepted or rejected, with the
// same events for all buffers.
func TestSpoiltDocuments(t *testing.T) {
	random := testenv.Rand(2)
	pieces := []string{"<", ">", "&", ";", "]]>", "'", "\"", "\r", "\x00", "\xff", "é", "<!--", "-->", "<?", "?>", "%decl;", "&nested;", "]", "/", "=", " ", "xmlns:", "<![CDATA["}
	for range testenv.Rounds(300, 3000) {
		document := []byte(rich)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(document))
			piece := pieces[random.IntN(len(pieces))]
			switch random.IntN(3) {
			case 0:
				document = append(document[:at:at], append([]byte(piece), document[at:]...)...)
			case 1:
				document = append(document[:at:at], document[min(at+1+random.IntN(5), len(document)):]...)
			default:
				copy(document[at:], piece)
			}
		}
		checkSizes(t, document, Options{Misc: random.IntN(2) == 0, SkipUnread: random.IntN(2) == 0})
	}
}

// Reading goes on where it should after a scanner is used again.
func TestReset(t *testing.T) {
	s := NewScanner(strings.NewReader(rich), Options{BufferSize: 64, Misc: true})
	for stop := range 24 {
		s.Reset(strings.NewReader(rich), "")
		for range stop { // broken off anywhere
			_, err := s.Next()
			require.NoError(t, err)
		}
	}
	s.Reset(strings.NewReader("<a>x</a>"), "")
	for _, want := range []Kind{StartElement, Text, EndElement} {
		kind, err := s.Next()
		require.NoError(t, err)
		assert.Equal(t, want, kind)
		assert.Equal(t, 1, s.Depth())
		assert.Equal(t, Name{Local: "a"}, s.Name())
	}
	_, err := s.Next()
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, 0, s.Depth())
	assert.Equal(t, Name{}, s.Name())
	_, err = s.Next()
	assert.Equal(t, io.EOF, err)
}
