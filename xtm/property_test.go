package xtm_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Any map that the model allows can be written in all versions, and is read as the same map but for the losses that
// the writer counted.
func TestAnyMapSurvives(t *testing.T) {
	testenv.Check(t, 50, 300, func(r *rapid.T) {
		tm := drawMap(r)
		checkRoundTrip(t, tm)
	})
}

// A map that passes the check can be written in all versions, and is read as the same map. A map that does not pass
// cannot be written as XTM 2.1, or cannot be read then.
func TestWhatPassesTheCheckComesBack(t *testing.T) {
	refused, returned := 0, 0
	testenv.Check(t, 200, 2000, func(r *rapid.T) {
		tm := drawMap(r)
		topics := slices.Collect(tm.Topics())
		for range rapid.IntRange(0, 2).Draw(r, "hostile values") {
			topic := rapid.SampledFrom(topics).Draw(r, "topic")
			v := rapid.SampledFrom(testhostile.Values).Draw(r, "value")
			var themes []*tmdm.Topic
			for i := range rapid.SampledFrom([]int{0, 0, 0, 1, 200, 201}).Draw(r, "themes") {
				themes = append(themes, tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprintf("x:theme-%d", i))))
			}
			switch rapid.IntRange(0, 3).Draw(r, "where") {
			case 0:
				topic.AddName(v.Value, nil, themes...)
			case 1:
				topic.AddName("b", nil).AddVariant(v.Value, v.Datatype, themes...)
			case 2:
				_ = tmdm.AddItemIdentifier(topic.AddName("c", nil, themes...), tmdm.Locator(v.Datatype))
			default:
				topic.AddOccurrence(v.Value, v.Datatype, topic, themes...)
			}
		}
		tm.Normalize(r.Context())
		if err := xtm.Check(tm); err == nil {
			returned++
			checkRoundTrip(t, tm)
			return
		} else if encode := (*xtm.EncodeError)(nil); !errors.As(err, &encode) || len(err.Error()) > 9000 {
			require.Fail(r, "an error that names no construct, or is too long", "%s", err)
		}
		refused++
		for topic := range tm.Topics() {
			for _, n := range topic.Names() {
				if slices.ContainsFunc(n.Variants(), func(v *tmdm.Variant) bool { return n.Scope().Contains(v.Scope()) }) {
					return // it is checked, and XTM 2.1 leaves it out
				}
			}
		}
		var doc bytes.Buffer
		_, err := xtm.Write(&doc, tm, xtm.WriteOptions{Base: fuzzBase})
		if err == nil {
			_, err = xtm.Read(r.Context(), &doc, xtm.Options{Base: fuzzBase})
		}
		require.Error(r, err)
	})
	assert.Positive(t, refused)
	assert.Positive(t, returned)
}

// Whatever string is given as a locator, wherever one can stand: it comes back as
// it was, or is refused.
func TestAnyLocatorComesBackOrIsRefused(t *testing.T) {
	parts := rapid.SampledFrom([]string{"http", "HTTP", "urn", ":", "//", "/", ".", "..", "#", "?", "%", "%7E", "%7e", "%2F", "%20", " ", "+", "é", "\t", "\n", "\x7f", "\xff", "a", "1", "&", "\"", string(fuzzBase), "#t-aaaaaaaaaaaaaaaaaaaaaaaaaa", "anonymous-1"})
	refused, returned := 0, 0
	testenv.Check(t, 50, 300, func(r *rapid.T) {
		l := tmdm.Locator(strings.Join(rapid.SliceOfN(parts, 0, 6).Draw(r, "parts"), ""))
		tm := tmdm.New()
		typ := tm.CreateTopicBySubjectIdentifier("http://example.org/type")
		value, datatype := "v", tmdm.XSDInteger
		var topic *tmdm.Topic
		switch rapid.IntRange(0, 4).Draw(r, "place") {
		case 0:
			topic = tm.CreateTopicBySubjectIdentifier(l)
		case 1:
			topic = tm.CreateTopicBySubjectLocator(l)
		case 2:
			topic, _ = tm.CreateTopicByItemIdentifier(l)
		case 3:
			topic, datatype = tm.CreateTopicBySubjectIdentifier("http://example.org/o"), string(l)
		default:
			topic, value, datatype = tm.CreateTopicBySubjectIdentifier("http://example.org/o"), string(l), tmdm.XSDAnyURI
		}
		tm.CreateAssociation(typ, topic).AddRole(topic, topic)
		topic.AddOccurrence(value, datatype, typ)
		base := rapid.SampledFrom([]tmdm.Locator{"", fuzzBase}).Draw(r, "base")
		version := rapid.SampledFrom([]xtm.Version{xtm.V10, xtm.V20, xtm.V21}).Draw(r, "version")
		var doc bytes.Buffer
		losses, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: version, Base: base})
		var encode *xtm.EncodeError
		if errors.As(err, &encode) {
			refused++
			return
		}
		require.NoError(r, err)
		returned++
		again, err := xtm.Read(r.Context(), &doc, xtm.Options{Base: fuzzBase})
		require.NoError(r, err, "%q", l)
		if losses.Total() > 0 {
			return
		}
		if version != xtm.V21 || base == "" {
			dropMadeIDs(tm, again, fuzzBase)
		}
		o := cxtm.Options{Base: "http://elsewhere.example.org/"}
		require.Equal(r, canonical(t, tm, o), canonical(t, again, o), "%q", l)
	})
	assert.Positive(t, refused)
	assert.Positive(t, returned)
}

