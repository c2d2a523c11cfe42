package rdf

import (
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/words"
)

// Prefixes are the prefixes that writers declare if they use them.
var Prefixes = words.Namespaces("rdf", "rdfs", "xsd", "owl", "skos", "dc", "dcterms", "foaf", "schema", "prov", "dcat",
	"as", "ldes", "sh", "tree", "tm", "tmshare")

// Shortener makes prefixed names of IRIs.
type Shortener struct {
	names   map[string]string // of the prefixes that are used, by namespace
	schemes map[string]bool   // names of prefixes that are schemes too
}

var spaces = func() map[string]string {
	all := map[string]string{}
	for name, space := range Prefixes {
		all[space] = name
	}
	return all
}()

// UsedPrefixes returns a shortener for some statements.
func UsedPrefixes(all []Quad) *Shortener {
	s := &Shortener{}
	for _, q := range all {
		s.See(q)
	}
	return s
}

// See prepares for a statement. Callers must pass all statements before the first is written. A prefix that is the
// scheme of one of their IRIs is not used, because the two could not be distinguished without brackets.
func (s *Shortener) See(q Quad) {
	for _, t := range [...]*Term{&q.Subject, &q.Predicate, &q.Object} {
		switch {
		case t.Kind == IRI:
			s.see(t.Value)
		case t.Kind == Literal && t.Language == "" && t.Datatype != String:
			s.see(t.Datatype)
		}
	}
}

func (s *Shortener) see(iri string) {
	if s.names == nil {
		s.names, s.schemes = map[string]string{}, map[string]bool{}
	}
	if scheme, _, _ := strings.Cut(iri, ":"); Prefixes[scheme] != "" {
		s.schemes[scheme] = true
	}
	space, local := divide(iri)
	if name, ok := spaces[space]; ok && isPlain(local) {
		s.names[space] = name
	}
}

// Names returns the prefixes that are used, in order.
func (s *Shortener) Names() []string {
	names := slices.Sorted(maps.Values(s.names))
	return slices.DeleteFunc(names, func(name string) bool { return s.schemes[name] })
}

// Short returns the prefixed name of an IRI, if it has one.
func (s *Shortener) Short(iri string) (string, bool) {
	space, local := divide(iri)
	name, ok := s.names[space]
	if !ok || !isPlain(local) || s.schemes[name] {
		return "", false
	}
	return name + ":" + local, true
}

func divide(iri string) (space, local string) {
	end := strings.LastIndexAny(iri, "#/") + 1
	return iri[:end], iri[end:]
}

// isPlain reports whether a local part needs no escapes.
func isPlain(local string) bool {
	for i := range len(local) {
		switch c := local[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case i > 0 && ('0' <= c && c <= '9' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// Label returns a valid label for documents, distinct for each argument: labels that readers give to nodes without one
// begin with a dot.
func Label(s string) string {
	if n, ok := strings.CutPrefix(s, "."); ok {
		return "_" + n + "_"
	}
	if strings.HasPrefix(s, "_") {
		return "_" + s
	}
	return s
}
