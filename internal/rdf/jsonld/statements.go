package jsonld

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/piprate/json-gold/ld"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/xtm"
)

const jsonLiteral = rdf.NS + "JSON"

// maker makes statements of an expanded document (JSON-LD 1.1 API §8, RDF Serialization/Deserialization Algorithms). It
// records the parts that these drop, and refuses terms that RDF does not have.
type maker struct {
	d      *document
	places places
	quads  []rdf.Quad
	blanks map[string]rdf.Term // by label, where that cannot stay
	nodes  int                 // blank nodes without a label
	in     map[string]any      // the node that is at work
	lost   []loss
	more   map[xtm.Rule]int // losses beyond those
	err    error            // the first
}

// mostNamed is the number of losses that are kept with their names. Further ones are counted.
const mostNamed = 100_000

// loss is something that is left out, or changed, in a node.
type loss struct {
	rule                xtm.Rule
	what, reason, named string
	pointer             string // of the node
}

// nowhere is the graph of statements that are left out.
var nowhere = rdf.Term{Kind: rdf.Literal}

func (m *maker) lose(rule xtm.Rule, what, reason string) {
	if len(m.lost) >= mostNamed {
		m.more[rule]++
		return
	}
	m.lost = append(m.lost, loss{rule, what, reason, m.d.nameOf(m.in), m.places.place(m.in)})
}

// fail records the reason to refuse the document. near is a text to find its place, searched from the node on.
func (m *maker) fail(near, format string, args ...any) {
	if m.err == nil {
		offset := m.d.offsets(m.places.place(m.in))[m.places.place(m.in)]
		m.err = m.d.fail(offset+max(m.d.find(near, offset), 0), format+" (in %s)", append(args, m.d.nameOf(m.in))...)
	}
}

// nameOf names a node of an expanded document.
func (d *document) nameOf(node map[string]any) string {
	if id, ok := node["@id"].(string); ok {
		return fmt.Sprintf("the node %.200q", d.resolved(id))
	}
	return "a node without @id"
}

func (m *maker) say(s, p, o, graph rdf.Term) {
	if s.Kind == rdf.None || p.Kind == rdf.None || o.Kind == rdf.None || graph == nowhere || m.err != nil {
		return
	}
	m.quads = append(m.quads, rdf.Quad{Subject: s, Predicate: p, Object: o, Graph: graph})
	if err := rdf.CheckDensity(int64(len(m.quads)), int64(len(m.d.data))); err != nil {
		m.err = m.d.fail(0, "%v", err)
	}
}

// node makes the statements of a node, and returns its term. That is of no kind where the node is left out.
func (m *maker) node(v map[string]any, graph rdf.Term) rdf.Term {
	around := m.in
	m.in = v
	defer func() { m.in = around }()
	s := m.subject(v)
	for _, key := range slices.Sorted(maps.Keys(v)) {
		values := ld.Arrayify(v[key])
		switch key {
		case "@id", "@index":
		case "@type":
			for _, each := range values {
				m.say(s, rdf.NewIRI(rdf.Type), m.iri(each.(string)), graph)
			}
		case "@graph":
			name := s
			if s.Kind == rdf.None {
				name = nowhere
			}
			m.all(values, name)
		case "@included":
			m.all(values, graph)
		case "@reverse":
			reversed := v[key].(map[string]any)
			for _, property := range slices.Sorted(maps.Keys(reversed)) {
				p := m.property(property)
				for _, each := range ld.Arrayify(reversed[property]) {
					m.say(m.object(each, graph), p, s, graph)
				}
			}
		default:
			if ld.IsKeyword(key) {
				m.lose(rdf.UnmappedKeys, fmt.Sprintf("%q", key), "the keyword "+key+" has no place here; it is left out")
				continue
			}
			p := m.property(key)
			for _, each := range values {
				m.say(s, p, m.object(each, graph), graph)
			}
		}
	}
	return s
}

func (m *maker) all(nodes []any, graph rdf.Term) {
	for _, each := range nodes {
		m.object(each, graph)
	}
}

func (m *maker) subject(v map[string]any) rdf.Term {
	if id, ok := v["@id"].(string); ok {
		return m.iri(id)
	}
	return m.blank()
}

// blank returns a new blank node. Readers give such labels to nodes without one.
func (m *maker) blank() rdf.Term {
	m.nodes++
	return rdf.NewBlank("." + strconv.Itoa(m.nodes))
}

var isLabel = regexp.MustCompile("^[0-9A-Za-z_][0-9A-Za-z_-]*$")

