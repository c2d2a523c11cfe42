// Package words finds topics by name: how text is folded and cut into words, under which words a topic stands in an
// index, and how well it fits what somebody looks for.
//
// The index is kept for each source, in each change of its topics. An entry is a rank, a word and a topic. A load of a
// source as a whole writes entries that follow each other into blocks: rows with many of them. A commit writes a row
// for each entry that comes, and one for each entry of a block that goes. So a commit costs what it changes, and a load
// a row for some hundred entries.
package words
