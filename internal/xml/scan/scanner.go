package scan

import "io"

// Kind is the kind of an event.
type Kind uint8

const (
	StartElement Kind = iota + 1
	EndElement        // also after the start of an empty-element tag
	Text              // all text up to the next tag, from text, references and CDATA sections
	Comment           // only with Options.Misc, also in the DTD
	ProcInst          // only with Options.Misc
)

func (k Kind) String() string {
	return [...]string{"none", "StartElement", "EndElement", "Text", "Comment", "ProcInst"}[min(k, 5)]
}

// Attr is an attribute. Declarations of namespaces are not among the attributes,
// see [Scanner.Declarations].
type Attr struct {
	Name
	Value []byte // normalised (XML 1.0 §3.3.3); valid until the next call of Next
}

// state is the part of the document that the scanner is in.
type state uint8

const (
	atStart   state = iota
	inProlog        // before the root element, outside of the DTD
	inSubset        // in the internal DTD subset
	inContent       // inside of the root element
	inText          // likewise, with text in hand to which more may belong
	inEpilog        // after the root element
	inError
)

// Scanner reads one document. It must not be used by two goroutines at a time.
type Scanner struct {
	window // of the document, or of the entity that is being read
	state  state
	kind   Kind // of the event
	closed bool // the start that was reported last is that of an empty-element tag
	err    error

	// the event
	attrs       []Attr
	attrNames   []*name // of attrs
	text        []byte
	target      string
	eventAt     int64 // where it begins in the document
	eventLine   int
	eventColumn int
	eventPlaced bool // the line and column are known

	open     []openElement
	names    names
	bindings []binding
	spaces   map[string]string
	declared []declaration // of the start tag that is being read
	seen     map[Name]bool
	values   []byte // attribute values that are not as in the document
	scratch  []byte // likewise, text
	tag      uint64 // counts start tags, to find an attribute that is there twice

	// the internal DTD subset and its entities
	dtd                *dtd
	standalone         bool
	frames             []frame // windows around the current one
	refLine, refColumn int     // where the outermost of its entities is referred to
	expanded           int64   // bytes that entities and defaults have added
	grown              int64   // bytes that the caller has added

	// the input of the document
	in         io.Reader // meter, perhaps decoded
	meter      meter
	inErr      error
	base       int64 // offset of the first byte of the document's window
	place      place
	detected   bool
	family     family
	charset    *namedEncoding // encoding in the Content-Type; nil: none
	uri        string
	options    Options
	limits     Limits
	bufferSize int
	captured   capture

	// initial storage of open, attrs and so on, sufficient for small documents
	first struct {
		open      [16]openElement
		attrs     [4]Attr
		attrNames [4]*name
		bindings  [4]binding
		declared  [4]declaration
	}
}

type openElement struct {
	name     *name
	bindings int // number of bindings in force outside of it
}

// declaration is an attribute that declares a namespace.
type declaration struct {
	name  *name
	value []byte
}

// NewScanner returns a Scanner that reads the document r. r needs no buffer, and is never closed.
func NewScanner(r io.Reader, options Options) *Scanner {
	s := &Scanner{
		options:    options,
		limits:     options.Limits.withDefaults(),
		bufferSize: max(options.BufferSize, leastBuffer),
		names:      newNames(),
		spaces:     make(map[string]string),
	}
	if options.BufferSize <= 0 {
		s.bufferSize = defaultBuffer
	}
	s.buf = make([]byte, min(s.bufferSize, firstBuffer)+pad)
	s.open, s.attrs, s.attrNames = s.first.open[:0], s.first.attrs[:0], s.first.attrNames[:0]
	s.bindings, s.declared = s.first.bindings[:0], s.first.declared[:0]
	s.names.prefix("xml").space = spaceXML
	s.Reset(r, options.URI)
	return s
}

// Reset makes the scanner ready for another document, with the same options. It
// keeps its buffers, and the names that it knows.
func (s *Scanner) Reset(r io.Reader, uri string) {
	if len(s.frames) > 0 {
		s.window = s.frames[0].window
	}
	if len(s.buf) > s.bufferSize+pad { // an exceptional token
		s.buf = make([]byte, s.bufferSize+pad)
	}
	s.undeclare(0)
	for pre := range s.options.Namespaces {
		s.names.prefix(pre).space = "" // until it is used undeclared
	}
	if s.dtd != nil { // cached names depend on it
		s.names.forget()
	}
	s.pos, s.end = 0, 0
	clear(s.buf[:pad])
	s.meter = meter{r: r, limit: s.limits.Bytes}
	s.uri, s.in, s.inErr, s.err = uri, &s.meter, nil, nil
	s.state, s.kind, s.closed = atStart, 0, false
	s.attrs, s.attrNames, s.text, s.target = s.attrs[:0], s.attrNames[:0], nil, ""
	s.base, s.place = 0, place{line: 1, column: 1}
	s.eventAt, s.eventPlaced = 0, false
	if cap(s.values)+cap(s.scratch) > mostScratch {
		s.values, s.scratch = nil, nil
	}
	clear(s.open) // the names in it may have been forgotten
	clear(s.frames)
	s.open, s.frames = s.open[:0], s.frames[:0]
	s.dtd, s.standalone, s.expanded, s.grown = nil, false, 0, 0
	s.detected, s.family, s.charset = false, asciiLike, nil
	s.captured.on = false
}

