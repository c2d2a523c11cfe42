// Package store keeps a node's topic maps on disk, as the rows of an engine (package kv), and snapshots as files.
//
// A source (a published map, or one subscription) is a set of records under a
// number and a generation; see package fragment for what a record is. A
// [Collection] is a published source with its change log; a [Subscription] is a
// source that follows another server's collection.
//
// Every write is one update of package txn: it collects its changes over a snapshot of the database and commits them at
// once, unless another commit conflicts. A crash leaves the state before or after, never between. A whole map is loaded
// into a new generation ([DB.StageSource]) that one small commit switches to.
//
// The layout of the rows is in package keys. Package records has the records of sources, package sources the
// subscriptions, and package rendered the bytes of fragments. Package datafolder manages the folder with all of it.
package store
