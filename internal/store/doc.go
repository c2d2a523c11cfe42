// Package store keeps a node's topic maps on disk, in one Badger database and,
// for snapshots, files beside it.
//
// A source (a published map, or one subscription) is a set of records under a
// number and a generation; see package fragment for what a record is. A
// [Collection] is a published source with its change log; a [Subscription] is a
// source that follows another server's collection.
//
// Every write is one [DB.update]: it collects its changes over a snapshot of the
// database and commits them at once, in a transaction, or, where they outgrow
// one, through a journal that is rolled forward when the database is opened. A
// crash leaves the state before or after, never between. A whole map is loaded
// into a new generation ([Loader]) that one small commit switches to.
//
// The layout of the keys is in keys.go; its version is [FormatVersion].
package store
