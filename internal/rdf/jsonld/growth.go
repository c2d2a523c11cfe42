package jsonld

import (
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/rdf"
)

// A short document can have long IRIs many times, because each use of a term, of a namespace or of a base repeats them.
// So the growth is estimated before the library expands the document. The estimate ignores scopes of contexts, and
// takes the longest values: so it is an upper bound.

const (
	growthFactor = 16      // so many times the document may be made of its terms, as of other notations of RDF,
	growthMore   = 8 << 20 // and so many bytes beyond that
	maxChain     = 100     // terms that are made of each other
)

// growth estimates the total length of the IRIs of a document.
type growth struct {
	defined     map[string][]string // definitions of each term, in any context
	identifies  map[string]bool     // terms with IRIs as values
	vocab, base namespace
	depth       int
	known       map[string]made // of terms
	all         int64           // bytes
}

// made is the expansion of a term or an IRI.
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

// checkGrowth refuses a document whose terms and namespaces expand too much.
func (d *document) checkGrowth(value any, base string) error {
	g := &growth{defined: map[string][]string{}, identifies: map[string]bool{"@id": true, "@type": true},
		known: map[string]made{}}
	g.base.add(base)
	g.collect(value, 1)
	d.terms = map[string]bool{}
	for term := range g.defined {
		d.terms[term] = true
	}
	if n := max(g.vocab.length(g.depth), g.base.length(g.depth)); n > rdf.MaxIRI {
		return d.fail(0,
			"the values of @vocab or @base make up to %d bytes together; the most for an IRI is %d: shorten them", n, rdf.MaxIRI)
	}
	if term := g.measure(); term != "" {
		return d.fail(d.key(term), "the term %.100q is made of itself; write out what it stands for", term)
	}
	if term, large := g.least(func(m made) bool { return m.length > rdf.MaxIRI }); term != "" {
		return d.fail(d.key(term), "the term %.100q stands for an IRI of up to %d bytes; the most for an IRI is %d: "+
			"shorten the namespaces", term, large.length, rdf.MaxIRI)
	}
	if term, _ := g.least(func(m made) bool { return m.chain > maxChain }); term != "" {
		return d.fail(d.key(term), "the term %.100q is made of more than %d others, one after the other; "+
			"write out what some of them stand for", term, maxChain)
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
		if typ := definition["@type"]; typ == "@id" || typ == "@vocab" {
			g.identifies[key] = true
		}
		if scoped, ok := definition["@context"]; ok {
			g.context(scoped)
		}
	}
}

// measure finds the expansion of each term, after those that it depends on. It returns a term that depends on itself.
func (g *growth) measure() (circular string) {
	users, waits := map[string][]string{}, map[string]int{}
	for term, all := range g.defined {
		for _, iri := range all {
			for _, from := range g.madeOf(term, iri) {
				users[from] = append(users[from], term)
				waits[term]++
			}
		}
	}
	var ready []string
	for term := range g.defined {
		if waits[term] == 0 {
			ready = append(ready, term)
		}
	}
	for ; len(ready) > 0; ready = ready[1:] {
		term := ready[0]
		sum := made{}
		for _, iri := range g.defined[term] {
			if iri != term {
				sum = sum.or(g.iri(iri))
			}
		}
		sum.chain++
		g.known[term] = sum
		for _, user := range users[term] {
			if waits[user]--; waits[user] == 0 {
				ready = append(ready, user)
			}
		}
	}
	return g.circle(waits)
}

// circle returns a term that depends on itself, by the number of unresolved dependencies of each term.
func (g *growth) circle(waits map[string]int) (term string) {
	maps.DeleteFunc(waits, func(_ string, n int) bool { return n == 0 })
	if len(waits) == 0 {
		return ""
	}
	term = slices.Min(slices.Collect(maps.Keys(waits)))
	for seen := map[string]bool{}; !seen[term]; {
		seen[term] = true
		var path []string
		for _, iri := range g.defined[term] {
			path = append(path, g.madeOf(term, iri)...)
		}
		term = path[slices.IndexFunc(path, func(t string) bool { return waits[t] > 0 })]
	}
	return term
}

// madeOf returns the terms that the definition of a term depends on.
func (g *growth) madeOf(term, iri string) (all []string) {
	if prefix, _, ok := g.compact(iri); ok {
		all = append(all, prefix)
	}
	if iri != term && g.defined[iri] != nil {
		all = append(all, iri)
	}
	return all
}

// compact divides an IRI that begins with a term. If "//" follows the colon, the IRI is not compact (JSON-LD 1.1 API
// §5.2.2, IRI Expansion).
func (g *growth) compact(iri string) (prefix, suffix string, ok bool) {
	prefix, suffix, ok = strings.Cut(iri, ":")
	return prefix, suffix, ok && g.defined[prefix] != nil && !strings.HasPrefix(suffix, "//")
}

// least returns the term with the least excessive expansion, because others depend on it.
func (g *growth) least(tooMuch func(made) bool) (term string, size made) {
	for _, t := range slices.Sorted(maps.Keys(g.known)) {
		m := g.known[t]
		if tooMuch(m) && (term == "" || m.length+m.chain < size.length+size.chain) {
			term, size = t, m
		}
	}
	return term, size
}

func (m made) or(other made) made {
	return made{max(m.length, other.length), max(m.chain, other.chain)}
}

// iri returns the possible expansion of a term, a compact IRI or a relative one.
func (g *growth) iri(s string) made {
	if strings.HasPrefix(s, "@") {
		return made{}
	}
	longest := made{length: len(s)}
	if prefix, suffix, ok := g.compact(s); ok {
		known := g.known[prefix]
		longest = longest.or(made{known.length + len(suffix), known.chain})
	}
	if !strings.Contains(s, ":") {
		longest.length += max(g.vocab.length(g.depth), g.base.length(g.depth))
	}
	if known, ok := g.known[s]; ok {
		longest = longest.or(known)
	}
	return longest
}

// count adds up the expansions of the keys of a value, and of its texts that are IRIs.
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
