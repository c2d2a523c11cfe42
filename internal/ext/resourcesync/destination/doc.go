// Package destination follows a set of resources of a Source of ResourceSync (ANSI/NISO Z39.99):
// where its documents are (discover.go), all there is (lists.go), what has changed (changes.go),
// and packages with the content (dumps.go, packages.go).
package destination
