package titles_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// name is a name of a topic: its text, its type, and its themes.
type name struct {
	value, typ string
	themes     []string
}

// called returns the title of a topic with some names; "-" if none can be a title.
func called(languages titles.Languages, names ...name) string {
	best := titles.Chooser[string]{Languages: languages}
	for _, n := range names {
		best.Name(n.value)
		best.Type(n.typ)
		for _, theme := range n.themes {
			best.Theme(theme)
		}
		best.End()
	}
	if title, ok := best.Best(); ok {
		return title
	}
	return "-"
}

// in returns the themes that tags in BCP 47 are, and others that are no languages.
func in(tags ...string) (themes []string) {
	for _, tag := range tags {
		if !strings.Contains(tag, ":") {
			tag = words.LanguageNamespace + tag
		}
		themes = append(themes, tag)
	}
	return themes
}

const dcTitle, fullName = "http://purl.org/dc/elements/1.1/title", "http://example.org/full-name"

// Each case has names from the best to the worst.
func TestOrderOfNames(t *testing.T) {
	for what, c := range map[string]struct {
		languages titles.Languages
		names     []name
	}{
		"types": {nil, []name{
			{"z", titles.PrefLabel, nil}, {"y", titles.LiteralForm, nil}, {"x", titles.Default, nil}, {"w", titles.RDFSLabel, nil},
			{"v", "http://schema.org/name", nil}, {"u", titles.DCTitle, nil}, {"t", dcTitle, nil}, {"s", titles.FOAFName, nil},
			{"r", titles.AltLabel, nil}, {"q", fullName, nil},
		}},
		"a preferred name in any language comes before others in that of the reader": {titles.Languages{"fi"}, []name{
			{"polku", titles.PrefLabel, in("fi")}, {"reitti", titles.FOAFName, in("fi")}, {"path", titles.PrefLabel, in("en")},
			{"Weg", titles.RDFSLabel, in("de")}, {"ura", titles.AltLabel, in("fi")}, {"way", titles.AltLabel, in("en")}, {"tie", fullName, in("fi")},
		}},
		"languages in their order, then none, then any": {titles.Languages{"de", "en"}, []name{
			{"z", titles.FOAFName, in("de")}, {"y", titles.PrefLabel, in("en")}, {"x", titles.PrefLabel, nil}, {"w", titles.FOAFName, nil},
			{"c", titles.PrefLabel, in("fi")}, {"b", titles.PrefLabel, in("fr")}, {"a", titles.RDFSLabel, in("da")},
		}},
		"without languages none comes first": {nil, []name{{"y", titles.Default, nil}, {"x", titles.PrefLabel, in("en")}}},
		"how close a language is": {titles.Languages{"de-ch-1996", "fr"}, []name{
			{"z", titles.PrefLabel, in("de-ch-1996")}, {"y", titles.PrefLabel, in("de-ch")}, {"x", titles.FOAFName, in("de")},
			{"w", titles.PrefLabel, in("de-ch-1996-x-town")}, {"v", titles.PrefLabel, in("de-at")}, {"u", titles.PrefLabel, in("fr-ca")},
			{"t", titles.PrefLabel, in("den")},
		}},
		"a name that holds everywhere comes before others": {nil, []name{
			{"z", titles.AltLabel, nil}, {"y", fullName, nil}, {"x", titles.PrefLabel, in("http://example.org/short")},
			{"w", fullName, in("http://example.org/short")}, {"v", titles.PrefLabel, in("http://example.org/short", "http://example.org/old")},
		}},
		"of several languages the best counts": {titles.Languages{"en"}, []name{
			{"y", titles.PrefLabel, in("fr", "en")}, {"x", titles.PrefLabel, in("fr", "de")},
		}},
		"the text counts last": {nil, []name{{"a", titles.PrefLabel, in("en")}, {"b", titles.PrefLabel, in("en")}, {"a", titles.PrefLabel, in("fr")}}},
		"what is no title": {titles.Languages{"en"}, []name{
			{"z", fullName, in("http://example.org/old")}, {"-", titles.HiddenLabel, in("en")}, {"-", titles.PrefLabel, in("en", "http://psi.topicmaps.org/iso13250/model/sort")},
			{" \u2003\n", titles.PrefLabel, in("en")},
		}},
	} {
		t.Run(what, func(t *testing.T) {
			for i, better := range c.names {
				for _, worse := range c.names[i+1:] {
					assert.Equal(t, better.value, called(c.languages, better, worse), "not %v", worse)
					assert.Equal(t, better.value, called(c.languages, worse, better), "not %v", worse)
				}
			}
		})
	}
	assert.Equal(t, "-", called(nil, name{"x", titles.HiddenLabel, nil}, name{" ", titles.PrefLabel, nil}))
	assert.Equal(t, "\xff", called(nil, name{"\xff", fullName, nil}))
}