// iri returns the term of an IRI or of the label of a blank node.
func (m *maker) iri(s string) rdf.Term {
	s = m.d.resolved(s)
	if label, ok := strings.CutPrefix(s, "_:"); ok {
		if isLabel.MatchString(label) {
			return rdf.NewBlank(label)
		}
		if _, ok := m.blanks[label]; !ok {
			m.blanks[label] = m.blank()
		}
		return m.blanks[label]
	}
	if bad, found := rdf.BadInIRI(s); found {
		_, behind, _ := strings.Cut(s, string(bad))
		const reason = "the IRI <%.100s> has the character %q, which no IRI has; escape it with a percent sign"
		m.fail(string(bad)+behind, reason, s, bad)
	}
	if !iri.IsAbsolute(s) {
		name := fmt.Sprintf("%.100q", s)
		m.lose(rdf.RelativeIRIs, name, "the IRI "+name+" is relative, and there is no base; what is said with it is left out")
		return rdf.Term{}
	}
	return rdf.NewIRI(s)
}

func (m *maker) property(s string) rdf.Term {
	if strings.HasPrefix(s, "_:") {
		name := fmt.Sprintf("%.100q", plain(s))
		m.lose(rdf.BlankProperties, name, "the property "+name+" is a blank node; what is said with it is left out")
		return rdf.Term{}
	}
	return m.iri(s)
}

// object returns the term of a value of a property, or of a list.
func (m *maker) object(value any, graph rdf.Term) rdf.Term {
	v, ok := value.(map[string]any)
	if !ok {
		m.fail("", "a list or a set has a value that is no JSON-LD")
		return rdf.Term{}
	}
	if list, ok := v["@list"]; ok {
		return m.list(ld.Arrayify(list), graph)
	}
	if content, ok := v["@value"]; ok {
		return m.literal(v, content)
	}
	return m.node(v, graph)
}

func (m *maker) list(items []any, graph rdf.Term) rdf.Term {
	head, last := rdf.NewIRI(rdf.Nil), rdf.Term{}
	for i, item := range items {
		cell := m.blank()
		if i == 0 {
			head = cell
		}
		m.say(last, rdf.NewIRI(rdf.Rest), cell, graph)
		m.say(cell, rdf.NewIRI(rdf.First), m.object(item, graph), graph)
		last = cell
	}
	m.say(last, rdf.NewIRI(rdf.Rest), rdf.NewIRI(rdf.Nil), graph)
	return head
}

// literal returns the literal of a value object.
func (m *maker) literal(v map[string]any, content any) rdf.Term {
	datatype := ""
	if types := ld.Arrayify(v["@type"]); len(types) > 1 {
		m.fail("", "a value has several types")
	} else if len(types) == 1 && types[0] != nil {
		datatype, _ = types[0].(string)
	}
	if datatype == "@json" {
		return rdf.NewLiteral(canonical(m.doubles(changed(content, plain))), jsonLiteral)
	}
	if datatype != "" {
		datatype = m.iri(datatype).Value
	}
	if _, ok := v["@direction"]; ok {
		m.lose(rdf.Directions, "", "the base direction of a text is left out")
	}
	lexical, typ := "", ""
	switch c := content.(type) {
	case string:
		tag, _ := v["@language"].(string)
		if tag = plain(tag); tag != "" {
			return rdf.NewText(plain(c), m.language(tag))
		}
		lexical = plain(c)
	case bool:
		lexical, typ = strconv.FormatBool(c), xsdBoolean
	case json.Number:
		exact := false
		if lexical, typ, exact = number(string(c), datatype); !exact {
			m.round(c, lexical)
		}
	default:
		m.fail("", "a value is neither a text, a number nor a boolean")
	}
	if datatype != "" {
		typ = datatype
	}
	if e := rdf.Untagged(lexical, typ); e != nil {
		m.lose(e.Rule, e.Of, e.Reason)
	}
	return rdf.NewLiteral(lexical, typ)
}

// doubles returns JSON with its numbers as doubles in canonical form; numbers beyond their range are unchanged.
func (m *maker) doubles(value any) any {
	switch v := value.(type) {
	case json.Number:
		lexical, f, exact := double(string(v))
		if math.IsInf(f, 0) {
			return v
		}
		if !exact {
			m.round(v, lexical)
		}
		return f
	case []any:
		for i, each := range v {
			v[i] = m.doubles(each)
		}
	case map[string]any:
		for key, each := range v {
			v[key] = m.doubles(each)
		}
	}
	return value
}

func (m *maker) round(n json.Number, to string) {
	m.lose(rdf.RoundedNumbers, fmt.Sprintf("%.40s", n), fmt.Sprintf("the number %.40s is read as %s", n, to))
}

// language returns a tag in the form that literals have.
func (m *maker) language(tag string) string {
	normal, err := rdf.Language(tag)
	if err != nil {
		m.fail(canonical(tag), "%v", err)
	} else if !strings.EqualFold(normal, tag) {
		if at := m.d.find(canonical(tag), 0); at >= 0 { // the library has made it lower case
			tag = string(m.d.data[at+1 : at+1+len(tag)])
		}
		m.lose(rdf.LanguageTags, fmt.Sprintf("%q", tag), fmt.Sprintf("the language tag %q is read as %q", tag,
			strings.ReplaceAll(tag, "_", "-")))
	}
	return normal
}
