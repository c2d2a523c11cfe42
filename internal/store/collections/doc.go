// Package collections has the rows of a node's collections, and the entries of their logs: it numbers entries, names
// them, assigns them to documents, and reads and writes them singly. Package store calls it.
package collections
