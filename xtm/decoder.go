package xtm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xmlscan"
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
	// Problem, if not nil, is called for each thing that is wrong in the document,
	// and reading goes on behind the topic or association that it was found in.
	// Only a document that is not well-formed XML, or cannot be read, is still an
	// error. What was wrong is not in the result.
	Problem func(*SyntaxError)
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

// problem reports err where problems are collected and it is one of a document,
// and returns it otherwise.
func (o Options) problem(err error) error {
	var syntax *SyntaxError
	if err == nil || o.Problem == nil || !errors.As(err, &syntax) {
		return err
	}
	o.Problem(syntax)
	return nil
}

// Decoder reads a document element by element, in memory that depends on the
// largest element only. It applies what a version of the syntax says about one
// element: locators are absolute, what XTM 1.0 leaves out has its default, and
// subject identifiers of XTM 1.0 with a successor in ISO 13250-2 are replaced.
// It does not join topics; [Read] does, and it also finds the reifiers that
// XTM 1.0 expresses by identifiers (see the package documentation).
type Decoder struct {
	o        Options
	limits   Limits
	xml      *xmlscan.Scanner
	bases    []scopedBase // the last one holds for the current element
	baseEnds bool         // the last one's element has ended
	badBase  bool         // the xml:base seen last is not usable
	version  Version
	space    string // namespace of the elements
	root     string // name of the root element, once known
	queue    []Element
	inMap    bool // between the start and the end of topicMap
	seenMap  bool
	reified  bool // the topic map has a reifier
	broken   bool // there was a problem with the element that is being read
	err      error

	text     []byte        // of the element that is being read
	resolved [256]resolved // references, by a hash
	refs     arena[Ref]
	locators arena[tmdm.Locator]
	own      *ownership // nil where the caller keeps elements
}

// resolved is a reference and what it came to with the base that held there.
type resolved struct {
	base, ref string
	locator   tmdm.Locator
}

// ownership is for the reader of whole maps, which does not keep elements: each
// is made in the memory of the one before, and strings are made many at a time.
type ownership struct {
	texts       texts
	topic       Topic
	association Association
}

// scopedBase is a base that holds from an element of the given depth on.
type scopedBase struct {
	depth int
	base  string // without fragment
	item  string // base and "#": what an id is appended to
}

