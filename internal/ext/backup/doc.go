// Package backup makes backups of a data folder and restores them.
//
// A backup is a manifest and the chunks that it names: the rows of the database in the order
// of keys, and the files of snapshots, cut into pieces of some hundred kilobytes and packed with
// Zstandard (RFC 8878). A chunk is named by the SHA-256 of its bytes, the manifest has that of
// its own in its name. A backup is there when its manifest is: that is written last, under a
// temporary name, synced and renamed.
//
// In a folder, backups share chunks. Rows are cut where their keys say so, not after a number
// of bytes, so that a change of the map leaves most chunks as they are: the next backup
// writes only those that are new. Each backup there is complete by itself. A backup in a file
// is a tar archive of the same (POSIX.1-1988, ustar): chunks, then the manifest.
package backup
