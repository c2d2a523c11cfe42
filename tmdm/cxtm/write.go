package cxtm

import (
	"bufio"
	"io"
	"strconv"

	"github.com/tmshare/tmshare/internal/xml/write"
	"github.com/tmshare/tmshare/tmdm"
)

// Options are the options of the output.
type Options struct {
	// Base is the locator that all others are written relative to (ISO 13250-4
	// §3.19). For a document it is its own locator.
	Base tmdm.Locator

	// OmitItemIdentifiers leaves out all item identifiers and the reifier of the map itself, because they are
	// provenance, not content.
	//
	// The standard's order does not cover topics without subject identifiers and locators then. They are sorted by the
	// statements about them; those with equal statements stay in the order of the map, which has no effect on the
	// output unless their neighbours distinguish them.
	OmitItemIdentifiers bool
}

// Write writes tm to w. Duplicates must have been removed.
func Write(w io.Writer, tm *tmdm.TopicMap, o Options) error {
	x := newIndex(tm, o)
	p := printer{w: bufio.NewWriterSize(w, 64<<10), index: x}
	p.topicMap()
	return p.w.Flush() // which returns the first error of all writes
}

// printer writes elements (ISO 13250-4 §3.4 to §3.15). Errors stay with the
// buffered writer until it is flushed.
type printer struct {
	*index
	w *bufio.Writer
}

func (p *printer) topicMap() {
	var reifier *tmdm.Topic
	if !p.o.OmitItemIdentifiers {
		reifier = p.tm.Reifier()
	}
	p.open("topicMap", 0, reifier)
	p.locators("itemIdentifiers", p.itemIdentifiers(p.tm))
	for i := range p.topics {
		p.topic(i+1, &p.topics[i])
	}
	for i := range p.associations {
		p.association(i+1, &p.associations[i])
	}
	p.close("topicMap")
}

func (p *printer) topic(number int, t *topic) {
	p.open("topic", number, nil)
	p.locators("subjectIdentifiers", t.subjectIdentifiers)
	p.locators("subjectLocators", t.subjectLocators)
	p.locators("itemIdentifiers", t.itemIdentifiers)
	for i, n := range p.names(t.Topic) {
		p.open("name", i+1, n.Reifier())
		p.text("value", n.Value())
		p.ref("type", n.Type())
		p.scope(n.Scope())
		for i, v := range p.variants(n.TopicName) {
			p.open("variant", i+1, v.Reifier())
			p.text("value", v.value)
			p.text("datatype", v.Datatype())
			p.scope(v.Scope())
			p.locators("itemIdentifiers", p.itemIdentifiers(v))
			p.close("variant")
		}
		p.locators("itemIdentifiers", p.itemIdentifiers(n))
		p.close("name")
	}
	for i, o := range p.occurrences(t.Topic) {
		p.open("occurrence", i+1, o.Reifier())
		p.text("value", o.value)
		p.text("datatype", o.Datatype())
		p.ref("type", o.Type())
		p.scope(o.Scope())
		p.locators("itemIdentifiers", p.itemIdentifiers(o))
		p.close("occurrence")
	}
	for _, r := range t.played {
		p.raw(`<rolePlayed ref="association.`)
		p.number(r.association)
		p.raw(".role.")
		p.number(r.role)
		p.raw("\"></rolePlayed>\n")
	}
	p.close("topic")
}

func (p *printer) association(number int, a *association) {
	p.open("association", number, a.Reifier())
	p.ref("type", a.Type())
	for i, r := range a.roles {
		p.open("role", i+1, r.Reifier())
		p.ref("player", r.Player())
		p.ref("type", r.Type())
		p.locators("itemIdentifiers", p.itemIdentifiers(r))
		p.close("role")
	}
	p.scope(a.Scope())
	p.locators("itemIdentifiers", p.itemIdentifiers(a))
	p.close("association")
}

func (p *printer) scope(s *tmdm.Scope) {
	themes := p.themes(s)
	if len(themes) == 0 {
		return
	}
	p.open("scope", 0, nil)
	for _, n := range themes {
		p.refNumber("scopingTopic", n)
	}
	p.close("scope")
}

func (p *printer) locators(name string, list []string) {
	if len(list) == 0 {
		return
	}
	p.open(name, 0, nil)
	for _, l := range list {
		p.text("locator", l)
	}
	p.close(name)
}

func (p *printer) ref(name string, t *tmdm.Topic) { p.refNumber(name, p.numbers[t]) }

func (p *printer) refNumber(name string, number int) {
	p.raw("<")
	p.raw(name)
	p.raw(` topicref="`)
	p.number(number)
	p.raw(`"></`)
	p.raw(name)
	p.raw(">\n")
}

// open writes a start tag, with a number unless that is 0.
func (p *printer) open(name string, number int, reifier *tmdm.Topic) {
	p.raw("<")
	p.raw(name)
	if number > 0 {
		p.raw(` number="`)
		p.number(number)
		p.raw(`"`)
	}
	if reifier != nil {
		p.raw(` reifier="`)
		p.number(p.numbers[reifier])
		p.raw(`"`)
	}
	p.raw(">\n")
}

func (p *printer) close(name string) {
	p.raw("</")
	p.raw(name)
	p.raw(">\n")
}

// text writes an element with a string (Canonical XML 1.0 §2.3, Text Nodes).
func (p *printer) text(name, value string) {
	p.raw("<")
	p.raw(name)
	p.raw(">")
	_, _ = p.w.Write(write.Escape(p.w.AvailableBuffer(), value, write.Text))
	p.raw("</")
	p.raw(name)
	p.raw(">\n")
}

func (p *printer) raw(s string) { _, _ = p.w.WriteString(s) }

func (p *printer) number(n int) {
	_, _ = p.w.Write(strconv.AppendInt(p.w.AvailableBuffer(), int64(n), 10))
}
