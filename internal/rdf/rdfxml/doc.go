// Package rdfxml reads RDF 1.1 XML Syntax.
//
// It reads a document of any size in constant memory, except for the names of rdf:ID, each of which may occur once. It
// opens no other documents, and expands entities under a limit (package scan).
//
//	read.go      the document, and the state that elements inherit
//	node.go      elements of nodes
//	property.go  elements of properties, in all their forms
package rdfxml