func TestIdentifiersOfLanguages(t *testing.T) {
	for identifier, tag := range map[string]string{
		"https://github.com/tmshare/tmshare/ns/1/language/de-at":        "de-at",
		"http://www.topicmaps.org/xtm/1.0/language.xtm#EN":              "en",
		"http://psi.oasis-open.org/iso/639/#eng":                        "en",
		"http://psi.oasis-open.org/iso/639/#ger":                        "de",
		"http://psi.oasis-open.org/iso/639/#deu":                        "de",
		"http://lexvo.org/id/iso639-3/fin":                              "fi",
		"http://lexvo.org/id/iso639-3/sma":                              "sma",
		"http://id.loc.gov/vocabulary/iso639-1/nb":                      "nb",
		"http://id.loc.gov/vocabulary/iso639-2/fre":                     "fr",
		"http://publications.europa.eu/resource/authority/language/ELL": "el",
		"https://github.com/tmshare/tmshare/ns/1/language/eng-us":       "en-us",
		"https://github.com/tmshare/tmshare/ns/1/language/":             "",
		"https://github.com/tmshare/tmshare/ns/1/language/e":            "",
		"https://github.com/tmshare/tmshare/ns/1/language/en/us":        "",
		"https://github.com/tmshare/tmshare/ns/1/language/" + long(36):  "",
		"https://github.com/tmshare/tmshare/ns/1/language/" + long(35):  long(35),
		"http://example.org/en":                                         "",
	} {
		language, ok := titles.LanguageOf(identifier)
		assert.Equal(t, tag, language.String(), identifier)
		assert.Equal(t, tag != "", ok, identifier)
		inBytes, _ := titles.LanguageOf([]byte(identifier))
		assert.Equal(t, language, inBytes, identifier)
	}
}

func TestLanguagesOfReaders(t *testing.T) {
	assert.Equal(t, titles.Languages{"fi", "de-at", "en"}, titles.Accepted("en;q=0.5, fi, de-AT;q=0.8, fr;q=0, *;q=0.1"))
	assert.Equal(t, titles.Languages{"iw", "fi", "x-foo", "i-default"}, titles.Accepted(" fi ; q=0.9 ,IW,x-foo;q=0.3,i-default;q=0.2 , und, mul, *, en_US, de;q=2, sv;q=x, no;q=-1, b@d, ,"))
	assert.Empty(t, titles.Accepted("?"))
	assert.Equal(t, titles.Languages{"en"}, titles.Accepted(strings.Repeat("en,", 1000)))
	assert.Len(t, titles.Accepted("aa,ab,af,ak,am,an,ar,as,av,ay,az,ba,be"), 10)
	best, ok := titles.Languages{"nb", "iw-il", "de"}.Best([]string{"", "de", "he", "zh"})
	assert.True(t, ok)
	assert.Equal(t, "he", best)
	_, ok = titles.Languages{"nb"}.Best([]string{"", "de"})
	assert.False(t, ok)
	var given titles.Languages
	require.NoError(t, given.Set("pt-BR, eng"))
	assert.Equal(t, "pt-br,en", given.String())
	assert.ErrorContains(t, given.Set("en,Klingon!"), `"Klingon!" is no language tag: give one of BCP 47, such as en or pt-BR`)
	for _, c := range []struct{ all, messages, lang, want string }{
		{"", "", "", ""}, {"", "", "fi_FI.UTF-8", "fi-fi"}, {"", "de_DE@euro", "fi_FI", "de-de"}, {"C", "de_DE", "fi_FI", ""}, {"C.UTF-8", "", "", ""},
		{"POSIX", "", "", ""}, {"nn", "", "", "nn"},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		assert.Equal(t, c.want, titles.OfLocale(func(name string) string { return env[name] }), c)
	}
}

func TestTheLanguageOfMostNames(t *testing.T) {
	count := func(names map[string]int) string {
		all := titles.Count{}
		for language, n := range names {
			for range n {
				titles.CountName(all, titles.PrefLabel, in(language))
				titles.CountName(all, titles.AltLabel, in("la"))
			}
		}
		return all.Most()
	}
	assert.Equal(t, "", count(nil))
	assert.Equal(t, "", count(map[string]int{"http://example.org/theme": 3}))
	assert.Equal(t, "fi", count(map[string]int{"fi": 21, "en": 19}), "more by a tenth")
	assert.Equal(t, "en", count(map[string]int{"fi": 20, "en": 19, "de": 20}), "English has nearly all")
	assert.Equal(t, "de", count(map[string]int{"fi": 2, "de": 2}))
}

func long(n int) string { return "en-x-" + strings.Repeat("a", n-5) }

