package texts

// Relation is a property of RDF, or a type of associations, with its titles from the point of view of its subject and
// of its object. If that of the object is empty, both are the same.
type Relation struct {
	Property string
	Title    Text
	Inverse  string // the inverse property; "": none is known; or the property itself
	Of       Text
}

// SKOS is the namespace of the vocabulary.
const SKOS = "http://www.w3.org/2004/02/skos/core#"

const (
	skos    = SKOS
	dcterms = "http://purl.org/dc/terms/"
	rdfs    = "http://www.w3.org/2000/01/rdf-schema#"
	owl     = "http://www.w3.org/2002/07/owl#"
	iso     = "http://psi.topicmaps.org/iso13250/model/"
)

// Relations are the properties that have titles in the texts. The inverse properties are those of the SKOS reference
// (S8, S23, S25, S26, S43 and S44), of DCMI terms, and of OWL 2.
var Relations = []Relation{
	{skos + "broader", Broader, skos + "narrower", Narrower},
	{skos + "broaderTransitive", "Broader, at any distance", skos + "narrowerTransitive", "Narrower, at any distance"},
	{skos + "related", Related, skos + "related", ""},
	{dcterms + "isPartOf", PartOf, dcterms + "hasPart", Parts},
	{skos + "member", Members, "", MemberOf},
	{skos + "topConceptOf", TopConceptOf, skos + "hasTopConcept", TopConcepts},
	{skos + "inScheme", InScheme, "", InThisScheme},
	{skos + "exactMatch", ExactMatch, skos + "exactMatch", ""},
	{skos + "closeMatch", CloseMatch, skos + "closeMatch", ""},
	{skos + "broadMatch", BroadMatch, skos + "narrowMatch", NarrowMatch},
	{skos + "relatedMatch", RelatedMatch, skos + "relatedMatch", ""},
	{dcterms + "replaces", "Replaces", dcterms + "isReplacedBy", "Replaced by"},
	{dcterms + "isVersionOf", "Version of", dcterms + "hasVersion", "Versions"},
	{dcterms + "isFormatOf", "Another format of", dcterms + "hasFormat", "In other formats"},
	{dcterms + "references", "Refers to", dcterms + "isReferencedBy", "Referred to by"},
	{dcterms + "requires", "Requires", dcterms + "isRequiredBy", "Required by"},
	{iso + "supertype-subtype", "Supertypes", rdfs + "subClassOf", "Subtypes"},
	{rdfs + "subPropertyOf", "Subproperty of", "", "Subproperties"},
	{rdfs + "isDefinedBy", "Defined by", "", "Defines"},
	{rdfs + "seeAlso", "See also", "", "Seen also from"},
	{owl + "inverseOf", "Inverse of", owl + "inverseOf", ""},
	{owl + "sameAs", "Same as", owl + "sameAs", ""},
	{owl + "differentFrom", "Different from", owl + "differentFrom", ""},
	{owl + "equivalentClass", "Equivalent class", owl + "equivalentClass", ""},
	{owl + "equivalentProperty", "Equivalent property", owl + "equivalentProperty", ""},
	{owl + "disjointWith", "Disjoint with", owl + "disjointWith", ""},
}

// The words of the relations that pages have first.
const (
	Broader      Text = "Broader"
	Narrower     Text = "Narrower"
	Related      Text = "Related"
	PartOf       Text = "Part of"
	Parts        Text = "Parts"
	MemberOf     Text = "Member of"
	Members      Text = "Members"
	TopConceptOf Text = "Top concept of"
	TopConcepts  Text = "Top concepts"
	InScheme     Text = "In scheme"
	InThisScheme Text = "Concepts in this scheme"
	ExactMatch   Text = "Same as (exact match)"
	CloseMatch   Text = "Close match"
	BroadMatch   Text = "Broad match"
	NarrowMatch  Text = "Narrow match"
	RelatedMatch Text = "Related match"

	IsOf Text = "is %s of" // what the object of a property is to its subject, where the inverse is not known
)

// FirstRelations are those words in the order in which pages have them. All others follow by word.
var FirstRelations = []Text{Broader, Narrower, Related, PartOf, MemberOf, TopConceptOf, InScheme, Parts, Members,
	TopConcepts, InThisScheme, ExactMatch, CloseMatch, BroadMatch, NarrowMatch, RelatedMatch}
