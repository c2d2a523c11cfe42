package pages

import (
	"html"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// Statement is what a change says of a topic, or no longer says, in words.
type Statement []piece

// piece is a part of a statement. Topics are called by their names, and lead to their pages; values are text.
type piece struct {
	Text  string
	Value bool
	Was   string // the value before; "": the same
	Whole string // the locator that the text stands for; "": it stands for itself
	URL   string // "": it leads nowhere
	Lang  string // of the text; "": it is not known, or that of the page
}

// bytes returns how much HTML a statement makes, about.
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

// mostPieces is how many parts of a statement are shown: an association may have many roles, and any statement many
// themes.
const mostPieces = 100

// Statements prepares statements for a page. Topics are called as the function says; a link without a URL leads
// nowhere.
func Statements(in *texts.Language, list []mapdiff.Statement,
	name func(fragment.Ref) (Link, error)) (all []Statement, err error) {
	for _, s := range list {
		if s.Kind == mapdiff.SubjectIdentifier && words.IsOpaque(s.Parts[len(s.Parts)-1].Text) {
			continue
		}
		var said Statement
		lang := "" // that a theme says
		for i, part := range s.Parts {
			if i == mostPieces {
				said = append(said, piece{Text: "…"})
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
			said = append(said, p)
		}
		for i := range said {
			if said[i].Value {
				said[i].Lang = lang
			}
		}
		all = append(all, said)
	}
	return all, nil
}

// Name returns what the topic of a reference is called within a text: a shortened identifier where it has no name, or
// is nil.
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
