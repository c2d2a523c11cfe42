// Package upkeep maintains the collections of a store while they are served: it takes due snapshots, runs the tasks of
// extensions, prunes history, republishes records whose offered formats have changed, and records the time of the last
// change of each collection.
package upkeep
