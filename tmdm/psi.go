package tmdm

// Subject identifiers that ISO 13250-2 §7 (Core subject identifiers) defines.
const (
	PSITypeInstance     Locator = "http://psi.topicmaps.org/iso13250/model/type-instance"
	PSIType             Locator = "http://psi.topicmaps.org/iso13250/model/type"
	PSIInstance         Locator = "http://psi.topicmaps.org/iso13250/model/instance"
	PSISupertypeSubtype Locator = "http://psi.topicmaps.org/iso13250/model/supertype-subtype"
	PSISupertype        Locator = "http://psi.topicmaps.org/iso13250/model/supertype"
	PSISubtype          Locator = "http://psi.topicmaps.org/iso13250/model/subtype"
	PSIDefaultNameType  Locator = "http://psi.topicmaps.org/iso13250/model/topic-name"
	PSISort             Locator = "http://psi.topicmaps.org/iso13250/model/sort"
)

// Datatypes of ISO 13250-2 §4.4 (Datatypes) in use here.
const (
	XSDString  = "http://www.w3.org/2001/XMLSchema#string"
	XSDAnyURI  = "http://www.w3.org/2001/XMLSchema#anyURI"
	XSDAnyType = "http://www.w3.org/2001/XMLSchema#anyType"
	XSDInteger = "http://www.w3.org/2001/XMLSchema#integer"
	XSDDecimal = "http://www.w3.org/2001/XMLSchema#decimal"
)
