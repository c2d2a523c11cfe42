package mapping

import (
	"iter"

	"github.com/tmshare/tmshare/internal/rdf"
)

// statements holds the statements of one graph in document order. A statement takes a third of the memory of a
// [rdf.Quad].
type statements struct {
	all   []statement
	kinds map[literalKind]*literalKind
}

type statement struct {
	subject, predicate, object string
	literal                    *literalKind // of the object; nil for other objects
	subjectKind, objectKind    rdf.Kind
}

// literalKind is the language and datatype that literals share.
type literalKind struct{ language, datatype string }

func (s *statements) add(q rdf.Quad) {
	c := statement{subject: q.Subject.Value, predicate: q.Predicate.Value, object: q.Object.Value,
		subjectKind: q.Subject.Kind, objectKind: q.Object.Kind}
	if q.Object.Kind == rdf.Literal {
		kind := literalKind{q.Object.Language, q.Object.Datatype}
		if s.kinds == nil {
			s.kinds = map[literalKind]*literalKind{}
		}
		if c.literal = s.kinds[kind]; c.literal == nil {
			c.literal = &kind
			s.kinds[kind] = c.literal
		}
	}
	s.all = append(s.all, c)
}

// at returns a statement by its number.
func (s *statements) at(i int) rdf.Quad {
	c := &s.all[i]
	q := rdf.Quad{Subject: rdf.Term{Kind: c.subjectKind, Value: c.subject}, Predicate: rdf.NewIRI(c.predicate),
		Object: rdf.Term{Kind: c.objectKind, Value: c.object}}
	if c.literal != nil {
		q.Object.Language, q.Object.Datatype = c.literal.language, c.literal.datatype
	}
	return q
}

// each yields the statements with their numbers.
func (s *statements) each() iter.Seq2[int, rdf.Quad] {
	return func(yield func(int, rdf.Quad) bool) {
		for i := range s.all {
			if !yield(i, s.at(i)) {
				return
			}
		}
	}
}
