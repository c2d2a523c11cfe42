package feeds

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// This file alone knows how a document becomes tokens. encoding/xml supplies
// raw tokens; it lets through unbalanced tags, several roots, repeated
// attributes and prefixes without a declaration, so those are checked here.

const (
	spaceXML   = "http://www.w3.org/XML/1998/namespace"
	spaceXMLNS = "http://www.w3.org/2000/xmlns/"
)

// name is an expanded name (Namespaces in XML 1.0 §2.1).
type name struct{ space, local string }

type attribute struct {
	name  name
	value string
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenStart
	tokenText
	tokenEOF // after the root has been closed
)

type token struct {
	kind  tokenKind
	name  name        // of a start
	attrs []attribute // of a start, namespace declarations left out
	text  []byte      // valid until the next token is read
}

// attr returns the value of an attribute, and whether it is there.
func (t token) attr(space, local string) (string, bool) {
	for _, a := range t.attrs {
		if a.name == (name{space, local}) {
			return a.value, true
		}
	}
	return "", false
}

// scanner reads the tokens of one document: starts, ends and text. Comments
// and processing instructions are passed over.
type scanner struct {
	dec      *xml.Decoder
	in       *limitedReader
	uri      string
	maxDepth int

	open         []openElement
	spaces       map[string]string // prefix → namespace, as in force
	rooted       bool              // a root has begun
	line, column int               // where the current token begins
}

type openElement struct {
	raw    xml.Name // as written: the prefix is in Space
	shadow []binding
}

// binding is a prefix as it was before an element declared it again.
type binding struct {
	prefix, space string
	bound         bool
}

func newScanner(r io.Reader, uri string, limits Limits) *scanner {
	in := &limitedReader{r: r, uri: uri, limits: limits}
	buffered := bufio.NewReaderSize(in, readAhead)
	if bom, _ := buffered.Peek(3); string(bom) == "\uFEFF" {
		_, _ = buffered.Discard(3)
	}
	return &scanner{
		dec: xml.NewDecoder(buffered), in: in, uri: uri, maxDepth: limits.MaxDepth,
		spaces: map[string]string{"": "", "xml": spaceXML},
	}
}

// depth is the number of elements that are open.
func (s *scanner) depth() int { return len(s.open) }

// errorf returns a SyntaxError at the current token.
func (s *scanner) errorf(format string, args ...any) error {
	return &SyntaxError{s.uri, s.line, s.column, fmt.Sprintf(format, args...)}
}

// next returns the next token. Its errors are final.
func (s *scanner) next() (token, error) {
	for {
		s.line, s.column = s.dec.InputPos()
		start := s.dec.InputOffset()
		s.in.token = start
		raw, err := s.dec.RawToken()
		if err != nil {
			return s.stop(err)
		}
		switch t := raw.(type) {
		case xml.StartElement:
			return s.start(t)
		case xml.EndElement:
			return s.end(t)
		case xml.CharData:
			if len(s.open) > 0 {
				return token{kind: tokenText, text: t}, nil
			}
			if strings.Trim(string(t), whiteSpace) != "" {
				return token{}, s.errorf("text outside the root element")
			}
		case xml.Directive:
			// Nothing in Atom needs a DTD, and entities are what makes small
			// documents large.
			return token{}, s.errorf("document type declarations are not accepted")
		case xml.ProcInst:
			if strings.EqualFold(t.Target, "xml") && start > 0 {
				return token{}, s.errorf("an XML declaration must stand at the very beginning")
			}
		}
	}
}

// stop turns the error that ended reading into ours, or into tokenEOF.
func (s *scanner) stop(err error) (token, error) {
	s.line, s.column = s.dec.InputPos()
	var syntax *xml.SyntaxError
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		return token{}, limit
	case s.in.err != nil && errors.Is(err, s.in.err):
		return token{}, fmt.Errorf("feeds: reading %s: %w", s.uri, s.in.err)
	case err == io.EOF && len(s.open) > 0:
		return token{}, s.errorf("the document ends inside <%s>", rawName(s.open[len(s.open)-1].raw))
	case err == io.EOF && !s.rooted:
		return token{}, s.errorf("the document has no root element")
	case err == io.EOF:
		return token{kind: tokenEOF}, nil
	case errors.As(err, &syntax):
		return token{}, s.errorf("%s", syntax.Msg)
	default:
		return token{}, s.errorf("%s", strings.TrimPrefix(err.Error(), "xml: "))
	}
}

