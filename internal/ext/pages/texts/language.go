package texts

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"

	"github.com/tmshare/tmshare/internal/titles"
)

// Text is a text of pages: the English text, which is the key of its translations.
type Text string

// Language is one that pages are written in. It is safe for concurrent use.
type Language struct {
	Tag  string // BCP 47
	Name string // in the language itself

	says               map[string]string // by the text in English; nil: it is English
	tag                language.Tag
	forms              []string // of numbers, in the order of the texts for them
	thousands, decimal string
	phrases            *strings.Replacer
}

//go:embed languages/*.json
var languages embed.FS

// English is the language of the templates, and the fallback for texts that a language lacks.
var English = newLanguage("en", nil)

// Languages returns all, English first. Each but that is a file of the folder "languages" with the name of its tag.
var Languages = sync.OnceValue(func() []*Language {
	all := []*Language{English}
	files, err := languages.ReadDir("languages")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		content, err := languages.ReadFile("languages/" + file.Name())
		says := map[string]string{}
		if err == nil {
			err = json.Unmarshal(content, &says)
		}
		if err != nil {
			panic(fmt.Sprintf("languages/%s: %s", file.Name(), err))
		}
		all = append(all, newLanguage(strings.TrimSuffix(file.Name(), path.Ext(file.Name())), says))
	}
	return all
})

func newLanguage(tag string, says map[string]string) *Language {
	l := &Language{Tag: tag, says: says, tag: language.Make(tag)}
	l.Name, l.forms = l.Say(NameOfLanguage), strings.Fields(l.Say(FormsOfNumbers))
	number := []rune(l.Say(ANumber))
	l.thousands, l.decimal = string(number[1]), string(number[5])
	if says != nil {
		var pairs []string
		for _, p := range Phrases {
			pairs = append(pairs, string(p), l.Say(p))
		}
		l.phrases = strings.NewReplacer(pairs...)
	}
	return l
}

// For returns the language with a tag, or else the best one for people who accept some languages.
func For(tag string, accepted titles.Languages) *Language {
	all := Languages()
	tags := make([]string, len(all))
	for i, l := range all {
		if tags[i] = l.Tag; l.Tag == tag {
			return l
		}
	}
	if best, ok := accepted.Best(tags); ok {
		for _, l := range all {
			if l.Tag == best {
				return l
			}
		}
	}
	return English
}

// Say returns a text in the language, with values in the place of its verbs.
func (l *Language) Say(t Text, values ...any) string {
	text, ok := l.says[string(t)]
	if !ok || text == "" {
		text = string(t)
	}
	if len(values) > 0 {
		return fmt.Sprintf(text, values...)
	}
	return text
}

// Phrase returns words of which a statement is made (see [Phrases]).
func (l *Language) Phrase(words string) string {
	if l.phrases == nil {
		return words
	}
	return l.phrases.Replace(words)
}

// Has reports whether the language has a translation of a text.
func (l *Language) Has(t Text) bool { return l == English || l.says[string(t)] != "" }

// Count returns a whole number as people write it.
func (l *Language) Count(n any) string {
	text := fmt.Sprint(n)
	least := len(text) - len(strings.TrimLeft(text, "-"))
	for at := len(text) - 3; at > least; at -= 3 {
		text = text[:at] + l.thousands + text[at:]
	}
	return text
}

// Decimal returns a number that has a point as people write it.
func (l *Language) Decimal(text string) string { return strings.Replace(text, ".", l.decimal, 1) }

// Form returns which form of a text a number has (Unicode TR 35, Language Plural Rules).
func (l *Language) Form(n any) string {
	count := 0
	_, _ = fmt.Sscan(fmt.Sprint(n), &count)
	switch plural.Cardinal.MatchPlural(l.tag, count, 0, 0, 0, 0) {
	case plural.Zero:
		return "zero"
	case plural.One:
		return "one"
	case plural.Two:
		return "two"
	case plural.Few:
		return "few"
	case plural.Many:
		return "many"
	}
	return "other"
}

// Date returns a time in a form, which is a text as [time.Time.Format] has it.
func (l *Language) Date(form Text, t time.Time) string {
	t = t.UTC()
	written, layout := t.Format(l.Say(form)), l.Say(form)
	if month := t.Month().String(); strings.Contains(layout, "January") {
		return strings.Replace(written, month, l.Say(Text(month)), 1)
	} else if strings.Contains(layout, "Jan") {
		return strings.Replace(written, month[:3], l.Say(Text(month[:3])), 1)
	}
	return written
}

// Time returns the element of a time.
func (l *Language) Time(t time.Time) template.HTML { return l.element(ATime, t) }

// Day returns the element of a time of which the year stands elsewhere.
func (l *Language) Day(t time.Time) template.HTML { return l.element(ADayAndMinute, t) }

func (l *Language) element(form Text, t time.Time) template.HTML {
	return template.HTML(`<time datetime="` + t.UTC().Format(time.RFC3339) + `">` + l.Date(form, t) + `</time>`)
}
