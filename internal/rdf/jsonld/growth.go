package jsonld

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// A short document can have long IRIs many times: each use of a term, of a namespace or of a base makes them again.
// What that adds is estimated before the library makes it. The estimate knows no scopes of contexts, and takes what is
// longest: so it is too high at worst.

const (
	growthFactor = 16      // so many times the document may be made of its terms, as of other notations of RDF,
	growthMore   = 8 << 20 // and so many bytes beyond that
	maxChain     = 100     // terms that are made of each other
)

// growth estimates how long the IRIs of a document become.
type growth struct {
	defined     map[string][]string // what each term stands for, in any context
	identifies  map[string]bool     // terms whose values are IRIs
	vocab, base namespace
	depth       int
	known       map[string]made // of terms
	deep        int             // of how many terms is asked at the moment
	all         int64           // bytes
}

// made is what becomes of a term or an IRI.
type made struct{ length, chain int } // chain counts terms that are made of each other

// namespace has the lengths of the values of @vocab or @base. Each relative one is added to the one before it.
type namespace struct{ absolute, relative int }

func (n *namespace) add(iri string) {
	if strings.Contains(iri, ":") {
		n.absolute = max(n.absolute, len(iri))
	} else {
		n.relative += len(iri)
	}
}

func (n namespace) length(depth int) int { return n.absolute + n.relative*depth }

// checkGrowth refuses a document of whose terms and namespaces too much would be made.
func (d *document) checkGrowth(value any, base string) error {
	g := &growth{defined: map[string][]string{}, identifies: map[string]bool{"@id": true, "@type": true}, known: map[string]made{}}
	g.base.add(base)
	g.collect(value, 1)
	if n := max(g.vocab.length(g.depth), g.base.length(g.depth)); n > rdf.MaxIRI {
		return d.fail(0, "the values of @vocab or @base make up to %d bytes together; the most for an IRI is %d: shorten them", n, rdf.MaxIRI)
	}
	for _, term := range slices.Sorted(maps.Keys(g.defined)) {
		at := bytes.Index(d.data, []byte(term))
		switch of := g.term(term); {
		case of.length > rdf.MaxIRI:
			return d.fail(at, "the term %.100q stands for an IRI of up to %d bytes; the most for an IRI is %d: shorten the namespaces", term, of.length, rdf.MaxIRI)
		case of.chain > maxChain:
			return d.fail(at, "the term %.100q is made of more than %d others, one after the other; write out what some of them stand for", term, maxChain)
		}
	}
	g.count(value, false)
	if g.all > growthMore+growthFactor*int64(len(d.data)) {
		return d.fail(0, "%s", rdf.TooMuchMade(growthMore))
	}
	return nil
}

// collect reads all contexts of a value.
func (g *growth) collect(value any, depth int) {
	g.depth = max(g.depth, depth)
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			g.collect(each, depth)
		}
	case map[string]any:
		for key, each := range v {
			if key == "@context" {
				g.context(each)
			} else {
				g.collect(each, depth+1)
			}
		}
	}
}

func (g *growth) context(value any) {
	switch v := value.(type) {
	case string:
		if known, ok := contexts[v].(map[string]any); ok {
			g.context(known["@context"])
		}
	case []any:
		for _, each := range v {
			g.context(each)
		}
	case map[string]any:
		for key, each := range v {
			g.define(key, each)
		}
	}
}

func (g *growth) define(key string, value any) {
	text, isText := value.(string)
	switch {
	case key == "@vocab" && isText:
		g.vocab.add(text)
	case key == "@base" && isText:
		g.base.add(text)
	case key == "@import":
		g.context(value)
	case strings.HasPrefix(key, "@"):
	case isText:
		g.defined[key] = append(g.defined[key], text)
		g.identifies[key] = g.identifies[key] || text == "@id" || text == "@type"
	default:
		definition, _ := value.(map[string]any)
		for _, by := range []string{"@id", "@reverse"} {
			if iri, ok := definition[by].(string); ok {
				g.defined[key] = append(g.defined[key], iri)
			}
		}
		if of := definition["@type"]; of == "@id" || of == "@vocab" {
			g.identifies[key] = true
		}
		if scoped, ok := definition["@context"]; ok {
			g.context(scoped)
		}
	}
}

// term returns the IRI that a term stands for; nothing if it is none.
func (g *growth) term(t string) (longest made) {
	if of, known := g.known[t]; known {
		return of
	}
	if g.deep > maxChain { // also where terms are made of themselves
		return made{chain: maxChain + 1}
	}
	g.deep++
	for _, iri := range g.defined[t] {
		if iri != t {
			longest = longest.or(g.iri(iri))
		}
	}
	g.deep--
	longest.chain++
	g.known[t] = longest
	return longest
}

func (m made) or(other made) made {
	return made{max(m.length, other.length), max(m.chain, other.chain)}
}

// iri returns what a term, a compact IRI or a relative one may be when it is written out.
func (g *growth) iri(s string) made {
	if strings.HasPrefix(s, "@") {
		return made{}
	}
	longest := made{length: len(s)}
	prefix, suffix, compact := strings.Cut(s, ":")
	if compact && g.defined[prefix] != nil {
		of := g.term(prefix)
		longest = longest.or(made{of.length + len(suffix), of.chain})
	}
	if !compact {
		longest.length += max(g.vocab.length(g.depth), g.base.length(g.depth))
	}
	if g.defined[s] != nil {
		longest = longest.or(g.term(s))
	}
	return longest
}

// count adds up what the keys of a value, and those of its texts that are IRIs, are made to.
func (g *growth) count(value any, isIRI bool) {
	switch v := value.(type) {
	case string:
		if isIRI {
			g.all += int64(g.iri(v).length)
		}
	case []any:
		for _, each := range v {
			g.count(each, isIRI)
		}
	case map[string]any:
		for key, each := range v {
			if key == "@context" {
				continue
			}
			g.all += int64(g.iri(key).length)
			g.count(each, g.identifies[key])
		}
	}
}
