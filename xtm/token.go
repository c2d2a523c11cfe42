package xtm

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

// Limits bound what a document may cost. A zero field means the default.
type Limits struct {
	Depth     int   // nesting of elements; default 200
	Token     int   // bytes of one tag, text or comment; default 16 MiB
	Bytes     int64 // bytes of a document; default: no limit
	Documents int   // documents that mergeMap brings in; default 1000
	Themes    int   // topics in the scope of one statement; default 200
}

// maxNames bounds the attributes of an element and the prefixes in scope, among
// which names are looked up one by one.
const maxNames = 256

func (l Limits) withDefaults() Limits {
	if l.Depth == 0 {
		l.Depth = 200
	}
	if l.Token == 0 {
		l.Token = 16 << 20
	}
	if l.Documents == 0 {
		l.Documents = 1000
	}
	if l.Themes == 0 {
		l.Themes = 200
	}
	return l
}

// eventKind is what a tokenizer reports.
type eventKind uint8

const (
	startElement eventKind = iota + 1
	endElement
	textEvent
)

// xmlName is a name with its namespace. The prefix is kept for embedded XML.
type xmlName struct {
	space, local, prefix string
}

type xmlAttr struct {
	name  xmlName
	value string
}

// tokenizer turns a document into events: elements and text with namespaces
// resolved, comments and processing instructions left out. All that is needed
// of XML is here; the rest of the package knows only this surface:
// next, the fields below, attr and errorAt.
type tokenizer struct {
	name  xmlName   // of the element that started or ended
	attrs []xmlAttr // of the element that started, without declarations of namespaces
	text  []byte    // valid until the next event
	pos   Position  // where the event begins
	depth int       // of the element that started or ended; the root's is 1

	uri     string
	lenient bool
	limits  Limits
	in      *meter
	xml     *xml.Decoder
	open    []openElement
	ns      []binding
	state   documentState
	pending bool // an element ended whose scope of namespaces is still there
}

type openElement struct {
	name     xmlName
	raw      xml.Name // as written, to match the end tag
	bindings int      // how many bindings there were outside
}

type binding struct {
	prefix, space string
}

type documentState uint8

const (
	atStart documentState = iota // nothing but the byte order mark was read
	inProlog
	inRoot
	afterRoot
)

func newTokenizer(r io.Reader, uri string, limits Limits, lenient bool) *tokenizer {
	t := &tokenizer{uri: uri, lenient: lenient, limits: limits.withDefaults()}
	t.in = &meter{r: r, token: int64(t.limits.Token), total: t.limits.Bytes}
	t.xml = xml.NewDecoder(decodeMark(t.in))
	t.xml.CharsetReader = charsetReader
	return t
}

// next reads on to the next event. At the end of a complete document the error
// is io.EOF.
func (t *tokenizer) next() (eventKind, error) {
	if t.pending { // the scope of the element that ended last goes only now
		top := t.open[len(t.open)-1]
		t.open, t.ns = t.open[:len(t.open)-1], t.ns[:top.bindings]
		t.pending = false
	}
	for {
		t.pos = t.position()
		t.in.mark = t.in.n
		token, err := t.xml.RawToken()
		if err != nil {
			return 0, t.failed(err)
		}
		kind, err := t.event(token)
		if kind != 0 || err != nil {
			return kind, err
		}
	}
}

func (t *tokenizer) event(token xml.Token) (eventKind, error) {
	first := t.state == atStart
	if first {
		t.state = inProlog
	}
	switch token := token.(type) {
	case xml.StartElement:
		return startElement, t.start(token)
	case xml.EndElement:
		return endElement, t.end(token)
	case xml.CharData:
		if t.state == inRoot {
			t.text = token
			return textEvent, nil
		}
		if !isSpace(token) {
			if t.state == afterRoot {
				return 0, t.errorAt(t.pos, "text after the end of the root element")
			}
			return 0, t.errorAt(t.pos, "not an XML document: it begins with text")
		}
	case xml.ProcInst:
		if strings.EqualFold(token.Target, "xml") && !first {
			return 0, t.errorAt(t.pos, "the XML declaration is not at the beginning of the document")
		}
	case xml.Directive:
		if t.state != inProlog || !bytes.HasPrefix(token, []byte("DOCTYPE")) {
			return 0, t.errorAt(t.pos, "a declaration <!%.20s…> in a place where there can be none", token)
		}
	}
	return 0, nil
}

