package jsonld

import (
	"fmt"

	"github.com/piprate/json-gold/ld"
)

// prefixes are those of the initial context of RDFa 1.1, which has no other terms.
var prefixes = map[string]any{
	"as": "https://www.w3.org/ns/activitystreams#", "cc": "http://creativecommons.org/ns#",
	"csvw": "http://www.w3.org/ns/csvw#", "ctag": "http://commontag.org/ns#",
	"dc": "http://purl.org/dc/terms/", "dc11": "http://purl.org/dc/elements/1.1/", "dcat": "http://www.w3.org/ns/dcat#",
	"dcterms": "http://purl.org/dc/terms/",
	"dctypes": "http://purl.org/dc/dcmitype/", "dqv": "http://www.w3.org/ns/dqv#", "duv": "https://www.w3.org/ns/duv#",
	"foaf": "http://xmlns.com/foaf/0.1/", "gr": "http://purl.org/goodrelations/v1#",
	"grddl": "http://www.w3.org/2003/g/data-view#", "ical": "http://www.w3.org/2002/12/cal/icaltzd#",
	"jsonld": "http://www.w3.org/ns/json-ld#", "ldp": "http://www.w3.org/ns/ldp#",
	"ma": "http://www.w3.org/ns/ma-ont#", "oa": "http://www.w3.org/ns/oa#", "odrl": "http://www.w3.org/ns/odrl/2/",
	"og": "http://ogp.me/ns#", "org": "http://www.w3.org/ns/org#",
	"owl": "http://www.w3.org/2002/07/owl#", "prov": "http://www.w3.org/ns/prov#",
	"qb": "http://purl.org/linked-data/cube#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
	"rdfa": "http://www.w3.org/ns/rdfa#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
	"rev": "http://purl.org/stuff/rev#", "rif": "http://www.w3.org/2007/rif#", "rr": "http://www.w3.org/ns/r2rml#",
	"schema": "http://schema.org/", "sd": "http://www.w3.org/ns/sparql-service-description#",
	"sioc": "http://rdfs.org/sioc/ns#", "skos": "http://www.w3.org/2004/02/skos/core#",
	"skosxl": "http://www.w3.org/2008/05/skos-xl#", "sosa": "http://www.w3.org/ns/sosa/",
	"ssn": "http://www.w3.org/ns/ssn/", "time": "http://www.w3.org/2006/time#", "v": "http://rdf.data-vocabulary.org/#",
	"vcard": "http://www.w3.org/2006/vcard/ns#", "void": "http://rdfs.org/ns/void#",
	"wdr": "http://www.w3.org/2007/05/powder#", "wdrs": "http://www.w3.org/2007/05/powder-s#",
	"xhv": "http://www.w3.org/1999/xhtml/vocab#", "xml": "http://www.w3.org/XML/1998/namespace",
	"xsd": "http://www.w3.org/2001/XMLSchema#",
}

// contexts are the documents that a document may name.
var contexts = map[string]any{
	"http://www.w3.org/2013/json-ld-context/rdfa11":  map[string]any{"@context": prefixes},
	"https://www.w3.org/2013/json-ld-context/rdfa11": map[string]any{"@context": prefixes},
}

// table gives the documents of contexts. It implements [ld.DocumentLoader].
type table struct{ *document }

// LoadDocument returns a document of the table.
func (t table) LoadDocument(iri string) (*ld.RemoteDocument, error) {
	iri = t.resolved(iri)
	document, ok := contexts[iri]
	if !ok {
		return nil, &contextError{iri}
	}
	// A copy, because the library adds members of importing contexts.
	return &ld.RemoteDocument{DocumentURL: iri, Document: ld.CloneDocument(document)}, nil
}

// contextError is the error for a context that is not in the table.
type contextError struct{ iri string }

func (e *contextError) Error() string {
	return fmt.Sprintf("the context <%.200s> is not fetched; write what it has into the @context of the document", e.iri)
}
