// Package words keeps, for each source, an index of the words by which its topics are found. It follows from the
// records of the topics.
//
// An entry is a rank, a word and a topic (see [search.Entry]). Whoever loads a source as a whole writes entries that
// follow each other into blocks: rows with many of them. A commit writes a row for each entry that comes, and one for
// each entry of a block that goes. So a commit costs what it changes, and a load a row for some hundred entries.
package words
