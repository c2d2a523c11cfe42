// Package patch makes and applies patches of XML documents: documents of RFC 7351 (A Media
// Type for XML Patch Operations), whose operations are those of RFC 5261 (XML Patch Operations
// Framework Utilizing XPath Selectors).
//
// It works on bytes. A document is a root element that contains elements separated by white space, and so do these,
// down to a useful depth: an element with any other content is compared and replaced as a whole. So the result of a
// patch is the new document byte for byte, and a processor that works on trees gets the same tree.
package patch

import "errors"

// MediaType is that of patches (RFC 7351 §5, IANA Considerations).
const MediaType = "application/xml-patch+xml"

// namespace is that of the elements of patches (RFC 7351 §2, Patch Documents).
const namespace = "urn:ietf:rfc:7351"

// ErrNone is the error for documents whose difference [Make] cannot express: outside of the root element, in its tag,
// or in text between elements.
var ErrNone = errors.New("no patch leads from the one document to the other")

// The limits of a patch and its cost. The result needs no limit: it is at most as long as the document and the patch.
const (
	maxOperations = 10_000
	maxDepth      = 6           // steps of a selector below the root
	maxMoves      = 100_000_000 // elements that are moved to make space for others, in all
)
