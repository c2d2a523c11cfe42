// Package destination follows a set of resources of a Source of ResourceSync (ANSI/NISO Z39.99): it discovers its
// documents (discover.go), and reads the lists of resources (lists.go), of changes (changes.go), and packages with the
// content (dumps.go, packages.go).
package destination
