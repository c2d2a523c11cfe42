// Package rdfxml reads RDF 1.1 XML Syntax.
//
// A document is read in constant memory, whatever its size, but for the names that rdf:ID gives, of which each may be
// given once. Nothing is opened, and entities are expanded under a limit (package scan).
//
//	read.go      the document, and the state that elements inherit
//	node.go      elements of nodes
//	property.go  elements of properties, in all their forms
package rdfxml
