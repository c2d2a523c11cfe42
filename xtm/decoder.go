package xtm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// Options say how to read a document. All but Base have a useful zero value.
type Options struct {
	// Base is the locator of the document: all others resolve against it and
	// against xml:base.
	Base tmdm.Locator
	// URI names the document in errors; the default is Base.
	URI string
	// Lenient accepts what widely used software writes against the rules:
	// a type in the baseName of XTM 1.0 (Ontopia), the prefix xlink and the
	// namespace of XTM 1.0 left to the DTD, text between elements, and an item
	// identifier given to a second statement, which is left out there.
	Lenient bool
	// DropClashes leaves out an item identifier given to a second statement, as
	// Lenient does, and is strict otherwise: servers repeat ids that mean nothing
	// beyond one document.
	DropClashes bool
	// Limits bound what the document may cost.
	Limits Limits
	// Loader opens the documents that mergeMap names. Without it, a document
	// with a mergeMap is an error.
	Loader func(loc tmdm.Locator) (io.ReadCloser, error)
	// Dropped, if not nil, is called for each thing that Lenient or DropClashes
	// made the reader leave out.
	Dropped func(*SyntaxError)
}

func (o Options) name() string {
	if o.URI != "" {
		return o.URI
	}
	return string(o.Base)
}

// dropped reports what err says was left out.
func (o Options) dropped(err error) {
	var syntax *SyntaxError
	if o.Dropped != nil && errors.As(err, &syntax) {
		o.Dropped(syntax)
	}
}

// Decoder reads a document element by element, in memory that depends on the
// largest element only. It applies what a version of the syntax says about one
// element: locators are absolute, what XTM 1.0 leaves out has its default, and
// subject identifiers of XTM 1.0 with a successor in ISO 13250-2 are replaced.
// It does not join topics; [Read] does, and it also finds the reifiers that
// XTM 1.0 expresses by identifiers (see the package documentation).
type Decoder struct {
	o        Options
	tok      *tokenizer
	bases    []scopedBase // the last one holds for the current element
	baseEnds bool         // the last one's element has ended
	version  Version
	space    string // namespace of the elements
	root     string // name of the root element, once known
	queue    []Element
	inMap    bool // between the start and the end of topicMap
	seenMap  bool
	reified  bool // the topic map has a reifier
	err      error
}

// scopedBase is a base that holds from an element of the given depth on.
type scopedBase struct {
	depth int
	base  string // without fragment
}

// NewDecoder returns a decoder of the document r. It does no decompression.
func NewDecoder(r io.Reader, o Options) *Decoder {
	d := &Decoder{o: o, tok: newTokenizer(r, o.name(), o.Limits, o.Lenient)}
	base, err := iri.Normalize(string(o.Base))
	if err != nil {
		d.err = fmt.Errorf("xtm: the base of the document: %w", err)
	}
	base, _, _ = strings.Cut(base, "#")
	d.bases = []scopedBase{{-1, base}}
	return d
}

// Version returns the version of the document, or "" as long as Next has not
// been called.
func (d *Decoder) Version() Version { return d.version }

// Next returns the next element, or io.EOF after the last one. Any error is
// returned again by further calls; one about the document is a [*SyntaxError].
func (d *Decoder) Next() (Element, error) {
	for d.err == nil {
		if len(d.queue) > 0 {
			e := d.queue[0]
			d.queue = d.queue[1:]
			return e, nil
		}
		if !d.inMap {
			d.outside()
		} else if e := d.element(); e != nil && d.err == nil {
			return e, nil
		}
	}
	return nil, d.err
}

// outside looks for a topicMap element, which other elements may contain, and
// reads on to the end of the document once it has been seen.
func (d *Decoder) outside() {
	for !d.inMap {
		kind := d.next()
		if d.err != nil {
			d.notTopicMap()
			return
		}
		if kind != startElement {
			continue
		}
		if d.root == "" {
			d.root = d.tok.name.local
		}
		if d.isTopicMap() {
			if d.seenMap {
				d.fail("there is a second <topicMap> in the document")
				return
			}
			d.inMap, d.seenMap = true, true
			d.topicMap()
		}
	}
}

// notTopicMap makes the error of a document without topicMap say so.
func (d *Decoder) notTopicMap() {
	var syntax *SyntaxError
	isSyntax := errors.As(d.err, &syntax)
	switch {
	case d.seenMap || d.root == "" || !isSyntax && d.err != io.EOF:
		return
	case d.root == "topicMap":
		d.err = d.tok.errorAt(d.tok.pos, "the root element <topicMap> is not in a namespace of XTM; the lenient option takes it as XTM 1.0 where it has none")
	default:
		e := &SyntaxError{URI: d.o.name(), Line: 1, Column: 1, Reason: "root element is <" + d.root + ">, not a topic map"}
		if isSyntax {
			e.Line, e.Column, e.Err = syntax.Line, syntax.Column, d.err
		}
		d.err = e
	}
}

// isTopicMap reports whether the element that started is a topic map, and
// settles the namespace.
func (d *Decoder) isTopicMap() bool {
	n := d.tok.name
	if n.local != "topicMap" {
		return false
	}
	switch {
	case n.space == nsXTM1, n.space == nsXTM2:
		d.space = n.space
		return true
	case n.space == "" && d.o.Lenient:
		d.space = ""
		return true
	}
	return false
}