// drawMap makes a map with few identifiers, so that they meet: the same locator
// may be an item identifier, a subject identifier and a subject locator, and may
// look like an id that a writer makes up.
func drawMap(r *rapid.T) *tmdm.TopicMap {
	tm := tmdm.New()
	locator := func(label string) tmdm.Locator {
		n := rapid.IntRange(0, 11).Draw(r, label)
		switch n {
		case 0:
			return fuzzBase
		case 1:
			return fuzzBase + "#2x" // no XML name
		case 2:
			return "http://example.org/a b?c=&<d>"
		case 3:
			return "urn:größe"
		case 4:
			return fuzzBase + "#r-a"
		case 5:
			return fuzzBase + "#t-aaaaaaaaaaaaaaaaaaaaaaaaaa"
		}
		return tmdm.Locator(fmt.Sprintf("%s#%c", fuzzBase, 'a'+n-6))
	}
	var topics []*tmdm.Topic
	for range rapid.IntRange(1, 8).Draw(r, "topics") {
		l := locator("locator")
		var t *tmdm.Topic
		switch rapid.IntRange(0, 2).Draw(r, "kind") {
		case 0:
			t = tm.CreateTopicBySubjectIdentifier(l)
		case 1:
			t = tm.CreateTopicBySubjectLocator(l)
		default:
			t, _ = tm.CreateTopicByItemIdentifier(l)
		}
		_ = tmdm.AddItemIdentifier(t, locator("item identifier"))
		if rapid.Bool().Draw(r, "more") {
			_ = t.AddSubjectLocator(locator("subject locator"))
			_ = t.AddSubjectIdentifier(locator("subject identifier"))
		}
		topics = append(topics, t)
	}
	topic := func() *tmdm.Topic { return rapid.SampledFrom(topics).Draw(r, "topic") }
	themes := func() (list []*tmdm.Topic) {
		for range rapid.IntRange(0, 2).Draw(r, "themes") {
			list = append(list, topic())
		}
		return list
	}
	value := func() string {
		return rapid.SampledFrom([]string{"", "x", " a\n b\t", "<&>\"']]>", "\r", "\r\n", "日本\U0001F600", "\u0085\u2028"}).Draw(r, "value")
	}
	statement := func(c tmdm.Reifiable) {
		if rapid.IntRange(0, 2).Draw(r, "identified") == 0 {
			_ = tmdm.AddItemIdentifier(c, locator("statement id"))
		}
		if rapid.IntRange(0, 2).Draw(r, "reified") == 0 {
			_ = tmdm.SetReifier(c, topic())
		}
	}
	typed := func() (string, string) {
		switch rapid.IntRange(0, 3).Draw(r, "datatype") {
		case 0:
			return "http://example.org/%20v", tmdm.XSDString
		case 1:
			return "http://example.org/v w", tmdm.XSDAnyURI
		case 2:
			return rapid.SampledFrom([]string{"", "a &amp; b", `<b xmlns="urn:b"><c xmlns=""></c></b>`, `<c a="&quot;&lt;"></c>`}).Draw(r, "xml"), tmdm.XSDAnyType
		}
		return value(), tmdm.XSDInteger
	}
	for range rapid.IntRange(0, 10).Draw(r, "statements") {
		switch rapid.IntRange(0, 3).Draw(r, "statement") {
		case 0:
			var typ *tmdm.Topic
			if rapid.Bool().Draw(r, "typed") {
				typ = topic()
			}
			n := topic().AddName(value(), typ, themes()...)
			statement(n)
			for range rapid.IntRange(0, 2).Draw(r, "variants") {
				v, datatype := typed()
				statement(n.AddVariant(v, datatype, themes()...))
			}
		case 1:
			v, datatype := typed()
			statement(topic().AddOccurrence(v, datatype, topic(), themes()...))
		case 2:
			a := tm.CreateAssociation(topic(), themes()...)
			for range rapid.IntRange(0, 3).Draw(r, "roles") {
				statement(a.AddRole(topic(), topic()))
			}
			statement(a)
		default:
			a := topic().AddType(topic())
			if rapid.IntRange(0, 4).Draw(r, "special") == 0 {
				statement(a)
			}
		}
	}
	statement(tm)
	tm.Normalize(r.Context())
	return tm
}
