// Package resources makes the documents and packages of a ResourceSync Source (ANSI/NISO Z39.99) of a collection, and
// stores those that never change as files.
//
// The resources are the live topics of a collection. A [Set] describes the state at one moment: Resource Lists and a
// Resource Dump. A [Part] is a closed change list, with the package of a Change Dump. Both are groups of files that are
// marked when complete, and never change. Documents that change are small, and made on request: see [Source].
package resources
