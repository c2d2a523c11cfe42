package words

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	_ "github.com/tmshare/tmshare/internal/testenv"
	terms "github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

func TestFold(t *testing.T) {
	for given, want := range map[string]string{
		"": "", "Dog Licence": "dog licence",
		"Straße": "strasse", "STRASSE": "strasse", "ẞ": "ss", // CaseFolding.txt, F
		"ΟΔΥΣΣΕΥΣ": "οδυσσευσ", "Ὀδυσσεύς": "οδυσσευσ", // the final sigma
		"İstanbul": "istanbul", "Diyarbakır": "diyarbakir", "ISPARTA": "isparta", // both i of Turkish
		"Århus": "arhus", "A\u030Arhus": "arhus", "Ærø": "aero", "Łódź": "lodz", "Đakovo": "dakovo", "Þór": "thor",
		"ﬁnance": "finance", "ĳssel": "ijssel", "ﬅ": "st", // ligatures
		"Ｔｏｋｙｏ": "tokyo", "①": "1", "x²": "x2", "Ⅳ": "iv", "㎏": "kg",
		"Йошкар": "иошкар", "ЁЛКА": "елка",
		"שָׁלוֹם": "שלום", "مُحَمَّد": "محمد",
		"が": "が", "か\u3099": "が", "ｶﾞ": "ガ",
		"กรุงเทพ": "กรุงเทพ", "हिन्दी": "हिन्दी", "한국": "한국", "\u1112\u1161\u11AB": "한",
		"soft\u00ADhyphen": "softhyphen", "\u202Eabc\u202C": "abc", "a\u200Db": "ab", "❤\uFE0F": "❤",
		"\xff\xfea": "\uFFFDa", "ꭰ": "Ꭰ", "ŉ": "ʼn", "ᾳ": "α",
	} {
		assert.Equal(t, want, Fold(given), "%q", given)
		assert.Equal(t, want, Fold(Fold(given)), "%q twice", given)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"Dog  licence (2026), §": "dog licence 2026",
		"O'Brien & Søn, A/S":     "o brien son a s",
		"don’t":                  "don t",
		"B2B-Shop_x":             "b2b shop x",
		"東京都":                    "東京 京都 都",
		"京":                      "京",
		"東京 Tower2":              "東京 京 tower2",
		"東京タワー":                  "東京 京タ タワ ワー ー",
		"กรุงเทพ":                "กรุ รุง งเ เท ทพ พ",
		"हिन्दी भाषा":            "हिन्दी भाषा",
		"한국 사람":                  "한국 사람",
		"\u0301a\u0301b":         "ab",
		"♥ :-)":                  "",
		strings.Repeat("x", 100): strings.Repeat("x", LongestWord),
		strings.Repeat("я", 100): strings.Repeat("я", LongestWord/2),
	} {
		var got []string
		for _, w := range cut(text) {
			got = append(got, w.text)
		}
		assert.Equal(t, want, strings.Join(got, " "), "%q", text)
	}
	assert.Len(t, cut(strings.Repeat("a ", 1_000_000)), wordsOfText)
}

// The same place in twelve scripts is found by its name, by the beginning of it, and in other cases.
func TestScripts(t *testing.T) {
	for name, queries := range map[string][]string{
		"Åbenrå Kommune":  {"abenra", "ÅBEN", "komm aben"},
		"Αθήνα":           {"αθηνα", "ΑΘΗΝ"},
		"Санкт-Петербург": {"санкт", "ПЕТЕР", "петербург санкт"},
		"Երևան":           {"երեւան", "ԵՐ"},
		"თბილისი":         {"თბილისი", "თბ", "ᲗᲑᲘᲚᲘᲡᲘ"},
		"יְרוּשָׁלַיִם":   {"ירושלים", "ירו"},
		"القاهِرة":        {"القاهرة", "القا"},
		"नई दिल्ली":       {"दिल्ली", "नई", "दि"},
		"กรุงเทพมหานคร":   {"กรุงเทพ", "มหานคร", "นคร"},
		"北京市":             {"北京", "京市", "京", "市", "北京市"},
		"とうきょうタワー":        {"とうきょう", "タワー", "きょう", "ﾀﾜｰ"},
		"서울특별시":           {"서울", "서울특별시"},
	} {
		topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{"http://x/1"}}, Names: []fragment.Name{{Value: name}}}
		entries := Entries(topic)
		for _, query := range queries {
			q := Parse(query)
			require.NotEmpty(t, q.Words, query)
			_, ok := q.Match(topic)
			assert.True(t, ok, "%s is found by %s (%q)", name, query, q.Words)
			for _, word := range q.Words {
				assert.True(t, slices.ContainsFunc(entries, func(e Entry) bool { return strings.HasPrefix(e.Word, word) }), "%s has an entry for %s", name, word)
			}
		}
		_, ok := Parse(queries[0] + "x").Match(topic)
		assert.False(t, ok, name)
	}
}