// A label is found by its own tag, whether that is in use or not, and by each equivalent tag (BCP 47). The requested
// tag has priority, and its equivalents have priority over other languages.
func TestLabelsAreFoundByTheirOwnTag(t *testing.T) {
	all := strings.Fields(`iw in ji mo sh no tl cmn yue zh-cmn zh-min-nan i-klingon art-lojban sgn-BE-FR en-GB-oed jw scc scr ger deu de-DD hbs
		sr-Latn ara arb fil nor x-foo i-default i-enochian i-lux no-bok no-nyn zh-guoyu zh-yue sgn-ase de-1901 de-x-a en-Latn cel-gaulish eng-us`)
	for _, tag := range all {
		both := []name{{"found", titles.PrefLabel, in(strings.ToLower(tag))}, {"another", titles.PrefLabel, in("aa")}}
		assert.Equal(t, "found", called(titles.Accepted(tag+";q=0.8, aa;q=0.5"), both...), "Accept-Language: %s", tag)
		var given titles.Languages
		require.NoError(t, given.Set(tag))
		assert.Equal(t, "found", called(given, both...), "--lang %s", tag)
		assert.Equal(t, "another", called(titles.Languages{"aa"}, both...), tag)
	}
	for _, same := range [][]string{
		{"he", "iw"}, {"id", "in"}, {"yi", "ji"}, {"jv", "jw"}, {"fil", "tl"}, {"zh", "cmn", "zh-cmn", "zh-guoyu"}, {"nb", "no", "nor", "no-bok"}, {"nn", "no-nyn"},
		{"nan", "zh-min-nan"}, {"tlh", "i-klingon"}, {"jbo", "art-lojban"}, {"sfb", "sgn-be-fr"}, {"yue", "zh-yue"}, {"lb", "i-lux"}, {"ar", "arb", "ara"},
		{"sr-latn", "sh", "hbs"}, {"sr", "scc"}, {"hr", "scr"}, {"de-de", "de-dd"}, {"ro-md", "mo"}, {"he-il", "iw-il"}, {"zh-hant", "cmn-hant"}, {"en", "en-latn"},
	} {
		for _, tag := range same {
			asked, err := titles.ParseLanguage(tag)
			require.NoError(t, err)
			for _, has := range same {
				assert.Equal(t, "found", called(titles.Languages{asked, "aa"}, name{"found", titles.PrefLabel, in(has)}, name{"another", titles.PrefLabel, in("aa")}), "%s for %s", has, asked)
				assert.Equal(t, "own", called(titles.Languages{asked}, name{"own", titles.PrefLabel, in(asked)}, name{"equal", titles.PrefLabel, in(has + "-x-other")}), "%s for %s", has, asked)
			}
		}
	}
	for _, closer := range []struct{ asked, better, worse string }{
		{"iw", "iw", "he"}, {"he", "he", "iw"}, {"he", "iw", "he-il"}, {"iw-il", "he", "yi"}, {"zh-tw", "cmn", "ja"}, {"nb", "no", "nn"}, {"zh", "cmn", "zh-tw"},
	} {
		assert.Equal(t, "b", called(titles.Languages{closer.asked}, name{"a", titles.PrefLabel, in(closer.worse)}, name{"b", titles.PrefLabel, in(closer.better)}), closer)
	}
}

// Whatever names a topic has, their order does not count, and no hidden label is its title.
func TestTheOrderOfNamesDoesNotCount(t *testing.T) {
	tags := rapid.SampledFrom(in("en", "en-gb", "de", "fi", "http://example.org/theme", "http://example.org/other"))
	names := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) name {
		typ := rapid.SampledFrom([]string{
			titles.PrefLabel, titles.AltLabel, titles.HiddenLabel, titles.Default, titles.RDFSLabel, dcTitle, titles.DCTitle, titles.FOAFName, fullName,
		}).Draw(t, "type")
		value := rapid.SampledFrom([]string{"", " ", "a", "b", "c", "ä"}).Draw(t, "value")
		if typ == titles.HiddenLabel {
			value = "hidden"
		}
		return name{value, typ, rapid.SliceOfNDistinct(tags, 0, 2, rapid.ID).Draw(t, "themes")}
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		all := names.Draw(t, "names")
		languages := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"en", "en-us", "de", "fr"}), 0, 3, rapid.ID).Draw(t, "languages")
		title := called(languages, all...)
		require.NotEqual(t, "hidden", title)
		require.Equal(t, title, called(languages, rapid.Permutation(all).Draw(t, "in another order")...))
	})
}

func TestNamesThatLoseCostNoMemory(t *testing.T) {
	value, typ, theme := []byte(strings.Repeat("a long name ", 20)), []byte(titles.PrefLabel), []byte("http://psi.oasis-open.org/iso/639/#eng")
	languages := titles.Languages{"fi", "de"}
	allocated := testing.AllocsPerRun(100, func() {
		best := titles.Chooser[[]byte]{Languages: languages}
		for range 20 {
			best.Name(value)
			best.Type(typ)
			best.Theme(theme)
			best.End()
		}
	})
	assert.Zero(t, allocated)
}