func (d *Decoder) topicMap() {
	d.version = V10
	if d.space != nsXTM2 {
		d.topicMap10()
		return
	}
	switch v, ok := d.tok.attr("", "version"); {
	case !ok:
		d.fail("<topicMap> has no version")
	case v != string(V20) && v != string(V21):
		d.fail("version %q of XTM is not known: this reads 1.0, 2.0 and 2.1", v)
	default:
		d.version = Version(v)
		d.topicMap2x()
	}
}

// element reads one child of topicMap. It returns nil at the end of the
// topic map, on an error, and where the child put its elements in the queue.
func (d *Decoder) element() Element {
	name := d.child("topicMap")
	switch {
	case d.err != nil:
		return nil
	case name == "":
		d.inMap = false
		return nil
	case d.version == V10:
		return d.element10(name)
	default:
		return d.element2x(name)
	}
}

// mergeMap checks that the document may have the mergeMap that started.
func (d *Decoder) mergeMap(href string) *MergeMap {
	m := &MergeMap{Pos: d.tok.pos, Locator: d.locator(href)}
	if d.o.Loader == nil {
		d.fail("<mergeMap> asks for %s to be merged in, which is not done here: merge the documents first, or take the element out", m.Locator)
	}
	return m
}

// The methods below read parts of elements. After an error they return zero
// values, so that callers need not look at d.err until they are done.

// next moves on to the next event and keeps the stack of bases.
func (d *Decoder) next() eventKind {
	if d.err != nil {
		return 0
	}
	if d.baseEnds { // only now: what followed the end tag may have been resolved late
		d.bases, d.baseEnds = d.bases[:len(d.bases)-1], false
	}
	kind, err := d.tok.next()
	if err != nil {
		d.err = err
		return 0
	}
	switch kind {
	case startElement:
		if base, ok := d.tok.attr(nsXML, "base"); ok {
			resolved := string(d.locator(base))
			resolved, _, _ = strings.Cut(resolved, "#")
			d.bases = append(d.bases, scopedBase{d.tok.depth, resolved})
		}
	case endElement:
		d.baseEnds = d.bases[len(d.bases)-1].depth == d.tok.depth
	}
	return kind
}

// child moves on to the next child element and returns its name, or "" at the
// end of the parent. Elements of other namespaces are passed over.
func (d *Decoder) child(parent string) string {
	for d.err == nil {
		switch d.next() {
		case startElement:
			if d.tok.name.space == d.space {
				return d.tok.name.local
			}
			d.skip()
		case endElement:
			return ""
		case textEvent:
			if isSpace(d.tok.text) {
				continue
			}
			err := d.tok.errorAt(d.tok.pos, "<%s> cannot hold text: %q", parent, excerpt(d.tok.text))
			if d.o.Lenient {
				d.o.dropped(err)
			} else {
				d.err = err
			}
		}
	}
	return ""
}

// skip reads to the end of the element that started, whatever it holds.
func (d *Decoder) skip() {
	for depth := d.tok.depth; ; {
		if kind := d.next(); d.err != nil || kind == endElement && d.tok.depth == depth {
			return
		}
	}
}

// end reads to the end of the element that started, which must be empty.
func (d *Decoder) end(name string) {
	if child := d.child(name); child != "" {
		d.unexpected(name)
	}
}

// content returns the text of the element that started.
func (d *Decoder) content(name string) string {
	var text []byte
	for d.err == nil {
		switch d.next() {
		case startElement:
			d.fail("<%s> can only hold text, not <%s>", name, d.tok.name.local)
		case textEvent:
			text = append(text, d.tok.text...)
		case endElement:
			return string(text)
		}
	}
	return ""
}

// locator resolves a reference against the base of the current element.
func (d *Decoder) locator(ref string) tmdm.Locator {
	base := d.bases[len(d.bases)-1].base
	// Most references name an element of the same document; the base is in
	// normal form already.
	if strings.HasPrefix(ref, "#") && isPlain(ref) {
		return tmdm.Locator(base + ref)
	}
	l, err := iri.Resolve(base, strings.TrimSpace(ref))
	if err != nil {
		d.fail("%q is not a usable reference: %s", ref, reasonOf(err))
		return ""
	}
	return tmdm.Locator(l)
}

func isPlain(ref string) bool {
	for i := range len(ref) {
		if c := ref[i]; c == '%' || c <= ' ' || c == 0x7F {
			return false
		}
	}
	return true
}

func reasonOf(err error) string {
	var e *iri.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// fail records the first error, at the current position.
func (d *Decoder) fail(format string, args ...any) { d.failAt(d.tok.pos, format, args...) }

func (d *Decoder) failAt(p Position, format string, args ...any) {
	if d.err == nil {
		d.err = d.tok.errorAt(p, format, args...)
	}
}

func (d *Decoder) unexpected(parent string) {
	d.fail("<%s> cannot hold <%s>", parent, d.tok.name.local)
}

// excerpt returns the beginning of a text for a message.
func excerpt(text []byte) string {
	s := strings.TrimSpace(string(text))
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
