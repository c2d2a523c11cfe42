// Package collections has what a node publishes, as rows: the collections, and the entries of their logs. It knows how
// entries are numbered, named and put into documents, and how they are read and written one by one. Package store says
// when.
package collections
