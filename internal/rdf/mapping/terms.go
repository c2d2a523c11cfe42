package mapping

import (
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/tmdm"
)

// The vocabulary of the mapping.
const (
	NS = "https://github.com/tmshare/tmshare/ns/1/"

	languageNS = NS + "language/" // and a tag in lower case (BCP 47): a theme
	iriNS      = NS + "iri/"      // and an IRI in hexadecimal digits, which topic maps would compare otherwise
	datatypeNS = NS + "datatype/" // and the name of a datatype whose values topic maps would change

	termTopic             = NS + "Topic"       // the type of a topic that says nothing
	termNameType          = NS + "NameType"    // the type of a property whose literals are names
	termAssociation       = NS + "Association" // the type of a node that is an association
	termAssociationType   = NS + "associationType"
	termSubjectIdentifier = NS + "subjectIdentifier"
	termSubjectLocator    = NS + "subjectLocator"
	termItemIdentifier    = NS + "itemIdentifier"

	roleSubject = rdf.NS + "subject"
	roleObject  = rdf.NS + "object"
	rdfsLabel   = "http://www.w3.org/2000/01/rdf-schema#label"
	subClassOf  = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
	sameAs      = "http://www.w3.org/2002/07/owl#sameAs"
	topicName   = string(tmdm.PSIDefaultNameType)
)

// labels are the properties whose texts are names.
var labels = map[string]bool{
	rdfsLabel: true,
	"http://www.w3.org/2004/02/skos/core#prefLabel":   true,
	"http://www.w3.org/2004/02/skos/core#altLabel":    true,
	"http://www.w3.org/2004/02/skos/core#hiddenLabel": true,
	"http://purl.org/dc/elements/1.1/title":           true,
	"http://purl.org/dc/terms/title":                  true,
	"http://xmlns.com/foaf/0.1/name":                  true,
	"http://schema.org/name":                          true,
	"https://schema.org/name":                         true,
}

// genid returns the subject identifier of a blank node (RDF 1.1 Concepts §3.5, Replacing Blank Nodes with IRIs): below the
// base of the document, which is the source locator prefix where it is published, if that is on the web.
func genid(base tmdm.Locator, label string) tmdm.Locator {
	if !strings.HasPrefix(string(base), "http") {
		base = "https://github.com/tmshare/tmshare/"
	}
	s, _, _ := strings.Cut(string(base), "#")
	return tmdm.Locator(strings.TrimSuffix(s, "/") + wellKnown + label)
}

const wellKnown = "/.well-known/genid/"

var genidForm = regexp.MustCompile(wellKnown + `(b[0-9a-f]{32}(-[0-9]+)?)$`)

// genidLabel returns the label of the blank node that a subject identifier is of, or "".
func genidLabel(l string) string {
	if !strings.Contains(l, wellKnown) {
		return ""
	}
	if found := genidForm.FindStringSubmatch(l); found != nil {
		return found[1]
	}
	return ""
}

// locatorOf returns the subject identifier of an IRI. RDF compares IRIs character by character (RDF 1.1
// Concepts §3.2, IRIs), topic maps by their normal form: an IRI in another form is kept apart.
func locatorOf(s string) tmdm.Locator {
	normal, err := iri.Normalize(s)
	if err != nil || normal != s || strings.HasPrefix(s, iriNS) || genidLabel(s) != "" {
		return tmdm.Locator(iriNS + hex.EncodeToString([]byte(s)))
	}
	return tmdm.Locator(s)
}

// iriOf undoes locatorOf.
func iriOf(l tmdm.Locator) string {
	if digits, ok := strings.CutPrefix(string(l), iriNS); ok {
		if s, err := hex.DecodeString(digits); err == nil && locatorOf(string(s)) == l {
			return string(s)
		}
	}
	return string(l)
}

// changed are datatypes whose values topic maps bring into another form.
var changed = map[string]string{
	tmdm.XSDAnyURI:  datatypeNS + "anyURI",
	tmdm.XSDAnyType: datatypeNS + "anyType",
}

// datatypeOf returns the datatype of an occurrence whose value stays as it is.
func datatypeOf(value, datatype string) string {
	if datatype == tmdm.XSDAnyURI {
		if normal, err := iri.Normalize(value); err == nil && normal == value {
			return datatype
		}
	}
	if kept, ok := changed[datatype]; ok {
		return kept
	}
	return string(locatorOf(datatype))
}

// literalDatatype undoes datatypeOf.
func literalDatatype(datatype string) string {
	for original, kept := range changed {
		if datatype == kept {
			return original
		}
	}
	return iriOf(tmdm.Locator(datatype))
}