func (t *tokenizer) start(e xml.StartElement) error {
	switch {
	case t.state == afterRoot:
		return t.errorAt(t.pos, "a second root element <%s>", e.Name.Local)
	case len(t.open) == t.limits.Depth:
		return t.errorAt(t.pos, "elements are nested more than %d deep", t.limits.Depth)
	case len(e.Attr) > maxNames || len(t.ns) > maxNames:
		return t.errorAt(t.pos, "<%s> has more than %d attributes, or as many prefixes are in scope", e.Name.Local, maxNames)
	}
	t.state = inRoot
	outside := len(t.ns)
	t.attrs = t.attrs[:0]
	for _, a := range e.Attr {
		prefix, isDeclaration := "", false
		switch {
		case a.Name.Space == "xmlns":
			prefix, isDeclaration = a.Name.Local, true
			if a.Value == "" || prefix == "xmlns" || (prefix == "xml") != (a.Value == nsXML) {
				return t.errorAt(t.pos, "the declaration xmlns:%s=%q is not allowed", prefix, a.Value)
			}
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			isDeclaration = true
		}
		if !isDeclaration {
			name := xmlName{local: a.Name.Local, prefix: a.Name.Space}
			t.attrs = append(t.attrs, xmlAttr{name, spaced(a.Value)})
			continue
		}
		if slices.ContainsFunc(t.ns[outside:], func(b binding) bool { return b.prefix == prefix }) {
			return t.errorAt(t.pos, "<%s> declares the prefix %q twice", e.Name.Local, prefix)
		}
		t.ns = append(t.ns, binding{prefix, a.Value})
	}
	var ok bool
	t.name = xmlName{local: e.Name.Local, prefix: e.Name.Space}
	if t.name.space, ok = t.space(e.Name.Space); !ok || strings.Contains(e.Name.Local, ":") {
		return t.errorAt(t.pos, "the prefix of <%s:%s> is not declared", e.Name.Space, e.Name.Local)
	}
	for i := range t.attrs {
		if err := t.resolveAttr(i); err != nil {
			return err
		}
	}
	t.open = append(t.open, openElement{t.name, e.Name, outside})
	t.depth = len(t.open)
	return nil
}

// resolveAttr gives attribute i its namespace and compares it with those before.
func (t *tokenizer) resolveAttr(i int) error {
	a := &t.attrs[i]
	if a.name.prefix != "" {
		space, ok := t.space(a.name.prefix)
		if !ok && a.name.prefix == "xlink" {
			if !t.lenient {
				return t.errorAt(t.pos, "the prefix xlink is not declared; where a document relies on the DTD for it, the lenient option supplies it")
			}
			space, ok = nsXLink, true
		}
		if !ok {
			return t.errorAt(t.pos, "the prefix of the attribute %s:%s is not declared", a.name.prefix, a.name.local)
		}
		a.name.space = space
	}
	if strings.Contains(a.name.local, ":") {
		return t.errorAt(t.pos, "%q is not a name for an attribute", a.name.local)
	}
	for _, b := range t.attrs[:i] {
		if b.name.local == a.name.local && b.name.space == a.name.space {
			return t.errorAt(t.pos, "<%s> has the attribute %s twice", t.name.local, a.name.local)
		}
	}
	return nil
}

// space returns the namespace that prefix stands for. The empty prefix is
// always known.
func (t *tokenizer) space(prefix string) (string, bool) {
	for i := len(t.ns) - 1; i >= 0; i-- {
		if t.ns[i].prefix == prefix {
			return t.ns[i].space, true
		}
	}
	if prefix == "xml" {
		return nsXML, true
	}
	return "", prefix == ""
}

func (t *tokenizer) end(e xml.EndElement) error {
	if t.state != inRoot {
		return t.errorAt(t.pos, "the end tag </%s> has no start tag", e.Name.Local)
	}
	top := t.open[len(t.open)-1]
	if top.raw != e.Name {
		return t.errorAt(t.pos, "the end tag </%s> closes <%s>", e.Name.Local, top.name.local)
	}
	t.name, t.depth, t.pending = top.name, len(t.open), true
	if t.depth == 1 {
		t.state = afterRoot
	}
	return nil
}

