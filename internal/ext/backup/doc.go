// Package backup makes backups of a data folder and restores them.
//
// A backup is a manifest and the chunks that it names: the rows of the database in the order of keys, and the files of
// snapshots, divided into pieces of some hundred kilobytes and packed with Zstandard (RFC 8878). The name of a chunk is
// the SHA-256 of its bytes, that of the manifest contains its own. The manifest completes a backup: it is written last,
// under a temporary name, synced and renamed.
//
// In a folder, backups share chunks. Keys determine where rows are divided, not a number of bytes, so that a change of
// the map leaves most chunks unchanged: the next backup writes only new chunks. Each backup there is complete by
// itself. A backup in a file is a tar archive of the same files (POSIX.1-1988, ustar): chunks, then the manifest.
package backup
