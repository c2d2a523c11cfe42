package xtm

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/internal/xml/write"
	"github.com/tmshare/tmshare/tmdm"
)

// Losses are the numbers of items that a version of the syntax, or another format, cannot represent and the encoder
// left out.
type Losses struct {
	NameTypes int `json:"nameTypes"` // types of names other than the default (XTM 1.0)
	// datatypes other than string and IRI (XTM 1.0); the values are written
	Datatypes int `json:"datatypes"`
	// item identifiers of statements without a place (XTM 1.0)
	ItemIdentifiers int `json:"itemIdentifiers"`
	// subject identifiers that readers replace by their successors (XTM 1.0); they are written
	SubjectIdentifiers int `json:"subjectIdentifiers"`
	// variants whose scope adds nothing to that of their name; all variants (RDF)
	Variants        int `json:"variants"`
	Associations    int `json:"associations"`              // associations without roles (XTM 2.x, RDF)
	Scopes          int `json:"scopes,omitempty"`          // scopes that are no language (RDF); written all the same
	Reifiers        int `json:"reifiers,omitempty"`        // which topics are statements (RDF)
	SubjectLocators int `json:"subjectLocators,omitempty"` // subject locators beside other identifiers (RDF)
	FileSubjects    int `json:"fileSubjects,omitempty"`    // subjects that are named for a file (RDF); they are written
}

// Total returns the number of all losses.
func (l Losses) Total() int {
	return l.NameTypes + l.Datatypes + l.ItemIdentifiers + l.SubjectIdentifiers + l.Variants + l.Associations + l.Scopes +
		l.Reifiers + l.SubjectLocators + l.FileSubjects
}

// NameTypes is the treatment of types of names in XTM 1.0, which does not have them.
type NameTypes uint8

const (
	// OmitNameTypes leaves them out and counts them.
	OmitNameTypes NameTypes = iota
	// OntopiaNameTypes writes them as Ontopia does, as an instanceOf in baseName. Such a document is not valid XTM 1.0;
	// lenient reading accepts it.
	OntopiaNameTypes
)

// Encoder writes a document element by element. The output is deterministic. After an error, all further calls return
// it.
//
// The caller must pass each topic once, and all topics that are referred to. The encoder keeps 8 bytes in memory for
// each XML id, because ids must differ, except for ids that it makes for topics.
type Encoder struct {
	// NameTypes applies to XTM 1.0. It is set before the first element.
	NameTypes NameTypes

	w       io.Writer
	version Version
	prefix  string // of item identifiers that can be an XML id: base and "#"
	buf     []byte
	indent  int
	err     error
	losses  Losses
	started bool
	used    map[uint64]struct{} // hashes of ids
	stubs   []stub              // reifiers in XTM 1.0 to write after the current element
	closed  bool

	topicIDs map[tmdm.Locator]string // some that were made up, by subject identifier

	// taken, if not nil, reports whether another topic than self, or a statement, has the item identifier that an id
	// would make.
	taken func(id string, self Ref) bool
}

// noBase is the prefix of the ids that are made up where the document has no base.
const noBase = "#"

// NewEncoder returns an encoder that writes a document of version v to w. Item identifiers base#name become XML ids and
// references to them; none do if base is empty.
func NewEncoder(w io.Writer, v Version, base tmdm.Locator) *Encoder {
	e := new(Encoder)
	e.Reset(w, v, base)
	return e
}

// Reset makes e equal to a new encoder, but reuses its memory, for writing many small documents.
func (e *Encoder) Reset(w io.Writer, v Version, base tmdm.Locator) {
	*e = Encoder{w: w, version: v, buf: e.buf[:0], stubs: e.stubs[:0], topicIDs: e.topicIDs}
	if base != "" {
		normal, err := iri.Normalize(string(base))
		if err != nil {
			e.err = fmt.Errorf("the base of the document: %w", err)
		}
		normal, _, _ = strings.Cut(normal, "#")
		e.prefix = normal + "#"
	}
	if v != V10 && v != V20 && v != V21 {
		e.err = fmt.Errorf("version %q is not known: documents are written in 1.0, 2.0 and 2.1", v)
	}
}

// Losses returns the losses so far.
func (e *Encoder) Losses() Losses { return e.losses }

// Map writes the identity of the topic map. It must be the first call.
func (e *Encoder) Map(m *Map) error {
	if e.err == nil && e.started {
		e.err = &EncodeError{"the topic map", "its identity comes after other elements"}
	}
	if e.err != nil {
		return e.err
	}
	e.begin(m)
	return e.flush(false)
}

// Topic writes a topic.
func (e *Encoder) Topic(t *Topic) error {
	if e.begin(&Map{}); e.err != nil {
		return e.err
	}
	if e.version == V10 {
		e.topic10(t)
	} else {
		e.topic2x(t)
	}
	return e.flush(false)
}

// Association writes an association.
func (e *Encoder) Association(a *Association) error {
	if e.begin(&Map{}); e.err != nil {
		return e.err
	}
	if e.version == V10 {
		e.association10(a)
	} else {
		e.association2x(a)
	}
	return e.flush(false)
}