func named(names ...string) *fragment.Topic {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{"http://example.org/service/dog-licence"}}}
	for _, n := range names {
		t.Names = append(t.Names, fragment.Name{Value: n})
	}
	return t
}

func TestEntries(t *testing.T) {
	topic := named("Oslo", "Oslo kommune", "Byen Oslo", "Kommune")
	topic.Names[1].Variants = []fragment.Variant{{Value: "kommune i Norge", Datatype: tmdm.XSDString}, {Value: "http://example.org/picture", Datatype: tmdm.XSDAnyURI}}
	var got []string
	for _, e := range Entries(topic) {
		got = append(got, string(e.Rank)+e.Word)
	}
	assert.Equal(t, []string{"2byen", "6dog", "5i", "0kommune", "6licence", "5norge", "0oslo"}, got)
}

// The results come in this order.
func TestRanking(t *testing.T) {
	variant := named("Q", "other")
	variant.Names[0].Variants = []fragment.Variant{{Value: "Oslo", Datatype: tmdm.XSDString}}
	identified := named("something")
	identified.SubjectIdentifiers[0] = "http://example.org/city/oslo"
	order := []*fragment.Topic{
		named("OSLO"), named("Oslo kommune"), named("Oslo fylkeskommune"), named("Gamle Oslo"), named("Osloborg"), named("Oslofjorden nord"), named("Nye Oslofjorden"), variant, identified,
	}
	q := Parse("óslo")
	for i, topic := range order {
		m, ok := q.Match(topic)
		require.True(t, ok, "%d", i)
		for j, other := range order[i+1:] {
			n, ok := q.Match(other)
			require.True(t, ok)
			assert.Negative(t, m.Compare(n), "%d before %d", i, i+1+j)
			assert.Positive(t, n.Compare(m))
		}
	}
	for i, topic := range []*fragment.Topic{named("New York"), named("New York City"), named("The New York Times"), named("York, old and new"), named("New Yorkshire"), named("York", "A new one")} {
		m, ok := Parse("new york").Match(topic)
		require.True(t, ok, "%d", i)
		for _, later := range []*fragment.Topic{named("York", "A new one")} {
			n, _ := Parse("new york").Match(later)
			if i < 5 {
				assert.Negative(t, m.Compare(n), "%d: several texts come last", i)
			}
		}
	}
	_, ok := Parse("new york jersey").Match(named("New York"))
	assert.False(t, ok)
	_, ok = Parse("♥").Match(named("♥"))
	assert.False(t, ok, "no word is found by nothing")
	m, _ := Parse("dog").Match(named("x"))
	assert.Equal(t, Identifier, m.Text.Kind)
	assert.Equal(t, "identifier", m.Text.Kind.String())
}

const skosNS = "http://www.w3.org/2004/02/skos/core#"

// concept is a topic with names and occurrences of SKOS: "kind=value@language", where a language may be.
func concept(si string, statements ...string) *fragment.Topic {
	t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{tmdm.Locator(si)}}}
	for _, s := range statements {
		kind, rest, _ := strings.Cut(s, "=")
		value, tag, _ := strings.Cut(rest, "@")
		var scope []fragment.Ref
		if tag != "" {
			scope = []fragment.Ref{terms.LanguageNamespace + fragment.Ref(tag)}
		}
		if strings.HasSuffix(kind, "Label") {
			t.Names = append(t.Names, fragment.Name{Value: value, Type: skosNS + fragment.Ref(kind), Scope: scope})
		} else {
			t.Occurrences = append(t.Occurrences, fragment.Occurrence{Value: value, Datatype: tmdm.XSDString, Type: skosNS + fragment.Ref(kind), Scope: scope})
		}
	}
	t.Canonical()
	return t
}

// A match is in a label of some kind, a notation, a definition or a note. They come in this order.
func TestWhatFits(t *testing.T) {
	q := Parse("iron")
	var last *Match
	for i, each := range []struct {
		statements []string
		kind       Kind
		label      Label
	}{
		{[]string{"notation=Iron", "prefLabel=Fe@en"}, Notation, Preferred},
		{[]string{"notation=iron.2", "prefLabel=Iron@en"}, Notation, Preferred},
		{[]string{"prefLabel=Iron@en", "altLabel=iron"}, Name, Preferred},
		{[]string{"prefLabel=Fe@en", "altLabel=Iron@en"}, Name, Alternative},
		{[]string{"prefLabel=Fe@en", "hiddenLabel=Iron@en", "definition=iron is a metal@en"}, Name, Hidden},
		{[]string{"prefLabel=Iron ore@en"}, Name, Preferred},
		{[]string{"prefLabel=Fe@en", "notation=26 iron"}, Notation, Preferred},
		{[]string{"prefLabel=Fe@en", "definition=A metal called iron@en"}, Definition, Preferred},
		{[]string{"prefLabel=Fe@en", "scopeNote=Use it for iron, and for steel@en"}, Note, Preferred},
	} {
		topic := concept("http://x/1", each.statements...)
		m, ok := q.Match(topic)
		require.True(t, ok, "%d", i)
		assert.Equal(t, each.kind, m.Text.Kind, "%d", i)
		if each.kind == Name {
			assert.Equal(t, each.label, m.Text.Label(), "%d", i)
		}
		if last != nil {
			assert.Negative(t, last.Compare(m), "%d", i)
		}
		last = &m
	}
	for text, want := range map[string]string{"notation": Notation.String(), "definition": Definition.String(), "note": Note.String(), "alternative": Alternative.String(), "hidden": Hidden.String()} {
		assert.Equal(t, text, want)
	}
}

