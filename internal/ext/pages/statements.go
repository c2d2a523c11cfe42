package pages

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// Statement is a statement that a change added or removed, in words.
type Statement []piece

// piece is a part of a statement. Topics are called by their names, and lead to their pages; values are text.
type piece struct {
	Text  string
	Value bool
	Was   string // the value before; "": the same
	Whole string // the full locator that the text abbreviates; "": not abbreviated
	URL   string // "": it leads nowhere
	Lang  string // of the text; "": it is not known, or that of the page
	Kind  bool   // it names the kind of the following statement
}

// bytes returns the approximate length of a statement in HTML, in bytes.
func (s Statement) bytes() (n int) {
	for _, p := range s {
		for _, text := range []string{p.Text, p.Was, p.Whole, p.URL} {
			n += len(html.EscapeString(text))
		}
		n += 40 // tags
	}
	return n
}

// since marks the values that were others in an earlier form of a statement.
func (s Statement) since(was Statement) Statement {
	for i := range min(len(s), len(was)) {
		if s[i].Value && s[i].Text != was[i].Text {
			s[i].Was = was[i].Text
		}
	}
	return s
}

// mostPieces is the number of parts of a statement that are shown: an association may have many roles, and any
// statement many themes.
const mostPieces = 100

// Statements prepares the statements about a topic for a page. The function returns the links to topics; one without a
// URL leads nowhere.
func Statements(in *texts.Language, self fragment.Ref, list []mapdiff.Statement,
	name func(fragment.Ref) (Link, error)) (all []Statement, err error) {
	for _, s := range list {
		if s.Kind == mapdiff.SubjectIdentifier && words.IsOpaque(s.Parts[len(s.Parts)-1].Text) {
			continue
		}
		var shown Statement
		lang := "" // of a theme
		for i, part := range s.Parts {
			if i == mostPieces {
				shown = append(shown, piece{Text: "…"})
				break
			}
			p := piece{Text: layout.Cut(iri.Shown(part.Text))}
			switch part.Kind {
			case mapdiff.Words:
				p.Text = in.Phrase(p.Text)
			case mapdiff.Value:
				p.Text, p.Value = layout.Cut(part.Text), true
			case mapdiff.Datatype:
				p.Text, p.Lang = layout.Short(in, part.Text)
				p.Whole = layout.Cut(iri.Shown(part.Text))
			case mapdiff.Topic:
				if part.Identifier == "" {
					break
				}
				l, err := name(part.Identifier)
				if err != nil {
					return nil, err
				}
				p.Text, p.URL, p.Lang = l.Title, l.URL, l.Lang
				if !words.IsOpaque(string(part.Identifier)) {
					p.Whole = layout.Cut(part.Identifier.String())
				}
			}
			if l, ok := titles.LanguageOf(part.Identifier); ok && part.Kind == mapdiff.Topic {
				lang = l.String()
			}
			shown = append(shown, p)
		}
		for i := range shown {
			if shown[i].Value {
				shown[i].Lang = lang
			}
		}
		all = append(all, kindFirst(in, self, &s, shown))
	}
	return all, nil
}

