// Package rendered defines the forms of fragments, records and snapshots, and the digests of their bytes.
package rendered
