package turtle

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
)

// document reads Turtle (RDF 1.1 Turtle §6.5, Grammar) or TriG (RDF 1.1 TriG §4, Grammar).
func (p *parser) document() {
	for p.space(true); !p.end(); p.space(true) {
		switch c := p.at(0); {
		case c == '@':
			p.atDirective()
		case c == '{' && p.notation == TriG:
			p.block(rdf.Term{})
		case p.keyword("prefix"):
			p.prefix()
		case p.keyword("base"):
			p.setBase()
		case p.keyword(version):
			p.refuseVersion()
		case p.notation == TriG && p.keyword("graph"):
			p.space(true)
			label, _ := p.label()
			p.space(true)
			p.block(label)
		default:
			p.statement()
		}
	}
}

// keyword uses a word in any case, if it is the next one and no name.
func (p *parser) keyword(word string) bool {
	for i := range len(word) {
		if p.at(i)|0x20 != word[i] {
			return false
		}
	}
	switch p.at(len(word)) {
	case ' ', '\t', '\n', '\r', '<', '#', '[', '_':
		// "graph_" could begin a name, but no prefix of the grammar is without a colon there.
		if p.at(len(word)) == '_' && p.at(len(word)+1) != ':' {
			return false
		}
	default:
		return false
	}
	p.pos += len(word)
	return true
}

// version is the word by which RDF 1.2 begins a directive.
const version = "version"

// refuseVersion refuses a directive whose word was just read.
func (p *parser) refuseVersion() {
	p.pos -= len(version)
	p.fail("%s", rdf.Newer("VERSION"))
}

// atDirective reads @prefix or @base, which end with a dot.
func (p *parser) atDirective() {
	p.refuseNewer("@" + version)
	p.pos++
	word := "prefix"
	if p.at(0) == 'b' {
		word = "base"
	}
	for i := range len(word) {
		if !p.take(word[i]) {
			p.fail("a directive is @prefix or @base; there is %s", p.next())
		}
	}
	switch word {
	case "prefix":
		p.prefix()
	default:
		p.setBase()
	}
	p.space(true)
	p.expect('.', "at the end of the directive")
}

func (p *parser) prefix() {
	p.space(true)
	p.scratch = p.scratch[:0]
	if r, _ := p.rune(0); isNameBase(r) {
		p.name(isName)
	}
	p.expect(':', "behind the prefix")
	name := string(p.scratch)
	p.space(true)
	space := p.reference()
	p.checkLength()
	if _, again := p.prefixes[name]; !again && len(p.prefixes) >= p.limits.Prefixes {
		p.fail("there are more than %d prefixes", p.limits.Prefixes)
	}
	p.prefixes[name] = space.Value
}

func (p *parser) setBase() {
	p.space(true)
	p.base = p.reference().Value
	p.checkLength()
}

// reference reads an IRI in brackets, and resolves it.
func (p *parser) reference() rdf.Term {
	if p.at(0) != '<' {
		p.fail("an IRI in <> is missing; there is %s", p.next())
	}
	p.iriRef()
	if s := p.text(); iri.IsAbsolute(s) {
		return rdf.NewIRI(s)
	}
	resolved, err := iri.ResolveAsIs(p.base, string(p.scratch))
	if err != nil {
		p.fail("the IRI <%.100s> is relative, and there is no base that it is relative to; declare one with @base <…> .",
			p.scratch)
	}
	p.scratch = append(p.scratch[:0], resolved...)
	return p.madeIRI()
}

// prefixed reads a prefixed name; its prefix is in the scratch, and its colon comes next.
func (p *parser) prefixed() rdf.Term {
	space, ok := p.prefixes[string(p.scratch)]
	if !ok {
		p.fail("the prefix %q is not declared; declare it with @prefix %s: <…> .", p.scratch, p.scratch)
	}
	p.pos++
	p.scratch = p.scratch[:0]
	p.local()
	p.scratch = slices.Insert(p.scratch, 0, []byte(space)...)
	return p.madeIRI()
}

// named reads an IRI in brackets or a prefixed name.
func (p *parser) named(what string) rdf.Term {
	if p.at(0) == '<' {
		return p.reference()
	}
	p.scratch = p.scratch[:0]
	if r, _ := p.rune(0); isNameBase(r) {
		p.name(isName)
	}
	if p.at(0) != ':' {
		if len(p.scratch) > 0 {
			p.fail("%q is no name that is known here: %s is an IRI in <> or a name with a prefix and a colon", p.scratch, what)
		}
		p.fail("%s is missing; there is %s", what, p.next())
	}
	return p.prefixed()
}

// label reads the name of a graph. empty reports whether it is [].
func (p *parser) label() (label rdf.Term, empty bool) {
	switch p.at(0) {
	case '_':
		return p.blank(), false
	case '[':
		p.pos++
		p.space(true)
		p.expect(']', "behind [: the name of a graph has no statements")
		return p.fresh(), true
	}
	return p.named("the name of a graph"), false
}