func (s *scanner) start(t xml.StartElement) (token, error) {
	if len(s.open) == 0 && s.rooted {
		return token{}, s.errorf("a second root element, <%s>", rawName(t.Name))
	}
	s.rooted = true
	if len(s.open) == s.maxDepth {
		return token{}, &LimitError{s.uri, "MaxDepth", int64(s.maxDepth)}
	}
	shadow, err := s.declare(t.Attr)
	if err != nil {
		return token{}, err
	}
	s.open = append(s.open, openElement{t.Name, shadow})

	result := token{kind: tokenStart}
	if result.name, err = s.resolve(t.Name, s.spaces[""]); err != nil {
		return token{}, err
	}
	for _, a := range t.Attr {
		if _, ok := declared(a.Name); ok {
			continue
		}
		n, err := s.resolve(a.Name, "") // the default namespace is not for attributes
		if err != nil {
			return token{}, err
		}
		result.attrs = append(result.attrs, attribute{n, a.Value})
	}
	if n, ok := repeated(result.attrs); ok {
		return token{}, s.errorf("<%s> has the attribute %s twice", rawName(t.Name), n.local)
	}
	return result, nil
}

func (s *scanner) end(t xml.EndElement) (token, error) {
	if len(s.open) == 0 {
		return token{}, s.errorf("</%s> closes nothing", rawName(t.Name))
	}
	last := s.open[len(s.open)-1]
	if last.raw != t.Name {
		return token{}, s.errorf("<%s> is closed by </%s>", rawName(last.raw), rawName(t.Name))
	}
	s.open = s.open[:len(s.open)-1]
	for _, b := range last.shadow {
		if b.bound {
			s.spaces[b.prefix] = b.space
		} else {
			delete(s.spaces, b.prefix)
		}
	}
	return token{kind: tokenEnd}, nil
}

// declare puts the namespace declarations of an element into force and returns
// what they shadow.
func (s *scanner) declare(attrs []xml.Attr) ([]binding, error) {
	var shadow []binding
	var prefixes []attribute
	for _, a := range attrs {
		prefix, ok := declared(a.Name)
		if !ok {
			continue
		}
		prefixes = append(prefixes, attribute{name: name{"", prefix}})
		switch {
		case prefix == "xmlns" || a.Value == spaceXMLNS || (prefix == "xml") != (a.Value == spaceXML):
			return nil, s.errorf("the prefix %q cannot be declared as %q", prefix, clip(a.Value))
		case prefix != "" && a.Value == "":
			return nil, s.errorf("the prefix %q is declared without a namespace", prefix)
		}
		old, bound := s.spaces[prefix]
		shadow = append(shadow, binding{prefix, old, bound})
		s.spaces[prefix] = a.Value
	}
	if n, ok := repeated(prefixes); ok {
		return nil, s.errorf("the prefix %q is declared twice in one element", n.local)
	}
	return shadow, nil
}

// declared returns the prefix that an attribute declares, "" for the default
// namespace, and whether it is a declaration at all.
func declared(n xml.Name) (prefix string, ok bool) {
	switch {
	case n.Space == "xmlns":
		return n.Local, true
	case n.Space == "" && n.Local == "xmlns":
		return "", true
	}
	return "", false
}

func (s *scanner) resolve(n xml.Name, defaultSpace string) (name, error) {
	if strings.Contains(n.Local, ":") {
		return name{}, s.errorf("%q is not a qualified name", clip(n.Local))
	}
	if n.Space == "" {
		return name{defaultSpace, n.Local}, nil
	}
	space, ok := s.spaces[n.Space]
	if !ok {
		return name{}, s.errorf("the prefix of %s is not declared", rawName(n))
	}
	return name{space, n.Local}, nil
}

// repeated returns a name that occurs more than once.
func repeated(attrs []attribute) (name, bool) {
	if len(attrs) < 2 {
		return name{}, false
	}
	seen := make(map[name]bool)
	for _, a := range attrs {
		if seen[a.name] {
			return a.name, true
		}
		seen[a.name] = true
	}
	return name{}, false
}

func rawName(n xml.Name) string {
	if n.Space == "" {
		return clip(n.Local)
	}
	return clip(n.Space + ":" + n.Local)
}

// readAhead is the size of the buffer before the decoder.
const readAhead = 4096

// limitedReader enforces MaxBytes and MaxToken: the decoder holds a tag with
// all its attributes, in many times the space that they take in the document,
// before anything can be said about it. limitedReader remembers its error,
// which tells a failed transfer from a faulty document.
type limitedReader struct {
	r      io.Reader
	uri    string
	limits Limits
	read   int64 // bytes read so far
	token  int64 // where the current token begins
	err    error // other than io.EOF
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	left, over := l.limits.MaxBytes-l.read, &LimitError{l.uri, "MaxBytes", l.limits.MaxBytes}
	if t := l.token + l.limits.MaxToken + readAhead - l.read; t < left {
		left, over = t, &LimitError{l.uri, "MaxToken", l.limits.MaxToken}
	}
	if left < int64(len(p)) {
		p = p[:left+1] // one more, to tell "full" from "too long"
	}
	n, err := l.r.Read(p)
	if int64(n) > left {
		n, err = int(left), over
	}
	l.read += int64(n)
	if err != nil && err != io.EOF {
		l.err = err
	}
	return n, err
}
