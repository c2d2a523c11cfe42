package xtm

import "github.com/tmshare/tmshare/tmdm"

// Namespaces of the documents.
const (
	nsXTM1  = "http://www.topicmaps.org/xtm/1.0/"
	nsXTM2  = "http://www.topicmaps.org/xtm/" // 2.0 and 2.1
	nsXLink = "http://www.w3.org/1999/xlink"
	nsXML   = "http://www.w3.org/XML/1998/namespace"
)

// Published subjects of XTM 1.0 (its Published Subject Indicators) that are the defaults of a document. The data model
// has no successors for them.
const (
	PSIAssociation tmdm.Locator = core + "association" // type of untyped associations
	PSIOccurrence  tmdm.Locator = core + "occurrence"  // type of untyped occurrences
	PSIRole        tmdm.Locator = core + "role"        // type of roles without roleSpec
)

const core = "http://www.topicmaps.org/xtm/1.0/core.xtm#"

// successors are the subject identifiers that took the place of those of XTM
// 1.0 (ISO 13250-2 §7, Core subject identifiers).
var successors = map[tmdm.Locator]tmdm.Locator{
	core + "class-instance":      tmdm.PSITypeInstance,
	core + "class":               tmdm.PSIType,
	core + "instance":            tmdm.PSIInstance,
	core + "superclass-subclass": tmdm.PSISupertypeSubtype,
	core + "superclass":          tmdm.PSISupertype,
	core + "subclass":            tmdm.PSISubtype,
	core + "sort":                tmdm.PSISort,
}