// A topic is found in a language by its texts of that language alone.
func TestMatchInALanguage(t *testing.T) {
	topic := concept("http://x/1", "prefLabel=Iron@en", "prefLabel=Eisen@de-AT", "altLabel=Fe", "definition=Ein Metall@de")
	for _, each := range []struct {
		query, language string
		found           bool
	}{{"iron", "en", true}, {"iron", "de", false}, {"eisen", "de", true}, {"fe", "", true}, {"fe", "en", false}, {"metall", "de", true}, {"metall", "en", false}, {"eisen metall", "de", true}, {"iron metall", "de", false}} {
		q := Parse(each.query)
		q.Language = &each.language
		_, ok := q.Match(topic)
		assert.Equal(t, each.found, ok, "%s in %q", each.query, each.language)
	}
	_, ok := Parse("iron metall").Match(topic)
	assert.True(t, ok)
}

func TestParse(t *testing.T) {
	q := Parse("  Dog Licence dog ")
	assert.Equal(t, []string{"dog", "licence"}, q.Words)
	assert.Equal(t, "Dog Licence dog", q.Text)
	assert.Empty(t, q.Locators)
	assert.Equal(t, []string{"東京", "京都"}, Parse("東京都").Words)
	for _, text := range []string{"http://example.org/x", "urn:isbn:3", "tel:+49"} {
		assert.Equal(t, tmdm.Locator(text), Parse(text).Locators[1])
	}
	for _, text := range []string{"Star Wars: A New Hope", "http: //x", "a b:c", ""} {
		assert.Empty(t, Parse(text).Locators, text)
	}
	assert.Len(t, Parse(strings.Repeat("a b c d e f g h i j ", 1000)).Words, mostWords)
}

func TestLastPart(t *testing.T) {
	for locator, want := range map[string]string{
		"http://x/service/dog-licence": "dog-licence", "http://x/a#b": "b", "http://x/a/": "a", "urn:isbn:123": "123", "http://x/M%C3%BCnchen": "München", "http://x/%FF": "%FF",
		"http://x": "x", "": "", "//": "",
	} {
		assert.Equal(t, want, lastPart(locator), locator)
	}
}

// However many statements a topic has, its entries are few, and their size is bounded.
func TestHostileTopics(t *testing.T) {
	long := named(strings.Repeat("a", 1<<20), strings.Repeat("漢字", 1<<18), strings.Repeat("\u0301", 1<<20), strings.Repeat("ﷺ ", 1<<18), "found")
	for i := range 10_000 {
		long.Names = append(long.Names, fragment.Name{Value: fmt.Sprintf("name %d of very many <b>&amp;", i)})
		long.SubjectIdentifiers = append(long.SubjectIdentifiers, tmdm.Locator(fmt.Sprintf("http://x/%d", i)))
	}
	entries := Entries(long)
	assert.LessOrEqual(t, len(entries), wordsOfTopic)
	for _, e := range entries {
		assert.LessOrEqual(t, len(e.Word), LongestWord)
		assert.True(t, utf8.ValidString(e.Word))
		assert.NotContains(t, e.Word, "\x00")
	}
	_, ok := Parse("found").Match(long)
	assert.True(t, ok)
}

func FuzzFold(f *testing.F) {
	for _, seed := range []string{"", "Straße", "İı", "ΟΔΥΣΣΕΥΣ", "東京タワー", "กรุงเทพ", "\u0344\u0345ᾳ", "\xff\xfe", "ﷺ", strings.Repeat("\u0301", 40), "ꭰᎠ", "가\u1100\u1161"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		folded := Fold(text)
		require.Equal(t, folded, Fold(folded), "%q", text)
		require.True(t, utf8.ValidString(folded))
		require.LessOrEqual(t, len(folded), 20*len(text)+20)
		words := cut(text)
		require.LessOrEqual(t, len(words), wordsOfText)
		for _, w := range words {
			require.NotEmpty(t, w.text)
			require.LessOrEqual(t, len(w.text), LongestWord)
			require.Equal(t, -1, strings.IndexByte(w.text, 0))
			require.True(t, utf8.ValidString(w.text))
		}
		topic := named(text)
		if q := Parse(text); len(q.Words) > 0 && len(text) < LongestQuery {
			m, ok := q.Match(topic)
			require.True(t, ok, "%q is found by itself", text)
			require.Equal(t, ofLabel, m.tier)
		}
	})
}