// NewDecoder returns a decoder of the document r. It does no decompression.
func NewDecoder(r io.Reader, o Options) *Decoder {
	d := &Decoder{o: o, limits: o.Limits.withDefaults()}
	d.xml = newScanner(r, o, d.limits)
	base, err := iri.Normalize(string(o.Base))
	if err != nil {
		d.err = fmt.Errorf("xtm: the base of the document: %w", err)
	}
	base, _, _ = strings.Cut(base, "#")
	d.bases = []scopedBase{{-1, base, base + "#"}}
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
		} else if e := d.element(); e != nil && d.err == nil && !d.broken {
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
		if kind != xmlscan.StartElement {
			continue
		}
		if d.root == "" {
			d.root = d.xml.Name().Local
		}
		if d.isTopicMap() {
			if d.seenMap {
				d.fail("there is a second <topicMap> in the document")
				d.skip()
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
	isSyntax := errors.As(d.err, &syntax) && syntax.Err != nil // the XML is to blame
	switch {
	case d.seenMap || d.root == "" || !isSyntax && d.err != io.EOF:
		return
	case d.root == "topicMap":
		d.err = d.errorAt(d.pos(), "the root element <topicMap> is not in a namespace of XTM; the lenient option takes it as XTM 1.0 where it has none")
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
	n := d.xml.Name()
	if n.Local != "topicMap" {
		return false
	}
	switch {
	case n.Space == nsXTM1, n.Space == nsXTM2:
		d.space = n.Space
		return true
	case n.Space == "" && d.o.Lenient:
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
	d.version = V21
	switch v, ok := d.xml.Attr("", "version"); {
	case !ok:
		d.fail("<topicMap> has no version")
	case string(v) == string(V20):
		d.version = V20
	case string(v) != string(V21):
		d.fail("version %q of XTM is not known: this reads 1.0, 2.0 and 2.1", v)
	}
	d.topicMap2x()
}

// element reads one child of topicMap. It returns nil at the end of the
// topic map, on an error, and where the child put its elements in the queue.
func (d *Decoder) element() Element {
	if d.own != nil {
		d.refs.buf, d.locators.buf = d.refs.buf[:0], d.locators.buf[:0]
	}
	d.badBase = false
	name := d.child("topicMap")
	d.broken = d.badBase // text before the element does not break it
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
func (d *Decoder) mergeMap(href []byte) *MergeMap {
	m := &MergeMap{Pos: d.pos(), Locator: d.locator(href)}
	if d.o.Loader == nil {
		d.fail("<mergeMap> asks for %s to be merged in, which is not done here: merge the documents first, or take the element out", m.Locator)
	}
	return m
}

// The methods below read parts of elements. After an error they return zero
// values, so that callers need not look at d.err until they are done.

// newTopic returns an empty element.
func (d *Decoder) newTopic() *Topic {
	if d.own == nil {
		return &Topic{Pos: d.pos()}
	}
	t := &d.own.topic
	*t = Topic{
		ItemIdentifiers: t.ItemIdentifiers[:0], SubjectIdentifiers: t.SubjectIdentifiers[:0], SubjectLocators: t.SubjectLocators[:0],
		Types: t.Types[:0], Names: t.Names[:0], Occurrences: t.Occurrences[:0], Pos: d.pos(),
	}
	return t
}

// newAssociation returns an empty element.
func (d *Decoder) newAssociation() *Association {
	if d.own == nil {
		return &Association{Pos: d.pos()}
	}
	a := &d.own.association
	*a = Association{Roles: a.Roles[:0], Pos: d.pos()}
	return a
}

// next moves on to the next event and keeps the stack of bases. Comments are
// passed over.
func (d *Decoder) next() xmlscan.Kind {
	if d.err != nil {
		return 0
	}
	if d.baseEnds { // only now: what followed the end tag may have been resolved late
		d.bases, d.baseEnds = d.bases[:len(d.bases)-1], false
	}
	for {
		kind, err := d.xml.Next()
		switch kind {
		case 0:
			d.err = d.scanError(err)
			return 0
		case xmlscan.Comment:
			continue
		case xmlscan.StartElement:
			if base, ok := d.xml.Attr(nsXML, "base"); ok {
				doc := string(document(d.locator(base)))
				if d.badBase = doc == ""; d.badBase {
					doc = d.bases[len(d.bases)-1].base // where problems are collected; it is one
				}
				d.bases = append(d.bases, scopedBase{d.xml.Depth(), doc, doc + "#"})
			}
		case xmlscan.EndElement:
			d.baseEnds = d.bases[len(d.bases)-1].depth == d.xml.Depth()
		}
		return kind
	}
}

// child moves on to the next child element and returns its name, or "" at the
// end of the parent. Elements of other namespaces are passed over.
func (d *Decoder) child(parent string) string {
	for d.err == nil {
		switch d.next() {
		case xmlscan.StartElement:
			if n := d.xml.Name(); n.Space == d.space {
				return n.Local
			}
			d.skip()
		case xmlscan.EndElement:
			return ""
		case xmlscan.Text:
			text := d.xml.Text()
			if isSpace(text) {
				continue
			}
			if d.o.Lenient {
				d.o.dropped(d.errorAt(d.pos(), "<%s> cannot hold text: %q", parent, excerpt(text)))
			} else {
				d.fail("<%s> cannot hold text: %q", parent, excerpt(text))
			}
		}
	}
	return ""
}

func isSpace(text []byte) bool {
	for _, c := range text {
		if c > ' ' { // no other control characters are left in text
			return false
		}
	}
	return true
}

// skip reads to the end of the element that started, whatever it holds.
func (d *Decoder) skip() {
	for depth := d.xml.Depth(); ; {
		if kind := d.next(); d.err != nil || kind == xmlscan.EndElement && d.xml.Depth() == depth {
			return
		}
	}
}

// end reads to the end of the element that started, which must be empty.
func (d *Decoder) end(name string) {
	for child := d.child(name); child != ""; child = d.child(name) {
		d.unexpected(name)
	}
}

// content returns the text of the element that started.
func (d *Decoder) content(name string) string {
	d.text = d.text[:0]
	for d.err == nil {
		switch d.next() {
		case xmlscan.StartElement:
			d.fail("<%s> can only hold text, not <%s>", name, d.xml.Name().Local)
			d.skip()
		case xmlscan.Text:
			if d.text = append(d.text, d.xml.Text()...); len(d.text) > d.limits.Token { // in pieces
				d.fail(limitReasons["Token"], d.limits.Token)
				d.text = d.text[:0]
			}
		case xmlscan.EndElement:
			return d.string("", d.text)
		}
	}
	return ""
}

// string makes the string of an element.
func (d *Decoder) string(head string, tail []byte) string {
	if d.own != nil {
		return d.own.texts.string(head, tail)
	}
	return head + string(tail)
}

// locator resolves a reference against the base of the current element.
// Documents refer to the same things again and again.
func (d *Decoder) locator(ref []byte) tmdm.Locator {
	if len(ref) == 0 {
		return d.resolve(ref)
	}
	base := d.bases[len(d.bases)-1].base
	n := len(ref)
	known := &d.resolved[(uint(ref[n-1])*31+uint(ref[n/2])*7+uint(ref[max(n-2, 0)])+uint(n))%uint(len(d.resolved))]
	if known.ref == string(ref) && known.base == base {
		return known.locator
	}
	l := d.resolve(ref)
	if l != "" {
		known.base, known.locator = base, l
		if ref[0] == '#' && len(l) == len(base)+n {
			known.ref = string(l[len(base):])
		} else {
			known.ref = string(ref)
		}
	}
	return l
}

// resolve is locator for a reference that is not likely to be seen again.
func (d *Decoder) resolve(ref []byte) tmdm.Locator {
	base := d.bases[len(d.bases)-1].base
	// Most references name an element of the same document; the base is in
	// normal form already.
	if len(ref) > 0 && ref[0] == '#' && isPlain(ref) {
		return tmdm.Locator(base + string(ref))
	}
	return d.resolveAny(base, string(ref))
}

// identity is resolve for what identifies an item of the map that is read, or is
// a value in it.
func (d *Decoder) identity(ref []byte) tmdm.Locator {
	if len(ref) > 0 && ref[0] == '#' && isPlain(ref) {
		return tmdm.Locator(d.string(d.bases[len(d.bases)-1].base, ref))
	}
	return d.resolveAny(d.bases[len(d.bases)-1].base, d.string("", ref))
}

// itemIdentifier returns the locator that the id of an element makes.
func (d *Decoder) itemIdentifier(id []byte) tmdm.Locator {
	base := d.bases[len(d.bases)-1]
	if isPlain(id) {
		return tmdm.Locator(d.string(base.item, id))
	}
	return d.resolveAny(base.base, "#"+string(id))
}

func (d *Decoder) resolveAny(base, ref string) tmdm.Locator {
	l, err := iri.Resolve(base, strings.Trim(ref, " \t\r\n"))
	if err != nil {
		d.fail("%q is not a usable reference: %s", ref, reasonOf(err))
		return ""
	}
	return tmdm.Locator(l)
}

func isPlain(ref []byte) bool {
	for _, c := range ref {
		if c == '%' || c <= ' ' || c == 0x7F {
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

// pos returns where the current event begins.
func (d *Decoder) pos() Position {
	line, column := d.xml.Position()
	return Position{line, column}
}

func (d *Decoder) errorAt(p Position, format string, args ...any) *SyntaxError {
	return &SyntaxError{URI: d.o.name(), Line: p.Line, Column: p.Column, Reason: fmt.Sprintf(format, args...)}
}

// fail says what is wrong at the current position. That ends the reading, unless
// problems are collected.
func (d *Decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.failAt(d.pos(), format, args...)
	}
}

func (d *Decoder) failAt(p Position, format string, args ...any) {
	if d.err != nil {
		return
	}
	err := d.errorAt(p, format, args...)
	if d.o.Problem == nil {
		d.err = err
		return
	}
	d.broken = true
	d.o.Problem(err)
}

// unexpected fails because of the element that started, and passes over it.
func (d *Decoder) unexpected(parent string) {
	d.fail("<%s> cannot hold <%s>", parent, d.xml.Name().Local)
	d.skip()
}

// excerpt returns the beginning of a text for a message.
func excerpt(text []byte) string {
	s := strings.TrimSpace(string(text[:min(len(text), 400)]))
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