// Next reads the next event and returns its kind. At the end of a complete document the error is io.EOF. Errors are
// final: later calls return them again.
func (s *Scanner) Next() (Kind, error) {
	if s.kind == EndElement {
		s.leave()
	} else if s.closed {
		return s.endEmpty()
	}
	for {
		var kind Kind
		var err error
		if s.state == inContent {
			s.begin()
			b, p := s.buf, s.pos
			if b[p] != '<' {
				kind, err = s.chars()
			} else if c := b[p+1]; c == '/' {
				kind, err = s.endTag(p + 2)
			} else if c != '!' && c != '?' {
				expanded := s.expanded
				if kind, err = s.startTag(p + 1); err == errShort {
					s.expanded = expanded
				}
			} else {
				kind, err = s.markup()
			}
		} else {
			kind, err = s.step()
		}
		if kind != 0 {
			s.kind = kind
			return kind, nil
		}
		if err == errShort {
			err = s.more()
		}
		if err != nil {
			if s.state != inError {
				s.state, s.err = inError, err
			}
			s.kind = 0
			return 0, err
		}
	}
}

// step implements Next outside of content.
func (s *Scanner) step() (Kind, error) {
	if s.state == inText {
		return s.join()
	}
	s.begin()
	expanded := s.expanded
	kind, err := Kind(0), s.err
	switch s.state {
	case atStart:
		err = s.start()
	case inProlog, inEpilog:
		kind, err = s.outside()
	case inSubset:
		kind, err = s.subset()
	}
	if err == errShort {
		s.expanded = expanded
	}
	return kind, err
}

// begin notes that an event begins here.
func (s *Scanner) begin() {
	if len(s.frames) == 0 {
		s.eventAt, s.eventPlaced = s.base+int64(s.pos), false
	} else {
		s.eventLine, s.eventColumn, s.eventPlaced = s.refLine, s.refColumn, true
	}
}

// outside reads the markup around the root element: white space, comments, processing instructions and the document
// type declaration (XML 1.0 §2.8, production 27).
func (s *Scanner) outside() (Kind, error) {
	for isSpace(s.buf[s.pos]) {
		s.pos++
	}
	s.begin()
	p := s.pos
	if s.buf[p] != '<' {
		if s.state == inEpilog {
			return 0, s.unexpected(p, "nothing but comments and processing instructions can stand behind the root element")
		}
		return 0, s.unexpected(p, "a document begins with a tag")
	}
	switch s.buf[p+1] {
	case '!', '?':
		return s.markup()
	case '/':
		return 0, s.errorf(p, "an end tag without a start tag")
	}
	if s.state == inEpilog && p+1 < s.end {
		return 0, s.errorf(p, "a second root element")
	}
	return s.startTag(p + 1)
}

// markup reads tokens that begin with "<!" or "<?", except CDATA sections.
func (s *Scanner) markup() (Kind, error) {
	p := s.pos
	if s.buf[p+1] == '?' {
		return s.procInst(p)
	}
	switch s.buf[p+2] {
	case '-':
		return s.comment(p)
	case '[':
		if s.state == inContent {
			s.scratch = s.scratch[:0]
			return s.join()
		}
	case 'D':
		if s.state == inProlog {
			return 0, s.doctype()
		}
	}
	if s.state == inContent {
		return 0, s.unexpected(p+2, notInContent)
	}
	return 0, s.unexpected(p+2, "outside of the root element, <! begins a comment or, before it, <!DOCTYPE")
}

const notInContent = "in an element, <! begins a comment or a CDATA section"

// Name returns the name of the element that has started or ended, and with any
// other event that of the innermost element around it.
func (s *Scanner) Name() Name {
	if len(s.open) == 0 {
		return Name{}
	}
	return s.open[len(s.open)-1].name.expanded()
}

// Depth returns the number of open elements, including the one that has started or ended. The root element has depth 1.
func (s *Scanner) Depth() int { return len(s.open) }

// Attrs returns the attributes of the element that has started, in the order of the document, then those added by the
// DTD. The result is valid until the next call of Next.
func (s *Scanner) Attrs() []Attr { return s.attrs }

// Attr returns the value of an attribute of the element that has started, and
// whether it is there. It is valid until the next call of Next.
func (s *Scanner) Attr(space, local string) ([]byte, bool) {
	for i := range s.attrs {
		if a := &s.attrs[i]; a.Local == local && a.Space == space {
			return a.Value, true
		}
	}
	return nil, false
}

// Declarations calls yield with the declarations of namespaces that the element
// makes that has started or ended.
func (s *Scanner) Declarations(yield func(Binding) bool) {
	if len(s.open) == 0 {
		return
	}
	for _, b := range s.bindings[s.open[len(s.open)-1].bindings:] {
		if !yield(Binding{b.prefix.name, b.prefix.space}) {
			return
		}
	}
}

// Text returns the text, the comment, or the content of a processing instruction after its target. The result is valid
// until the next call of Next.
func (s *Scanner) Text() []byte { return s.text }

// Target returns the target of a processing instruction.
func (s *Scanner) Target() string { return s.target }