// fresh returns a blank node without a label.
func (p *parser) fresh() rdf.Term {
	p.nodes++
	return rdf.NewBlank("." + strconv.Itoa(p.nodes))
}

// block reads the statements of a graph in braces.
func (p *parser) block(graph rdf.Term) {
	p.expect('{', "before the statements of the graph")
	p.graph = graph
	for {
		p.space(true)
		if p.take('}') {
			break
		}
		p.triples(p.subject())
		p.space(true)
		if !p.take('.') {
			p.expect('}', "behind the statements of the graph")
			break
		}
	}
	p.graph = rdf.Term{}
}

// statement reads statements about one subject, up to their dot; in TriG also a graph with its name.
func (p *parser) statement() {
	s, complete := p.subject()
	p.space(true)
	if p.notation == TriG && p.at(0) == '{' && !complete && !p.list {
		p.block(s)
		return
	}
	p.triples(s, complete)
	p.space(true)
	p.expect('.', "behind the statements about "+words(s))
}

func words(t rdf.Term) string {
	switch {
	case t.Kind == rdf.IRI:
		return "<" + t.Value + ">"
	case strings.HasPrefix(t.Value, "."):
		return "a node in brackets"
	}
	return "_:" + t.Value
}

// subject reads a subject. complete reports that it has its own statements, so that no others need follow.
func (p *parser) subject() (s rdf.Term, complete bool) {
	p.list = false
	switch p.at(0) {
	case '_':
		return p.blank(), false
	case '[':
		return p.brackets()
	case '(':
		s = p.collection()
		p.list = true
		return s, false
	}
	return p.named("a subject"), false
}

// triples reads the statements about a subject.
func (p *parser) triples(s rdf.Term, complete bool) {
	p.space(true)
	if c := p.at(0); complete && (c == '.' || c == '}') {
		return
	}
	p.properties(s)
}

// properties reads a list of properties and their objects (predicateObjectList).
func (p *parser) properties(s rdf.Term) {
	for {
		property := p.property()
		for {
			p.space(true)
			p.say(s, property, p.object())
			p.space(true)
			if !p.take(',') {
				p.refuseNewer("{|", "~")
				break
			}
		}
		if p.at(0) != ';' {
			return
		}
		for p.take(';') {
			p.space(true)
		}
		if c := p.at(0); c == '.' || c == ']' || c == '}' || p.end() {
			return
		}
	}
}

func (p *parser) property() rdf.Term {
	if p.at(0) == 'a' {
		switch p.at(1) {
		case ' ', '\t', '\n', '\r', '<', '"', '\'', '[', '(', '#', '_':
			p.pos++
			return rdf.NewIRI(rdf.Type)
		}
	}
	return p.named("a property")
}

// object reads an object. Statements in brackets are passed on first.
func (p *parser) object() rdf.Term {
	switch c := p.at(0); {
	case c == '_':
		return p.blank()
	case c == '[':
		node, _ := p.brackets()
		return node
	case c == '(':
		return p.collection()
	case c == '"', c == '\'':
		return p.literal()
	case isDigit(c), c == '+', c == '-', c == '.' && isDigit(p.at(1)):
		return p.number()
	case p.boolean("true"):
		return rdf.NewLiteral("true", rdf.XSD+"boolean")
	case p.boolean("false"):
		return rdf.NewLiteral("false", rdf.XSD+"boolean")
	}
	return p.named("an object")
}

// down counts brackets inside of each other.
func (p *parser) down() {
	if p.depth++; p.depth > p.limits.Depth {
		p.fail("brackets are more than %d deep", p.limits.Depth)
	}
}

// brackets reads a blank node in brackets. complete reports whether they contain statements.
func (p *parser) brackets() (node rdf.Term, complete bool) {
	p.down()
	p.pos++
	node = p.fresh()
	p.space(true)
	if !p.take(']') {
		p.properties(node)
		p.space(true)
		p.expect(']', "behind the statements in brackets")
		complete = true
	}
	p.depth--
	return node, complete
}

// collection reads a list in parentheses, and passes on its statements (RDF 1.1 Turtle §2.8, Collections).
func (p *parser) collection() rdf.Term {
	p.down()
	p.pos++
	first, rest := rdf.NewIRI(rdf.First), rdf.NewIRI(rdf.Rest)
	head := rdf.NewIRI(rdf.Nil)
	var last rdf.Term
	for {
		p.space(true)
		if p.take(')') {
			break
		}
		node := p.fresh()
		if last.Kind == rdf.None {
			head = node
		} else {
			p.say(last, rest, node)
		}
		p.say(node, first, p.object())
		last = node
	}
	if last.Kind != rdf.None {
		p.say(last, rest, rdf.NewIRI(rdf.Nil))
	}
	p.depth--
	return head
}
