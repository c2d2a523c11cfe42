// Package jsonld reads and writes JSON-LD 1.1. It uses github.com/piprate/json-gold for reading. A document is in
// memory as a whole, so its size has a limit. Nothing is fetched: a context that a document names is in a table, or
// else an error.
//
//	read.go        from a document to statements
//	check.go       size, depth and form of the JSON, with the place of each fault
//	growth.go      how much longer terms and namespaces may make a document
//	copies.go      how many terms contexts take over from others
//	bases.go       relative IRIs
//	escape.go      characters that the library would change
//	statements.go  from an expanded document to statements
//	numbers.go     numbers as literals
//	unmapped.go    keys and values that are left out
//	place.go       the node with the fault, and nodes without statements
//	contexts.go    the table
//	write.go       from statements to a document
package jsonld
