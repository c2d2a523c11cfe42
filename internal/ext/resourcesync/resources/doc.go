// Package resources makes the documents and packages of a ResourceSync Source
// (ANSI/NISO Z39.99) of a collection, and keeps as files those that never change.
//
// The resources are the live topics of a collection. A [Set] is all that says what there
// was at one moment: Resource Lists and a Resource Dump. A [Part] is a closed change list,
// with the package of a Change Dump. Both are folders that show when they are complete, and
// never change. What does change is small, and is made when it is asked for: see
// [Source].
package resources
