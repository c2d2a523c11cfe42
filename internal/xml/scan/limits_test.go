package scan

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// Each limit accepts a value that is just within it.
func TestLimits(t *testing.T) {
	repeat := strings.Repeat
	attributes := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " a%d=''", i)
		}
		return b.String()
	}
	for _, c := range []struct {
		limit        string
		limits       Limits
		within, over string
	}{
		{"Depth", Limits{Depth: 3}, "<a><a><a/></a></a>", "<a><a><a><a/></a></a></a>"},
		{"Depth", Limits{Depth: 3}, "<!DOCTYPE a [<!ELEMENT a (((b)))>]><a/>", "<!DOCTYPE a [<!ELEMENT a ((((b))))>]><a/>"},
		{"Attributes", Limits{Attributes: 10}, "<a" + attributes(10) + "/>", "<a" + attributes(11) + "/>"},
		{"Attributes", Limits{Attributes: 2}, "<a b='' xmlns='u'/>", "<a b='' xmlns='u' c=''/>"},
		{"Attributes", Limits{Attributes: 1}, "<!DOCTYPE a [<!ATTLIST a b CDATA ''>]><a/>", "<!DOCTYPE a [<!ATTLIST a b CDATA ''>]><a c=''/>"},
		{"Name", Limits{Name: 20}, "<" + repeat("a", 20) + "/>", "<" + repeat("a", 21) + "/>"},
		{"Name", Limits{Name: 20}, "<a " + repeat("a", 20) + "=''/>", "<a " + repeat("a", 21) + "=''/>"},
		{"Name", Limits{Name: 20}, "<a><?" + repeat("a", 20) + "?></a>", "<a><?" + repeat("a", 21) + "?></a>"},
		{"Name", Limits{Name: 20}, "<!DOCTYPE a [<!ATTLIST a b (" + repeat("1", 20) + ") #IMPLIED>]><a/>", "<!DOCTYPE a [<!ATTLIST a b (" + repeat("1", 21) + ") #IMPLIED>]><a/>"},
		{"Token", Limits{Token: 100}, "<a>" + repeat("x", 100) + "</a>", "<a>" + repeat("x", 101) + "</a>"},
		{"Token", Limits{Token: 100}, "<a>" + repeat("x", 95) + "&lt;<![CDATA[1234]]></a>", "<a>" + repeat("x", 95) + "&lt;<![CDATA[12345]]></a>"},
		{"Token", Limits{Token: 100}, "<a><!--" + repeat("x", 93) + "--></a>", "<a><!--" + repeat("x", 94) + "--></a>"},
		{"Token", Limits{Token: 100}, "<a><?p " + repeat("x", 94) + "?></a>", "<a><?p " + repeat("x", 95) + "?></a>"},
		{"Token", Limits{Token: 100}, "<a b='" + repeat("x", 91) + "'/>", "<a b='" + repeat("x", 92) + "'/>"},
		{"Token", Limits{Token: 100}, "<a></a" + repeat(" ", 96) + ">", "<a></a" + repeat(" ", 97) + ">"},
		{"Token", Limits{Token: 100}, "<a><![CDATA[" + repeat("x", 88) + "]]></a>", "<a><![CDATA[" + repeat("x", 89) + "]]></a>"},
		{"Token", Limits{Token: 100}, "<!DOCTYPE a [<!ENTITY e '" + repeat("x", 60) + "'>]><a b='&e;'/>", "<!DOCTYPE a [<!ENTITY e '" + repeat("x", 60) + "'>]><a b='&e;&e;&e;'/>"},
		{"Bytes", Limits{Bytes: 100}, "<a>" + repeat("x", 93) + "</a>", "<a>" + repeat("x", 94) + "</a>"},
		{"Namespaces", Limits{Namespaces: 2}, "<a xmlns:a='u' xmlns:b='u'><b/></a>", "<a xmlns:a='u' xmlns:b='u'><b xmlns='u'/></a>"},
		{"DTD", Limits{DTD: 100}, "<!DOCTYPE a [<!--" + repeat("x", 70) + "-->]><a/>", "<!DOCTYPE a [<!--" + repeat("x", 90) + "-->]><a/>"},
		{"DTD", Limits{DTD: 100}, "<!DOCTYPE a [<?p " + repeat("x", 60) + "?>]><a/>", "<!DOCTYPE a [<?p " + repeat("x", 100) + "?>]><a/>"},
		{"DTD", Limits{DTD: 100}, "<!DOCTYPE a [<!ENTITY % p '<?p xxxxx?>'>%p;%p;%p;]><a/>", "<!DOCTYPE a [<!ENTITY % p '<?p xxxxx?>'>%p;%p;%p;%p;%p;%p;]><a/>"},
		{"EntityDepth", Limits{EntityDepth: 2}, "<!DOCTYPE a [<!ENTITY e 'x'><!ENTITY f '&e;'>]><a>&f;</a>", "<!DOCTYPE a [<!ENTITY e 'x'><!ENTITY f '&e;'><!ENTITY g '&f;'>]><a>&g;</a>"},
		{"EntityDepth", Limits{EntityDepth: 2}, "<!DOCTYPE a [<!ENTITY e 'x'><!ENTITY f '&e;'>]><a b='&f;'/>", "<!DOCTYPE a [<!ENTITY e 'x'><!ENTITY f '&e;'><!ENTITY g '&f;'>]><a b='&g;'/>"},
		{"Expansion", Limits{Expansion: 50}, "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a>&e;&e;</a>", "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a>" + repeat("&e;", 10) + "</a>"},
		{"Expansion", Limits{Expansion: 50}, "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a b='&e;&e;'/>", "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a b='" + repeat("&e;", 10) + "'/>"},
		{"Expansion", Limits{Expansion: 50}, "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a><b c='&e;" + repeat(" ", 50) + "'/></a>", "<!DOCTYPE a [<!ENTITY e '0123456789'>]><a><b c='" + repeat("&e;", 10) + "'/></a>"},
		{"Expansion", Limits{Expansion: 20}, "<!DOCTYPE a [<!ATTLIST b c CDATA '0123456789'>]><a><b/></a>", "<!DOCTYPE a [<!ATTLIST b c CDATA '0123456789'>]><a>" + repeat("<b/>", 20) + "</a>"},
	} {
		o := Options{URI: "big.xml", Limits: c.limits}
		assert.NotContains(t, checkSizes(t, []byte(c.within), o), "error", "%s within: %s", c.limit, c.within)
		events := checkSizes(t, []byte(c.over), o)
		assert.Contains(t, events, "error big.xml:1:", c.over)
		assert.Contains(t, events, ": exceeds Limits."+c.limit+", which is ", c.over)

		_, _, err := drain(NewScanner(strings.NewReader(c.over), o))
		var limit *LimitError
		require.True(t, errors.As(err, &limit), c.over)
		assert.Equal(t, c.limit, limit.Limit)
	}
}