// kindFirst puts the kind of a statement first, as the page of the topic does: the type of a name or an occurrence, or
// the relation of another topic to this one. Themes come last, in brackets.
func kindFirst(in *texts.Language, self fragment.Ref, s *mapdiff.Statement, plain Statement) (made Statement) {
	parts, at := s.Parts[:min(len(s.Parts), mostPieces)], 2 // index where the rest begins
	switch other, isObject := otherOf(self, parts); {
	case s.Kind == mapdiff.Name || s.Kind == mapdiff.Occurrence:
		made = plain[:2:2]
		typed := slices.IndexFunc(parts, func(p mapdiff.Part) bool { return strings.HasSuffix(p.Text, texts.OfType) })
		if typed < 0 || typed+1 == len(parts) {
			break
		}
		made, at = slices.Concat(plain[typed+1:typed+2], plain[1:typed]), typed+2
		made[0].Kind = true
		if isText := typed > 3 && words.IsText(parts[3].Text); isText { // its language implies that type
			made = made[:2]
		} else if typed > 2 {
			made = append(made, piece{Text: ")"}) // of the datatype
		}
	case s.Kind == mapdiff.Association && other > 0:
		made, at = Statement{plain[1], plain[other]}, 10
		made[0].Kind = true
		made[0].Text, made[0].Lang = RelationCalled(in, parts[1].Identifier, isObject, made[0].Text, made[0].Lang)
	default:
		return plain
	}
	themes := false
	for i := at; i < len(plain); i++ {
		p, text := plain[i], ""
		if i < len(parts) && parts[i].Kind == mapdiff.Words {
			text = strings.TrimPrefix(parts[i].Text, ")")
			p.Text = in.Phrase(text)
		}
		switch {
		case text == texts.InScope:
			p.Text, themes = " (", true
		case themes && text != "" && text != ", ":
			p.Text, themes = ")"+p.Text, false
		}
		made = append(made, p)
	}
	if themes {
		made = append(made, piece{Text: ")"})
	}
	return made
}

// otherOf returns the part that names the other topic in an association from a subject to an object (0 if it is no such
// association), and reports whether the topic is the object.
func otherOf(self fragment.Ref, parts []mapdiff.Part) (at int, isObject bool) {
	if len(parts) < 11 || parts[2].Text != " (" || parts[6].Text != ", " || !strings.HasPrefix(parts[10].Text, ")") {
		return 0, false
	}
	for _, roles := range [][2]tmdm.Locator{rdfRoles, typeRoles} {
		for _, places := range [][2]int{{3, 7}, {7, 3}} {
			if parts[places[0]].Identifier != roles[0] || parts[places[1]].Identifier != roles[1] {
				continue
			}
			switch self {
			case parts[places[0]+2].Identifier:
				return places[1] + 2, false
			case parts[places[1]+2].Identifier:
				return places[0] + 2, true
			}
		}
	}
	return 0, false
}

// distinct removes statements that repeat another one, such as that one concept is broader than another, which is
// narrower.
func distinct(self fragment.Ref, list []mapdiff.Statement) []mapdiff.Statement {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(list), func(s mapdiff.Statement) bool {
		other, isObject := otherOf(self, s.Parts)
		if s.Kind != mapdiff.Association || other == 0 {
			return false
		}
		called := relationCalled(s.Parts[1].Identifier, isObject)
		key := fmt.Sprint(called, "\x00", s.Parts[other].Identifier, s.Parts[10:])
		known := seen[key]
		seen[key] = true
		return known && called != ""
	})
}

// RelationCalled returns the title of a property from the point of view of its subject or its object.
func RelationCalled(in *texts.Language, property fragment.Ref, isObject bool, title, lang string) (text,
	language string) {
	switch called := relationCalled(property, isObject); {
	case called != "":
		return in.Say(called), ""
	case isObject:
		return in.Say(texts.IsOf, title), ""
	}
	return title, lang
}

// relationCalled returns the title that the table has for a property from the point of view of its subject or object;
// "" if it has none.
func relationCalled(property fragment.Ref, isObject bool) texts.Text {
	if all := relationsOf()[string(property)]; len(all) > 0 {
		r := &texts.Relations[all[0]]
		if r.Of != "" && isObject != (r.Inverse == string(property)) {
			return r.Of
		}
		return r.Title
	}
	return ""
}

// Name returns the name of the topic of a reference within a text: a shortened identifier if it has no name, or t is
// nil.
func Name(in *texts.Language, names *fragment.Names, t *fragment.Topic, ref fragment.Ref) (string, error) {
	if t != nil {
		title, _, ok, err := names.Best(t)
		if ok || err != nil {
			return label(title), err
		}
	}
	title, _ := layout.Short(in, string(ref))
	return title, nil
}

// label cuts a name for titles and links.
func label(title string) string { return (&store.Entry{Title: title}).Label() }
