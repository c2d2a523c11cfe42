package fragment_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// generated returns a map like those that catalogues publish: each of n topics
// has a type, a subject identifier, two names (one of them scoped), two occurrences and, on average, one and a
// half binary associations.
func generated(tb testing.TB, n int) *tmdm.TopicMap {
	tm := tmdm.New()
	topic := func(kind string, i int) *tmdm.Topic {
		return tm.CreateTopicBySubjectIdentifier(tmdm.Locator(fmt.Sprintf("http://psi.example.org/%s/%d", kind, i)))
	}
	for i := range n {
		t := topic("subject", i)
		t.AddType(topic("class", i%20))
		t.AddName(fmt.Sprintf("Subject number %d", i), nil)
		t.AddName(fmt.Sprintf("Gegenstand Nummer %d", i), nil, topic("language", i%5))
		t.AddOccurrence(fmt.Sprintf("http://www.example.org/about/%d", i), tmdm.XSDAnyURI, topic("occurrence", 0))
		t.AddOccurrence(fmt.Sprintf("What there is to be said about subject number %d, in a sentence.", i), tmdm.XSDString, topic("occurrence", 1))
		for j := range 1 + i%2 {
			a := tm.CreateAssociation(topic("association", j))
			a.AddRole(topic("role", 0), t)
			a.AddRole(topic("role", 1), topic("subject", (i*7+j+1)%n))
		}
	}
	require.NoError(tb, tm.Normalize(tb.Context()))
	return tm
}

// BenchmarkFragments writes a fragment for every topic of a map, and compares
// that with reading the map.
func BenchmarkFragments(b *testing.B) {
	var doc bytes.Buffer
	_, err := xtm.Write(&doc, generated(b, 5_000), xtm.WriteOptions{Version: xtm.V21, Base: sp})
	require.NoError(b, err)
	var tm *tmdm.TopicMap
	reading := time.Hour
	for range 5 {
		start := testenv.CPUTime()
		tm, err = xtm.Read(b.Context(), bytes.NewReader(doc.Bytes()), xtm.Options{Base: sp})
		require.NoError(b, err)
		reading = min(reading, testenv.CPUTime()-start)
	}
	m, err := fragment.NameTopics(b.Context(), tm, sp, nil)
	require.NoError(b, err)
	var refs []fragment.Ref
	for t := range m.Topics() {
		refs = append(refs, t.TopicSI())
	}
	for _, v := range []xtm.Version{xtm.V21, xtm.V10} {
		b.Run("XTM"+string(v), func(b *testing.B) {
			form := fragment.Form{Version: v, SP: sp, OmitInstances: true}
			var document bytes.Buffer
			written := 0
			b.ReportAllocs()
			start := testenv.CPUTime()
			for b.Loop() {
				for _, ref := range refs {
					document.Reset()
					if err := fragment.Write(&document, m, ref, form); err != nil {
						b.Fatal(err)
					}
					written += document.Len()
				}
			}
			each := (testenv.CPUTime() - start) / time.Duration(b.N)
			b.ReportMetric(float64(len(refs))/each.Seconds(), "fragments/cpu-s")
			b.ReportMetric(float64(written)/1e6/float64(b.N)/each.Seconds(), "MB/cpu-s")
			b.ReportMetric(each.Seconds()/reading.Seconds(), "×reading")
		})
	}
}

// Generators of records. The locators are few, so that sets overlap, and some
// begin others, so that it shows where one ends.

var genLocator = rapid.SampledFrom([]tmdm.Locator{"h:", "h:a", "h:ab", "h:b", "http://東京/", "http://long.example.org/with/a/path#and-a-fragment"})

var genLocators = genSet(genLocator)

// genSet draws a set: in order, nil where it is empty.
func genSet(locators *rapid.Generator[tmdm.Locator]) *rapid.Generator[[]tmdm.Locator] {
	return rapid.Custom(func(t *rapid.T) []tmdm.Locator {
		set := rapid.SliceOfNDistinct(locators, 0, 4, rapid.ID).Draw(t, "set")
		if len(set) == 0 {
			return nil
		}
		return sorted(set)
	})
}

func sorted(set []tmdm.Locator) []tmdm.Locator {
	one := fragment.Association{Scope: set}
	one.Canonical()
	return one.Scope
}

var genReifier = rapid.OneOf(rapid.Just(tmdm.Locator("")), genLocator)

var genText = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "ab", "\x00", "a\nb", "é"}), rapid.String())

// genIDs draws item identifiers, which say nothing.
var genIDs = genLocators

// genType draws types that decide about titles, too, and genScope languages.
var (
	genType  = rapid.OneOf(genLocator, rapid.SampledFrom(append([]fragment.Ref{titles.LiteralForm, tmdm.PSIDefaultNameType}, labels()...)))
	genScope = genSet(rapid.OneOf(genLocator, rapid.SampledFrom([]fragment.Ref{words.LanguageNamespace + "en", words.LanguageNamespace + "de-at",
		"http://lexvo.org/id/iso639-3/deu", tmdm.PSISort})))
)

func labels() (all []fragment.Ref) {
	for _, property := range titles.Labels {
		all = append(all, fragment.Ref(property))
	}
	return all
}

var genTopic = rapid.Custom(func(t *rapid.T) *fragment.Topic {
	topic := &fragment.Topic{Provisional: rapid.Bool().Draw(t, "provisional")}
	topic.SubjectIdentifiers = rapid.SliceOfNDistinct(genLocator, 1, 4, rapid.ID).Draw(t, "identifiers")
	topic.SubjectLocators = genLocators.Draw(t, "locators")
	for i := range rapid.IntRange(0, 3).Draw(t, "names") {
		n := fragment.Name{
			Value: fmt.Sprint(i, genText.Draw(t, "value")), Type: genType.Draw(t, "type"), Scope: genScope.Draw(t, "scope"),
			Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		}
		for j := range rapid.IntRange(0, 3).Draw(t, "variants") {
			n.Variants = append(n.Variants, fragment.Variant{
				Value: fmt.Sprint(j, genText.Draw(t, "variant")), Datatype: genText.Draw(t, "datatype"), Scope: genLocators.Draw(t, "themes"),
				Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
			})
		}
		topic.Names = append(topic.Names, n)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "occurrences") {
		topic.Occurrences = append(topic.Occurrences, fragment.Occurrence{
			Value: fmt.Sprint(i, genText.Draw(t, "value")), Datatype: genText.Draw(t, "datatype"), Type: genType.Draw(t, "type"),
			Scope: genScope.Draw(t, "scope"), Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		})
	}
	topic.Canonical()
	return topic
})

var genAssociation = rapid.Custom(func(t *rapid.T) *fragment.Association {
	a := &fragment.Association{
		Type: genLocator.Draw(t, "type"), Scope: genLocators.Draw(t, "scope"),
		Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
	}
	type role struct{ typ, player tmdm.Locator }
	roles := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) role {
		return role{genLocator.Draw(t, "role"), genLocator.Draw(t, "player")}
	}), 1, 4, rapid.ID).Draw(t, "roles")
	for _, r := range roles {
		a.Roles = append(a.Roles, fragment.Role{
			Type: r.typ, Player: r.player, Reifier: genReifier.Draw(t, "reifier"), ItemIdentifiers: genIDs.Draw(t, "ids"),
		})
	}
	a.Canonical()
	return a
})
