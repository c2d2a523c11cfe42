// Package folder keeps copies of the records of a source in a folder, a file for each. The
// folder is flat (names.go), or a mirror, laid out as URIs are (tree.go). [AuditMirror] compares
// a mirror with its source.
package folder