// A token that has no end is not read to its end.
func TestEndlessTokens(t *testing.T) {
	testenv.SkipUnderRace(t)
	for _, begin := range []string{"<", "<a", "<a ", "<a b='", "<a b='&", "<a>", "<a>&", "<a>&#", "<a><!--", "<a><?p ", "<a><![CDATA[", "</", "<!DOCTYPE ", "<!DOCTYPE a [<!ENTITY e '", "<!DOCTYPE a [<!ELEMENT ", "<?xml version='", "<a></"} {
		for _, filler := range []string{"x", " ", "é", "&amp;", "]", "-", "?", "\r"} {
			endless := io.MultiReader(strings.NewReader(begin), &repeater{text: filler})
			read := &counter{r: endless}
			_, _, err := drain(NewScanner(read, Options{Limits: Limits{Token: 300_000, Bytes: 1_000_000, DTD: 10_000}}))
			assert.Error(t, err, "%q %q", begin, filler)
			if strings.Contains(begin, "[<!E") {
				assert.LessOrEqual(t, read.n, 100_000, "%q %q", begin, filler)
			}
			assert.LessOrEqual(t, read.n, 1_000_001, "%q %q", begin, filler)
		}
	}
}

// repeater yields its text for ever.
type repeater struct {
	text string
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(p), nil
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// An error of the reader is passed on, behind the events before it.
func TestErrorsOfTheReader(t *testing.T) {
	broken := errors.New("broken pipe")
	s := NewScanner(io.MultiReader(strings.NewReader("<a><b/>"), iotest.ErrReader(broken)), Options{URI: "u"})
	events, _, err := drain(s)
	assert.Equal(t, 3, events)
	assert.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "reading u: broken pipe")

	_, _, err = drain(NewScanner(&stuck{}, Options{}))
	assert.ErrorIs(t, err, io.ErrNoProgress)
	_, _, err = drain(NewScanner(&liar{}, Options{}))
	assert.ErrorContains(t, err, "claims to have read more")
}

type stuck struct{}

func (*stuck) Read([]byte) (int, error) { return 0, nil }

type liar struct{}

func (*liar) Read(p []byte) (int, error) { return len(p) + 1, nil }

// The cost of a document does not depend on its length.
func TestMemoryIsConstant(t *testing.T) {
	testenv.SkipUnderRace(t)
	allocations := func(topics int) float64 {
		document := string(topicMap(topics))
		document = strings.Replace(document, "\n", "\r\n", len(document)/100) // and some that is not read where it stands
		s := NewScanner(strings.NewReader(document), Options{})
		_, _, err := drain(s)
		require.NoError(t, err)
		return testing.AllocsPerRun(2, func() {
			s.Reset(strings.NewReader(document), "")
			if _, _, err := drain(s); err != nil {
				t.Error(err)
			}
		})
	}
	few, many := allocations(10), allocations(1000)
	assert.LessOrEqual(t, many, few, "allocations of a document that is 100 times as long")
	assert.LessOrEqual(t, few, 10.0)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := NewScanner(io.MultiReader(strings.NewReader("<a>"), io.LimitReader(&repeater{text: "<b c='d'>some text</b>\n"}, 23*100_000), strings.NewReader("</a>")), Options{})
	_, _, err := drain(s)
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(300_000))
}

// A token that comes in small pieces is not read again from its beginning for
// each of them: this would take minutes.
func TestLongTokensTakeLinearTime(t *testing.T) {
	testenv.SkipUnderRace(t)
	long := strings.Repeat("x y ", 200_000)
	for _, document := range []string{"<a>" + long + "</a>", "<a b='" + long + "'/>", "<a><!--" + long + "--></a>", "<a>&amp;" + long + "</a>"} {
		_, _, err := drain(NewScanner(iotest.OneByteReader(strings.NewReader(document)), Options{}))
		assert.NoError(t, err)
	}
}
