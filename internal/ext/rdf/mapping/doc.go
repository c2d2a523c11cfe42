// Package mapping converts RDF graphs to topic maps and back, without loss as far as possible. docs/rdf.md has the
// rules.
//
//	options.go     what users choose: the graph of a document, which properties name things
//	terms.go       what identifies a topic, and the names of our vocabulary
//	blank.go       labels of blank nodes that stay when a graph is published again
//	read.go        from a graph to a topic map
//	vocabulary.go  which statements say something of others, and what
//	nodes.go       blank nodes that stand for items of a topic map
//	write.go       from a topic map to a graph
//	records.go     from the records of a source to a graph, statement by statement
//	writeitems.go  what of its items no single statement says
package mapping
