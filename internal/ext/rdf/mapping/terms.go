package mapping

import (
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// The vocabulary of the mapping.
const (
	NS = "https://github.com/tmshare/tmshare/ns/1/"

	languageNS = words.LanguageNamespace // and a tag in lower case (BCP 47): a theme
	iriNS      = NS + "iri/"             // and an IRI in hexadecimal digits, which topic maps would compare otherwise
	locatorNS  = NS + "locator/"         // and a locator in hexadecimal digits, with characters that no IRI has
	unnamedNS  = NS + "unnamed/"         // and a number: a topic whose locators identify other things in RDF
	datatypeNS = NS + "datatype/"        // and the name of a datatype whose values topic maps would change

	// Types.
	termTopic       = NS + "Topic"       // a topic that says nothing
	termTopicMap    = NS + "TopicMap"    // the map itself
	termNameType    = NS + "NameType"    // a property whose texts are names
	termAssociation = NS + "Association" // a node that is an association
	termStatement   = NS + "Statement"   // a node that says more of a statement
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

// locatorOf returns the locator of an IRI. RDF compares IRIs character by character (RDF 1.1 Concepts §3.2,
// IRIs), topic maps by their normal form: an IRI that is not the one of its normal form is kept apart.
func locatorOf(s string) tmdm.Locator {
	if l, ok := plainLocator(s); ok {
		return l
	}
	return tmdm.Locator(iriNS + hex.EncodeToString([]byte(s)))
}

// plainLocator returns the locator of an IRI that need not be kept apart.
func plainLocator(s string) (tmdm.Locator, bool) {
	if l := unescaped(s); l != "" {
		return l, true
	}
	normal, err := iri.Normalize(s)
	if err != nil || written(normal) != s || strings.HasPrefix(s, iriNS) || strings.HasPrefix(s, datatypeNS) ||
		genidLabel(s) != "" {
		return "", false
	}
	return tmdm.Locator(normal), true
}

// unescaped returns the locator that an IRI has in hexadecimal digits, or "": it must be in normal form, so that it can
// be written and read again, and must give the same IRI when it is written.
func unescaped(s string) tmdm.Locator {
	l := unhex(s, locatorNS)
	normal, err := iri.Normalize(l)
	if err != nil || normal != l || written(l) != s || strings.ContainsAny(l, "\uFFFE\uFFFF") { // XML has neither
		return ""
	}
	return tmdm.Locator(l)
}

// unhex returns what stands in hexadecimal digits behind a prefix, or "".
func unhex(s, prefix string) string {
	digits, ok := strings.CutPrefix(s, prefix)
	if !ok {
		return ""
	}
	decoded, _ := hex.DecodeString(digits)
	return string(decoded)
}

// iriOf undoes locatorOf. Digits of what readers of RDF would refuse stay as they are: locatorOf did not make them.
func iriOf(l tmdm.Locator) string {
	s := unhex(string(l), iriNS)
	_, bad := rdf.BadInIRI(s)
	if !bad && iri.IsAbsolute(s) && utf8.ValidString(s) && locatorOf(s) == l {
		return s
	}
	return written(string(l))
}

// written returns the IRI of a locator: a space is escaped, and what has other characters that no IRI has (RDF 1.1
// Turtle §6.5, IRIREF) is given in hexadecimal digits. So is what would be read as the locator of its digits.
func written(l string) string {
	if strings.ContainsAny(l, "<>\"{}|^`\\") || unescaped(l) != "" {
		return locatorNS + hex.EncodeToString([]byte(l))
	}
	return iri.Escape(l)
}

// changed are datatypes whose values topic maps bring into another form, and those that stand for them there.
var changed = map[string]string{
	tmdm.XSDAnyURI:  datatypeNS + "anyURI",
	tmdm.XSDAnyType: datatypeNS + "anyType",
}

// datatypeOf returns the datatype in a topic map of a literal, whose value stays as it is.
func datatypeOf(l rdf.Term) string {
	if l.Datatype == tmdm.XSDAnyURI {
		if normal, err := iri.Normalize(l.Value); err == nil && normal == l.Value {
			return l.Datatype
		}
	}
	if kept, ok := changed[l.Datatype]; ok {
		return kept
	}
	return string(locatorOf(l.Datatype))
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

// isText reports whether a term is a literal that can be a name.
func isText(t rdf.Term) bool {
	return t.Kind == rdf.Literal && (t.Language != "" || t.Datatype == rdf.String)
}
