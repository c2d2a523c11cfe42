package feeds

import (
	"bufio"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/write"
)

// Encode writes the feed as an Atom feed document: metadata, then extensions, then entries. Each entry has the elements
// of TMShare and of both generations of SDShare. Equal feeds give equal bytes. If a feed breaks a rule of Atom or of
// the protocol, nothing is written, and the error is an *[InvalidError].
//
// Text is written on one line, with U+FFFD for characters that XML does not allow. In ids and locators such characters
// make the feed invalid.
func (f *Feed) Encode(w io.Writer) error {
	if err := f.validate(); err != nil {
		return err
	}
	return f.encode(w, func(yield func(*Entry, error) bool) {
		for i := range f.Entries {
			if !yield(&f.Entries[i], nil) {
				return
			}
		}
	})
}

// EncodeWith is Encode with entries from a sequence, so that memory need not hold them all. It ignores f.Entries. At
// the first invalid entry or error of the sequence it returns the error; w then has a part of the document.
func (f *Feed) EncodeWith(w io.Writer, entries iter.Seq2[Entry, error]) error {
	head := *f
	head.Entries = nil
	if err := head.validate(); err != nil {
		return err
	}
	return f.encode(w, func(yield func(*Entry, error) bool) {
		n := 0
		for e, err := range entries {
			if err == nil {
				err = e.validateAs(n, true)
			}
			if n++; !yield(&e, err) {
				return
			}
		}
	})
}

func (f *Feed) encode(w io.Writer, entries iter.Seq2[*Entry, error]) error {
	e := newEncoder(w)
	e.root("feed")
	e.raw(language(f.Language, ""))
	e.number(attrRendering, f.Rendering)
	e.raw(">\n")
	e.text(1, "title", language(f.TitleLanguage, f.Language), line(f.Title))
	e.text(1, "subtitle", language(f.SubtitleLanguage, f.Language), line(f.Subtitle))
	e.element(1, "id", f.ID)
	e.element(1, "updated", FormatTime(f.Updated))
	e.author(1, f.Author)
	e.line(1, "generator", f.Generator)
	e.links(1, f.Links)
	e.element(1, "tmshare:"+elemPrefix, iri.Escape(f.ServerSrcLocatorPrefix))
	e.element(1, "cwa:"+elemPrefix, iri.Escape(f.ServerSrcLocatorPrefix))
	e.element(1, "own:"+elemCheckpoint, f.Checkpoint)
	e.element(1, "own:"+elemKey, f.Key)
	for _, id := range f.Openings {
		e.element(1, "own:"+elemOpening, id)
	}
	e.mark("fh:complete", f.Complete)
	e.mark("fh:archive", f.Archive)
	for entry, err := range entries {
		if err != nil {
			return err
		}
		e.raw("  <entry")
		e.entry(2, entry, f)
		e.raw("  </entry>\n")
	}
	e.raw("</feed>\n")
	return e.w.Flush()
}

// Encode writes the entry as an Atom entry document (RFC 4287 §2), as the self link of an entry leads to. The entry
// must have an author.
func (e *Entry) Encode(w io.Writer) error {
	if err := e.validate("entry", false); err != nil {
		return err
	}
	enc := newEncoder(w)
	enc.root("entry")
	enc.entry(1, e, new(Feed))
	enc.raw("</entry>\n")
	return enc.w.Flush()
}

// encoder writes elements. Flush of w returns its first error.
type encoder struct{ w *bufio.Writer }

func newEncoder(w io.Writer) encoder { return encoder{bufio.NewWriterSize(w, 16<<10)} }

// root writes the XML declaration and the start tag of the root, without its end, with all namespaces that the document
// may need.
func (e encoder) root(local string) {
	e.raw(`<?xml version="1.0" encoding="utf-8"?>` + "\n<" + local + ` xmlns="` + NamespaceAtom + `"` +
		"\n  " + `xmlns:fh="` + NamespaceHistory + `"` +
		"\n  " + `xmlns:tmshare="` + NamespaceTMShare + `"` +
		"\n  " + `xmlns:cwa="` + NamespaceCWA + `"` +
		"\n  " + `xmlns:sdshare="` + NamespaceSDShare2012 + `"` +
		"\n  " + `xmlns:own="` + NamespaceOwn + `"`)
}

