// Package rendered says in which forms fragments, records and snapshots are available, and has the digests of their
// bytes.
package rendered
