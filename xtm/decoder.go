package xtm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/tmdm"
)

// Decoder reads a document element by element, in memory that depends on the largest element only. It applies the rules
// of the version for single elements: it makes locators absolute, adds defaults of XTM 1.0, and replaces subject
// identifiers of XTM 1.0 that have a successor in ISO 13250-2. It does not merge topics; [Read] does, which also finds
// the reifiers that XTM 1.0 expresses by identifiers (see the package documentation).
type Decoder struct {
	o        Options
	limits   Limits
	xml      *scan.Scanner
	bases    []scopedBase // the last one holds for the current element
	baseEnds bool         // the last one's element has ended
	badBase  bool         // the xml:base seen last is not usable
	version  Version
	space    string // namespace of the elements
	root     string // name of the root element, once known
	queue    []Element
	inMap    bool // between the start and the end of topicMap
	seenMap  bool
	reified  bool  // the topic map has a reifier
	broken   bool  // there was a problem with the element that is being read
	held     int64 // bytes of memory that this element takes, about
	err      error

	text     []byte        // of the element that is being read
	resolved [256]resolved // references, by a hash
	refs     listArena[Ref]
	locators listArena[tmdm.Locator]
	own      *ownership // nil where the caller keeps elements
}

// scopedBase is a base that holds from an element of the given depth on.
type scopedBase struct {
	depth int
	base  string // without fragment
	item  string // base and "#", the prefix of ids
}