// entry writes the rest of an entry, whose start tag is still open. It omits values that equal those of the feed.
func (e encoder) entry(indent int, entry *Entry, in *Feed) {
	e.raw(language(entry.Language, in.Language))
	e.number(attrCommit, entry.Commit)
	if entry.Rendering != in.Rendering {
		e.number(attrRendering, entry.Rendering)
	}
	if entry.Omits {
		e.raw(" own:" + attrOmits + `="` + omitsInstances + `"`)
	}
	e.raw(">\n")
	e.line(indent, "title", entry.Title)
	e.element(indent, "id", entry.ID)
	e.element(indent, "updated", FormatTime(entry.Updated))
	e.author(indent, entry.Author)
	e.summary(indent, entry)
	e.links(indent, entry.Links)
	for _, si := range entry.TopicSI {
		e.element(indent, "tmshare:"+elemTopicSI, iri.Escape(si))
		e.element(indent, "cwa:"+elemTopicSI, iri.Escape(si))
		e.element(indent, "sdshare:"+elemResource, iri.Escape(si))
	}
	if entry.Covered {
		e.indent(indent)
		e.raw("<own:" + elemState + " " + attrCovered + `="true">` + string(StateLive) + "</own:" + elemState + ">\n")
	} else {
		e.element(indent, "own:"+elemState, string(entry.State))
	}
	e.element(indent, "own:"+elemDigest, entry.Digest)
	e.line(indent, "own:"+elemCondition, entry.Condition)
	if entry.Content == EmptyContent {
		e.indent(indent)
		e.raw("<content/>\n")
	}
	if entry.Fragment != nil {
		e.indent(indent)
		e.raw(`<content type="` + MediaTypeXTM2 + `">`) // with a parameter it would not count as XML (RFC 4287 §4.1.3.3)
		_, _ = e.w.Write(entry.Fragment)
		e.raw("</content>\n")
	}
}

// summary writes the text of an entry for people. If the server has added a description of the changes, an
// attribute has the text without it.
func (e encoder) summary(indent int, entry *Entry) {
	text, attributes := line(entry.Summary), language(entry.SummaryLanguage, entry.Language)
	if changes := line(entry.Changes); changes != "" {
		attributes += " own:" + attrNote + `="` + string(write.Escape(nil, text, write.Either)) + `"`
		text = strings.TrimPrefix(text+dash+changes, dash)
	}
	e.text(indent, "summary", attributes, text)
}

func (e encoder) author(indent int, name string) {
	if name = line(name); name != "" {
		e.indent(indent)
		e.raw("<author><name>")
		e.escape(name)
		e.raw("</name></author>\n")
	}
}

func (e encoder) links(indent int, links []Link) {
	for _, l := range links {
		e.indent(indent)
		e.raw(`<link rel="`)
		e.escape(canonicalRel(l.Rel))
		if l.Type != "" {
			e.raw(`" type="`)
			e.escape(l.Type)
		}
		e.raw(`" href="`)
		e.escape(iri.Escape(l.Href))
		if l.Length > 0 {
			e.raw(`" length="`)
			e.raw(strconv.FormatInt(l.Length, 10))
		}
		e.raw("\"/>\n")
	}
}

// number writes an attribute of our namespace with a number, unless that is 0.
func (e encoder) number(name string, n uint64) {
	if n > 0 {
		e.raw(" own:" + name + `="` + strconv.FormatUint(n, 10) + `"`)
	}
}

// mark writes an empty element of the feed, if it is present.
func (e encoder) mark(name string, present bool) {
	if present {
		e.raw("  <" + name + "/>\n")
	}
}

// line writes an element with text for people on one line, unless the text is empty.
func (e encoder) line(indent int, name, text string) { e.element(indent, name, line(text)) }

// language returns the attribute for a language, or "" where it is that of the parent.
func language(tag, around string) string {
	if tag == "" || tag == around {
		return ""
	}
	return ` xml:lang="` + tag + `"`
}

// element writes an element with text, unless that is empty.
func (e encoder) element(indent int, name, text string) { e.text(indent, name, "", text) }

// text writes an element with text and attributes, unless the text is empty.
func (e encoder) text(indent int, name, attribute, text string) {
	if text == "" {
		return
	}
	e.indent(indent)
	e.raw("<")
	e.raw(name)
	e.raw(attribute)
	e.raw(">")
	e.escape(text)
	e.raw("</")
	e.raw(name)
	e.raw(">\n")
}

func (e encoder) indent(n int) {
	for range n {
		e.raw("  ")
	}
}

// raw writes markup. The writer keeps its errors.
func (e encoder) raw(s string) { _, _ = e.w.WriteString(s) }

// escape writes text as character data or as an attribute value.
func (e encoder) escape(s string) {
	_, _ = e.w.Write(write.Escape(e.w.AvailableBuffer(), s, write.Either))
}
