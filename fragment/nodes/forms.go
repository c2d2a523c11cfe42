package nodes

import "github.com/tmshare/tmshare/fragment"

// Namespaces.
const (
	rdf    = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
	owl    = "http://www.w3.org/2002/07/owl#"
	xsd    = "http://www.w3.org/2001/XMLSchema#"
	skosXL = "http://www.w3.org/2008/05/skos-xl#"
	model  = "http://psi.topicmaps.org/iso13250/model/"
)

// restrictions are the kinds of them (OWL 2 Web Ontology Language: Manchester Syntax §2.4, Descriptions).
var restrictions = []struct {
	property fragment.Ref
	words    string
}{
	{owl + "someValuesFrom", " some "},
	{owl + "allValuesFrom", " only "},
	{owl + "hasValue", " value "},
	{owl + "hasSelf", " Self"},
	{owl + "minCardinality", " min "},
	{owl + "maxCardinality", " max "},
	{owl + "cardinality", " exactly "},
	{owl + "minQualifiedCardinality", " min "},
	{owl + "maxQualifiedCardinality", " max "},
	{owl + "qualifiedCardinality", " exactly "},
}

// forms are the properties that determine the form of a node, and their words: before the value, and between the
// members of a list.
var forms = []struct {
	property               fragment.Ref
	before, between, after string
}{
	{owl + "unionOf", "", " or ", ""},
	{owl + "intersectionOf", "", " and ", ""},
	{owl + "oneOf", "{", ", ", "}"},
	{owl + "complementOf", "not ", "", ""},
	{owl + "datatypeComplementOf", "not ", "", ""},
	{owl + "inverseOf", "inverse ", "", ""},
	{xsd + "minInclusive", ">= ", "", ""},
	{xsd + "maxInclusive", "<= ", "", ""},
	{xsd + "minExclusive", "> ", "", ""},
	{xsd + "maxExclusive", "< ", "", ""},
	{xsd + "length", "length ", "", ""},
	{xsd + "minLength", "minLength ", "", ""},
	{xsd + "maxLength", "maxLength ", "", ""},
	{xsd + "pattern", "pattern ", "", ""},
	{rdf + "langRange", "langRange ", "", ""},
	{skosXL + "literalForm", "", "", ""},
	{rdf + "value", "", "", ""},
}

// obvious are the types that the form of a node implies.
var obvious = map[fragment.Ref]bool{
	rdf + "List": true, owl + "Class": true, owl + "Restriction": true, owl + "DataRange": true, skosXL + "Label": true,
	"http://www.w3.org/2000/01/rdf-schema#Class": true, "http://www.w3.org/2000/01/rdf-schema#Datatype": true,
}
