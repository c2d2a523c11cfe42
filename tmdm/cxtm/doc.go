// Package cxtm writes topic maps in CXTM, the canonical form of ISO 13250-4:
// maps that are equal by the data model have the same bytes, and unequal ones
// have not. It serves tests and the comparison of published maps.
//
// A map must be free of duplicates before it is written: call
// [tmdm.TopicMap.Normalize] first, as readers of documents do. The package only
// reads the map.
package cxtm
