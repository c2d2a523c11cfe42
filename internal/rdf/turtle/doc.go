// Package turtle reads the notations of the Turtle family: RDF 1.1 Turtle, TriG, N-Triples and
// N-Quads.
//
// It reads a document of any size in constant memory, except for its prefixes, its longest term and the depth of its
// brackets, which have limits. It opens no other documents. Input may be hostile.
//
//	input.go   bytes, with the position that messages name
//	terms.go   IRIs, blank nodes, literals
//	names.go   the characters of names, and prefixed names
//	lines.go   N-Triples and N-Quads: a statement on each line
//	turtle.go  Turtle and TriG: prefixes, lists, brackets
//	literals.go  texts, numbers and truth values of these
//	write.go   Turtle and N-Triples
//	nesting.go   which blank nodes are written in brackets
package turtle