// NewDecoder returns a decoder of the document r. It does no decompression.
func NewDecoder(r io.Reader, o Options) *Decoder {
	d := &Decoder{o: o, limits: o.Limits.withDefaults()}
	d.xml = newScanner(r, o, d.limits)
	base, err := iri.Normalize(string(o.Base))
	if err != nil {
		d.err = fmt.Errorf("the base of the document: %w", err)
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
		if kind != scan.StartElement {
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

// notTopicMap extends the error for a document without topicMap by its apparent format.
func (d *Decoder) notTopicMap() {
	var syntax *SyntaxError
	isSyntax := errors.As(d.err, &syntax) && syntax.Err != nil // the XML is to blame
	switch {
	case d.seenMap || !isSyntax && d.err != io.EOF:
		return
	case d.root == "":
		if isSyntax {
			syntax.Reason = otherformat.Explain("XTM", syntax.Reason, "", d.xml.Unread(), d.o.ReadAs)
		}
	case d.root == "topicMap":
		e := d.errorAt(d.pos(),
			"the root element <topicMap> is not in a namespace of XTM; lenient reading takes it as XTM 1.0 where it has none")
		e.Rule = InNamespace
		d.err = e
	default:
		e := &SyntaxError{URI: d.o.name(), Line: 1, Column: 1, Reason: "root element is <" + d.root + ">, not a topic map"}
		if isSyntax {
			e.Line, e.Column, e.Err = syntax.Line, syntax.Column, d.err
		}
		e.Reason = otherformat.Explain("XTM", e.Reason, d.root, nil, d.o.ReadAs)
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
		d.tolerate(InNamespace, "<topicMap> has no namespace")
		return true
	}
	return false
}

func (d *Decoder) topicMap() {
	d.version = V10
	if d.space != nsXTM2 {
		d.foundVersion()
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
	d.foundVersion()
	d.topicMap2x()
}

func (d *Decoder) foundVersion() {
	if d.o.FoundVersion != nil && d.err == nil {
		d.o.FoundVersion(d.version)
	}
}

// element reads one child of topicMap. It returns nil at the end of the
// topic map, on an error, and where the child put its elements in the queue.
func (d *Decoder) element() Element {
	if d.own != nil && !d.own.isAhead {
		d.refs.Reuse()
		d.locators.Reuse()
	}
	d.badBase, d.held = false, 0
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
		d.fail("<mergeMap> asks for %s to be merged in, which is not done here: merge the documents first, or take the "+
			"element out", m.Locator)
	}
	return m
}

// The methods below read parts of elements. After an error they return zero values, so callers may check d.err at the
// end.

// next moves on to the next event and keeps the stack of bases. Comments are
// passed over.
func (d *Decoder) next() scan.Kind {
	if d.err != nil {
		return 0
	}
	if d.baseEnds { // only now: elements before the end tag may have been resolved late
		d.bases, d.baseEnds = d.bases[:len(d.bases)-1], false
	}
	for {
		kind, err := d.xml.Next()
		switch kind {
		case 0:
			d.err = d.scanError(err)
			return 0
		case scan.Comment:
			continue
		case scan.StartElement:
			if base, ok := d.xml.Attr(nsXML, "base"); ok {
				doc := string(document(d.locator(base)))
				if d.badBase = doc == ""; d.badBase {
					doc = d.bases[len(d.bases)-1].base // where problems are collected; it is one
				}
				d.bases = append(d.bases, scopedBase{d.xml.Depth(), doc, doc + "#"})
			}
		case scan.EndElement:
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
		case scan.StartElement:
			if n := d.xml.Name(); n.Space == d.space {
				d.hold(childMemory)
				return n.Local
			}
			d.skip()
		case scan.EndElement:
			return ""
		case scan.Text:
			if text := withoutBlanks(d.xml.Text()); len(text) > 0 {
				d.tolerate(NoTextBetween, "<%s> cannot hold text: %q", parent, excerpt(text))
			}
		}
	}
	return ""
}

// withoutBlanks returns text without the white space that it begins with (XML 1.0 §2.3, production 3).
func withoutBlanks(text []byte) []byte {
	for i, c := range text {
		if c > ' ' || c != '\n' && c != ' ' && c != '\t' && c != '\r' {
			return text[i:]
		}
	}
	return nil
}

// skip reads the rest of the element that has started.
func (d *Decoder) skip() {
	for depth := d.xml.Depth(); ; {
		if kind := d.next(); d.err != nil || kind == scan.EndElement && d.xml.Depth() == depth {
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
	text, _ := d.textOrMarkup(name, false)
	return text
}

// textOrMarkup is content for an element that may be meant to hold markup, and reports whether it does.
func (d *Decoder) textOrMarkup(name string, untyped bool) (text string, markup bool) {
	d.text = d.text[:0]
	depth := d.xml.Depth()
	for d.err == nil {
		switch d.next() {
		case scan.StartElement:
			switch {
			case !untyped:
				d.fail("<%s> can only hold text, not <%s>", name, d.xml.Name().Local)
			case !markup: // once for each value
				d.tolerate(TypedMarkup, "<%s> can only hold text, not <%s>, as it has no datatype", name, d.xml.Name().Local)
				if markup = true; d.o.Lenient && d.err == nil {
					return d.embedded(depth, d.text, scan.StartElement), true
				}
			}
			d.skip()
		case scan.Text:
			if d.text = append(d.text, d.xml.Text()...); len(d.text) > d.limits.Token { // in pieces
				d.failLimit(limitReasons["Token"], d.limits.Token)
				d.text = d.text[:0]
			}
		case scan.EndElement:
			return d.string("", d.text), false
		}
	}
	return "", false
}

// The measured sizes of the parts of an element in bytes, besides their text.
const (
	childMemory = 100 // including the reserve of lists
	refMemory   = 24
)

// hold counts the memory of the current element, which is complete only at its end.
func (d *Decoder) hold(bytes int) {
	d.held += int64(bytes)
	if limit := d.limits.Memory; limit > 0 && d.held > limit && d.err == nil {
		err := d.errorAt(d.pos(), "a topic or association takes more than %d bytes of memory", limit)
		err.Err = ErrMemory
		d.err = err // also where problems are collected
	}
}

// string makes the string of an element.
func (d *Decoder) string(head string, tail []byte) string {
	d.hold(len(head) + len(tail))
	if d.own != nil {
		return d.own.texts.String(head, tail)
	}
	return head + string(tail)
}
