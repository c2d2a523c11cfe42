// Package upkeep looks after the collections of a store while they are served: it takes the snapshots that are due,
// makes what ResourceSync offers, gives up the history that need not be kept, publishes records again that are
// offered in other formats, and knows when each collection was last changed.
package upkeep
