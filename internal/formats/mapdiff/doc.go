// Package mapdiff compares two topic maps, topic by topic.
//
// It pairs topics of the two maps first: by subject identifiers and subject locators, and those without by their
// statements and by their item identifiers. Then it compares the statements about the topics of each pair, with other
// topics named by their pairs. It ignores item identifiers, which are positions in documents, not content. So maps are
// equal here if their canonical forms (ISO 13250-4) without item identifiers are.
package mapdiff
