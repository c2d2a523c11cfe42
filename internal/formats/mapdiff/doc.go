// Package mapdiff compares two topic maps, topic by topic.
//
// Topics of the two maps are paired first: by subject identifiers and subject locators, and those without by their
// statements and by their item identifiers. Then the statements about the topics of each pair are compared, with other
// topics named by their pairs. Item identifiers are no part of that: they say where something stands in a document, not
// what it says. So maps are equal here when their canonical forms (ISO 13250-4) without item identifiers are.
package mapdiff
