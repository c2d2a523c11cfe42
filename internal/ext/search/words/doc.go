// Package words finds topics by name: it folds text, cuts it into words, indexes topics by word, and ranks matches.
//
// The index is kept for each source and updated with each change of its topics. An entry is a rank, a word and a topic.
// A load of a whole source writes consecutive entries into blocks: rows with many entries. A commit writes a row for
// each added entry, and one for each removed entry of a block. So the cost of a commit is proportional to its changes,
// and a load writes a row for some hundred entries.
package words
