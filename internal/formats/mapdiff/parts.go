package mapdiff

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// Part is a part of a statement in words. Values and topics are separate parts, so that pages can show values as text
// and topics by name.
type Part struct {
	Kind PartKind
	Text string // a value without quotes; else as in [Statement.Text]

	// Identifier is the full identifier of a topic; "" if it has none.
	Identifier tmdm.Locator
}

// PartKind is a kind of part.
type PartKind byte

// The kinds of parts.
const (
	Words    PartKind = iota // between the others
	Value                    // of a name, a variant or an occurrence
	Topic                    // a topic that is named
	Datatype                 // a locator
	Address                  // a locator that identifies the topic
)

// A part begins with a mark, which is its kind, and ends with another one. No text contains these characters, because
// values are quoted, and locators do not have them.
const endOfPart = '\x1f'

func marked(kind PartKind, text string) string { return string(rune(kind)) + text + string(endOfPart) }

func quoted(value string) string { return marked(Value, strconv.Quote(value)) }

// statements makes statements for people from compared parts.
func (w writer) statements(parts []part) (all []Statement) {
	for _, s := range parts {
		parts := w.parts(s.text)
		var text strings.Builder
		for i, p := range parts {
			text.WriteString(iri.Shown(p.Text))
			if p.Kind == Value {
				if value, err := strconv.Unquote(p.Text); err == nil {
					parts[i].Text = value
				}
			}
		}
		all = append(all, Statement{s.kind, text.String(), parts})
	}
	return all
}

// Call replaces topics in statements, which are named by identifiers, by the names that a function returns. If it
// returns "", the identifier is kept. It drops statements that a topic has a meaningless identifier.
func Call(list []Statement, call func(tmdm.Locator) (string, error)) (called []Statement, err error) {
	for _, s := range list {
		var text strings.Builder
		for i := range s.Parts {
			p := &s.Parts[i]
			switch {
			case p.Kind == Topic && p.Identifier != "":
				name, err := call(p.Identifier)
				if err != nil {
					return nil, err
				}
				text.WriteString(cmp.Or(name, iri.Shown(p.Text)))
			case p.Kind == Value:
				text.WriteString(strconv.Quote(p.Text))
			case p.Kind == Datatype:
				text.WriteString(words.Short(p.Text))
			default:
				text.WriteString(iri.Shown(p.Text))
			}
		}
		if s.Kind != SubjectIdentifier || !words.IsOpaque(s.Parts[len(s.Parts)-1].Text) {
			s.Text = text.String()
			called = append(called, s)
		}
	}
	return called, nil
}

// parts divides a text at its marks. Values are still quoted.
func (w writer) parts(text string) (all []Part) {
	isMark := func(r rune) bool { return r >= rune(Value) && r <= rune(Address) }
	for text != "" {
		begin := strings.IndexFunc(text, isMark)
		if begin < 0 {
			return append(all, Part{Text: text})
		}
		if begin > 0 {
			all = append(all, Part{Text: text[:begin]})
		}
		inner, rest, _ := strings.Cut(text[begin+1:], string(endOfPart))
		p := Part{Kind: PartKind(text[begin]), Text: inner}
		if p.Kind == Topic && inner != unidentified {
			p.Identifier = tmdm.Locator(inner)
			if strings.HasPrefix(inner, "#") {
				p.Identifier = w.base + p.Identifier
			}
		}
		all, text = append(all, p), rest
	}
	return all
}