// Close writes the end of the document. It does not close the writer below.
func (e *Encoder) Close() error {
	if e.err != nil || e.closed {
		return e.err
	}
	e.begin(&Map{})
	e.closed = true
	e.close("topicMap")
	return e.flush(true)
}

// begin writes the head of the document, once.
func (e *Encoder) begin(m *Map) {
	if e.err == nil && e.closed {
		e.err = &EncodeError{"an element", "the document is closed already"}
	}
	if e.err != nil || e.started {
		return
	}
	e.started = true
	e.buf = append(e.buf, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"...)
	if e.version == V10 {
		e.topicMap10(m)
	} else {
		e.topicMap2x(m)
	}
}

// flush hands the buffer on once it is worth it.
func (e *Encoder) flush(all bool) error {
	if e.err == nil && (all || len(e.buf) >= 32<<10) {
		if _, err := e.w.Write(e.buf); err != nil {
			e.err = fmt.Errorf("writing: %w", err)
		}
		e.buf = e.buf[:0]
	}
	return e.err
}

// fail records the first error.
func (e *Encoder) fail(construct string, format string, args ...any) {
	if e.err == nil {
		e.err = &EncodeError{construct, fmt.Sprintf(format, args...)}
	}
}

// The methods below append markup. Each element begins on a new line.

const margin = "                <" // of an element eight levels deep, and the beginning of its tag

// tag begins a start tag.
func (e *Encoder) tag(name string) {
	e.buf = append(append(e.buf, margin[len(margin)-1-2*e.indent:]...), name...)
}

// attr adds an attribute to the start tag.
func (e *Encoder) attr(name, value string) {
	e.buf = append(append(append(e.buf, ' '), name...), `="`...)
	e.attrValue(value)
}

// optional adds an attribute unless the value is empty.
func (e *Encoder) optional(name, value string) {
	if value != "" {
		e.attr(name, value)
	}
}

func (e *Encoder) attrValue(value string) {
	if write.Plain(value, write.Attr|write.NonASCII) == len(value) {
		e.buf = append(append(e.buf, value...), '"')
		return
	}
	e.checkText(value, func() string { return fmt.Sprintf("the locator %.100q", value) })
	e.buf = append(write.Escape(e.buf, value, write.Attr), '"')
}

// content ends the start tag of an element that holds others.
func (e *Encoder) content() {
	e.buf = append(e.buf, ">\n"...)
	e.indent++
}

// open begins an element that has no attributes and holds others.
func (e *Encoder) open(name string) {
	e.tag(name)
	e.content()
}

// close ends an element that holds others.
func (e *Encoder) close(name string) {
	e.indent--
	e.buf = append(append(e.buf, margin[len(margin)-1-2*e.indent:]...), '/')
	e.buf = append(append(e.buf, name...), ">\n"...)
}

// text writes an element that holds text. The text must be checked.
func (e *Encoder) text(name, text string) {
	e.tag(name)
	e.endText(name, text)
}

// endText ends the start tag of an element and adds its text and its end tag.
func (e *Encoder) endText(name, text string) {
	e.buf = append(write.Escape(append(e.buf, '>'), text, write.Text), "</"...)
	e.buf = append(append(e.buf, name...), ">\n"...)
}

// checkText fails where value has a character that XML cannot carry (XML 1.0
// §2.2, Characters).
func (e *Encoder) checkText(value string, construct func() string) {
	if err := write.Check(value); err != nil {
		e.fail(construct(), "%s", err)
	}
}

// xmlID returns the XML id that makes the item identifier l, if one does.
func (e *Encoder) xmlID(l tmdm.Locator) (string, bool) {
	if e.prefix == "" || e.prefix == noBase {
		return "", false
	}
	id, ok := strings.CutPrefix(string(l), e.prefix)
	return id, ok && scan.IsNCName(id)
}

// claim reports whether id is free, and takes it.
func (e *Encoder) claim(id string) bool {
	hash := uint64(14695981039346656037) // FNV-1a
	for i := range len(id) {
		hash = (hash ^ uint64(id[i])) * 1099511628211
	}
	if _, used := e.used[hash]; used {
		return false
	}
	if e.used == nil {
		e.used = map[uint64]struct{}{}
	}
	e.used[hash] = struct{}{}
	return true
}

// made returns a made-up id that is free, beginning with id.
func (e *Encoder) made(id string, self Ref) string {
	for n, next := 2, id; ; n++ {
		if (e.taken == nil || !e.taken(next, self)) && e.claim(next) {
			return next
		}
		next = fmt.Sprintf("%s-%d", id, n)
	}
}

// beyond returns the themes of a variant that its name does not have.
func beyond(variant, name []Ref) []Ref {
	var more []Ref
	for _, r := range variant {
		if !slices.Contains(name, r) && !slices.Contains(more, r) {
			more = append(more, r)
		}
	}
	return more
}
