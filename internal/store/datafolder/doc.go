// Package datafolder manages the folder of a node: its identity, its lock, and its completeness.
//
// The folder has an [Identity] in a file, the database of an engine in [Database], and the store's files in [Snapshots]
// and [Scratch]. [Lock] checks the folder before any change, and refuses a damaged one. Only the store interprets the
// rows.
package datafolder
