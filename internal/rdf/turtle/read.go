package turtle

import (
	"bytes"
	"cmp"
	"io"

	"github.com/tmshare/tmshare/internal/rdf"
)

// Notation is one of the notations.
type Notation uint8

// The notations. Each reader takes its own notation only: a file in N-Triples can be read as Turtle.
const (
	Turtle Notation = iota
	TriG
	NTriples
	NQuads
)

// Limits bound the cost of a document. A field that is zero or less means the default.
type Limits struct {
	Term     int // bytes of a term or a name; default 16 MiB
	Depth    int // brackets inside of each other; default 1,000
	Prefixes int // that are declared; default 10,000
	Growth   int // bytes that prefixes and bases may add, in addition to 16 times the bytes read; default 8 MiB
}

// Options are the options for reading a document.
type Options struct {
	URI    string // names the document in messages; not opened
	Base   string // of relative IRIs; default: URI
	Limits Limits

	// Tolerated, if not nil, is called for each thing that is changed, with the Rule of that.
	Tolerated func(*rdf.SyntaxError)
}

// Read calls each with the statements of a document, in their order, until it returns an error. An
// error of the document is a *[rdf.SyntaxError]. The labels of blank nodes are those of the document; those
// of nodes without one begin with a dot, which no label does.
func Read(r io.Reader, notation Notation, o Options, each func(rdf.Quad) error) (err error) {
	p := &parser{each: each, tolerated: o.Tolerated, notation: notation, base: cmp.Or(o.Base, o.URI),
		prefixes: map[string]string{}}
	p.input = input{r: r, uri: o.URI, line: 1}
	if whole, ok := r.(interface{ Len() int }); ok { // of a line in memory no more is needed
		p.buf = make([]byte, 0, min(whole.Len()+1, firstBuffer))
	}
	p.known, p.limits = map[string]string{}, o.Limits
	for limit, standard := range map[*int]int{&p.limits.Term: 16 << 20, &p.limits.Depth: 1000, &p.limits.Prefixes: 10_000,
		&p.limits.Growth: 8 << 20} {
		if *limit <= 0 {
			*limit = standard
		}
	}
	defer func() {
		switch b := recover().(type) {
		case nil:
		case broken:
			err = b.err
		default:
			panic(b)
		}
	}()
	p.at(2)
	if bytes.HasPrefix(p.buf, []byte("\xEF\xBB\xBF")) { // a byte order mark, as some editors write it
		p.pos, p.lineStart = 3, 3
	}
	if notation == NTriples || notation == NQuads {
		p.lines()
	} else {
		p.document()
	}
	return nil
}

// parser reads a document.
type parser struct {
	lexer
	each       func(rdf.Quad) error
	tolerated  func(*rdf.SyntaxError)
	notation   Notation
	base       string
	prefixes   map[string]string
	graph      rdf.Term // of the statements that are being read
	depth      int
	nodes      int  // blank nodes without a label
	list       bool // the subject was a list
	statements int64
}

// say passes on a statement.
func (p *parser) say(s, predicate, o rdf.Term) {
	p.statements++
	if err := rdf.CheckDensity(p.statements, p.before+int64(p.pos)); err != nil {
		p.fail("%v", err)
	}
	if err := p.each(rdf.Quad{Subject: s, Predicate: predicate, Object: o, Graph: p.graph}); err != nil {
		panic(broken{err})
	}
}
