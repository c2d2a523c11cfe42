package mapping

import (
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// The vocabulary of the mapping.
const (
	NS = iri.Own

	languageNS = words.LanguageNamespace // and a tag in lower case (BCP 47): a theme
	unnamedNS  = NS + "unnamed/"         // and a number: a topic whose locators identify other things in RDF

	// Types.
	termTopic       = NS + "Topic"       // a topic without statements
	termTopicMap    = NS + "TopicMap"    // the map itself
	termNameType    = NS + "NameType"    // a property whose texts are names
	termAssociation = NS + "Association" // a node that is an association
	termStatement   = NS + "Statement"   // a node with more data of a statement
	termOccurrence  = NS + "Occurrence"  // such a node of an occurrence where a name would be expected

	// Properties.
	termSubjectIdentifier = NS + "subjectIdentifier"
	termSubjectLocator    = NS + "subjectLocator"
	termItemIdentifier    = NS + "itemIdentifier"
	termScope             = NS + "scope"
	termReifier           = NS + "reifier"
	termDatatype          = NS + "datatype"
	termVariant           = NS + "variant"
	termValue             = NS + "value"
	termRole              = NS + "role"
	termRoleType          = NS + "roleType"
	termPlayer            = NS + "player"

	xmlLiteral  = rdf.NS + "XMLLiteral"
	subject     = rdf.NS + "subject"
	predicate   = rdf.NS + "predicate"
	object      = rdf.NS + "object"
	rdfs        = "http://www.w3.org/2000/01/rdf-schema#"
	rdfsLabel   = rdfs + "label"
	subClassOf  = rdfs + "subClassOf"
	anyResource = rdfs + "Resource"
	sameAs      = "http://www.w3.org/2002/07/owl#sameAs"
	topicName   = string(tmdm.PSIDefaultNameType)
)

// genid returns the subject identifier of a blank node (RDF 1.1 Concepts §3.5, Replacing Blank Nodes with IRIs): below
// the base of the document, which is the source locator prefix where it is published, if that is on the web.
func genid(base tmdm.Locator, label string) tmdm.Locator {
	if !strings.HasPrefix(string(base), "http") {
		base = "https://github.com/tmshare/tmshare/"
	}
	s, _, _ := strings.Cut(string(base), "#")
	return tmdm.Locator(strings.TrimSuffix(s, "/") + iri.Genid + label)
}

// locatorOf returns the subject identifier of the topic that the resource with an IRI becomes.
func locatorOf(s string) tmdm.Locator { return tmdm.Locator(iri.ToLocator(s)) }

// resource undoes locatorOf.
func resource(l tmdm.Locator) rdf.Term { return rdf.NewIRI(iri.FromLocator(string(l))) }

// changed maps datatypes whose values topic maps normalize to those that replace them there.
var changed = map[string]string{
	tmdm.XSDAnyURI:  iri.DatatypeNS + "anyURI",
	tmdm.XSDAnyType: iri.DatatypeNS + "anyType",
}

// datatypeOf returns the datatype that a literal has in a topic map; its value is unchanged.
func datatypeOf(l rdf.Term) string {
	if l.Datatype == tmdm.XSDAnyURI {
		if normal, err := iri.Normalize(l.Value); err == nil && normal == l.Value {
			return l.Datatype
		}
	}
	if kept, ok := changed[l.Datatype]; ok {
		return kept
	}
	return iri.ToLocator(l.Datatype)
}

// literalDatatype undoes datatypeOf.
func literalDatatype(datatype string) string {
	for original, kept := range changed {
		if datatype == kept {
			return original
		}
	}
	return iri.FromLocator(datatype)
}

// isText reports whether a term is a literal that can be a name.
func isText(t rdf.Term) bool {
	return t.Kind == rdf.Literal && (t.Language != "" || t.Datatype == rdf.String)
}