// attr returns the value of an attribute of the element that started.
func (t *tokenizer) attr(space, local string) (string, bool) {
	for i := range t.attrs {
		if a := &t.attrs[i]; a.name.local == local && a.name.space == space {
			return a.value, true
		}
	}
	return "", false
}

func (t *tokenizer) errorAt(p Position, format string, args ...any) error {
	return &SyntaxError{URI: t.uri, Line: p.Line, Column: p.Column, Reason: fmt.Sprintf(format, args...)}
}

// position returns where the parser is.
func (t *tokenizer) position() Position {
	line, column := t.xml.InputPos()
	return Position{line, max(column, 1)} // 0 after a line break that was put back
}

// failed turns an error of encoding/xml, or of the reader below, into ours.
func (t *tokenizer) failed(err error) error {
	t.pos = t.position()
	var syntax *xml.SyntaxError
	switch {
	case err == io.EOF && t.state == afterRoot:
		return io.EOF
	case err == io.EOF && t.state != inRoot:
		return t.errorAt(t.pos, "the document is empty")
	case err == io.EOF, errors.As(err, &syntax) && strings.HasPrefix(syntax.Msg, "unexpected EOF"):
		if len(t.open) == 0 {
			return t.errorAt(t.pos, "the document ends early")
		}
		return t.errorAt(t.pos, "the document ends early: <%s> is not closed", t.open[len(t.open)-1].name.local)
	case syntax != nil && strings.HasPrefix(syntax.Msg, "invalid character entity"):
		return t.errorAt(t.pos, "%s: entities that a DTD declares are not supported", syntax.Msg)
	case syntax != nil:
		return t.errorAt(t.pos, "not well-formed XML: %s", syntax.Msg)
	case errors.Is(err, errTokenLimit):
		return t.errorAt(t.pos, "a tag or text is longer than %d bytes", t.limits.Token)
	case errors.Is(err, errByteLimit):
		return t.errorAt(t.pos, "the document is longer than %d bytes", t.limits.Bytes)
	case errors.Is(err, t.in.err) && t.in.err != nil:
		return fmt.Errorf("xtm: reading %s: %w", t.uri, err)
	}
	return t.errorAt(t.pos, "not well-formed XML: %s", strings.TrimPrefix(err.Error(), "xml: "))
}

var (
	errTokenLimit = errors.New("token limit")
	errByteLimit  = errors.New("byte limit")
)

// meter counts what is read and stops where a limit is passed.
type meter struct {
	r            io.Reader
	n, mark      int64 // bytes read; bytes read when the current token began
	token, total int64
	err          error // of r, other than io.EOF
}

func (m *meter) Read(p []byte) (int, error) {
	if m.n-m.mark > m.token {
		return 0, errTokenLimit
	}
	if m.total > 0 && m.n > m.total {
		return 0, errByteLimit
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	if err != nil && err != io.EOF {
		m.err = err
	}
	return n, err
}

// decodeMark reads past a byte order mark; UTF-16 is recognised by it.
func decodeMark(r io.Reader) io.Reader {
	br := bufio.NewReaderSize(r, 32<<10)
	head, _ := br.Peek(3)
	switch {
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}), bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return bufio.NewReader(unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder().Reader(br))
	case bytes.Equal(head, []byte{0xEF, 0xBB, 0xBF}):
		_, _ = br.Discard(3)
	}
	return br
}

// charsetReader serves the encodings that a document may declare.
func charsetReader(label string, input io.Reader) (io.Reader, error) {
	if strings.HasPrefix(strings.ToLower(label), "utf-16") {
		return input, nil // decoded already, or else the declaration could not have been read
	}
	enc, err := ianaindex.IANA.Encoding(label)
	if err != nil || enc == nil {
		return nil, fmt.Errorf("the encoding %q is not known", label)
	}
	return enc.NewDecoder().Reader(input), nil
}

// spaced turns the white space of an attribute into blanks (XML 1.0 §3.3.3,
// Attribute-Value Normalization).
func spaced(s string) string {
	if !strings.ContainsAny(s, "\t\n\r") {
		return s
	}
	return strings.NewReplacer("\r\n", " ", "\t", " ", "\n", " ", "\r", " ").Replace(s)
}

func isSpace(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
