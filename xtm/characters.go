package xtm

import (
	"fmt"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/internal/xml/write"
	"github.com/tmshare/tmshare/tmdm"
)

// uncarried says what XML cannot carry of a text (XML 1.0 §2.2, Characters), "" if it carries all.
func uncarried(text string) string {
	from := write.Plain(text, write.NonASCII)
	switch bad, found := scan.Uncarried(text[from:]); {
	case !found:
		return ""
	case bad == utf8.RuneError:
		return "the value is not valid UTF-8"
	default:
		return fmt.Sprintf("XML cannot carry the character %U: choose a notation that can, such as Turtle, N-Triples "+
			"or JSON-LD", bad)
	}
}

// CheckCharacters returns an error that names the first construct of a map which no version of XTM can be written of,
// since it has a character that XML cannot carry. Documents of XTM have none; those of other notations may.
func CheckCharacters(tm *tmdm.TopicMap) (err error) {
	check := func(c tmdm.Construct, texts ...string) {
		for _, l := range c.ItemIdentifiers() {
			texts = append(texts, string(l))
		}
		for _, text := range texts {
			if why := uncarried(text); why != "" && err == nil {
				err = fmt.Errorf("%s: %s", tmdm.Describe(c), why)
			}
		}
	}
	for t := range tm.Topics() {
		for _, set := range [][]tmdm.Locator{t.SubjectIdentifiers(), t.SubjectLocators()} {
			for _, l := range set {
				check(t, string(l))
			}
		}
		check(t)
		for _, n := range t.Names() {
			check(n, n.Value())
			for _, v := range n.Variants() {
				check(v, v.Value(), string(v.Datatype()))
			}
		}
		for _, o := range t.Occurrences() {
			check(o, o.Value(), string(o.Datatype()))
		}
		if err != nil {
			return err
		}
	}
	for a := range tm.Associations() {
		check(a)
		for _, r := range a.Roles() {
			check(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
