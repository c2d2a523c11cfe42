// Package mapfile reads topic maps from files and writes them to files.
//
// A [Source] is a file, or standard input, in any version of XTM, gzipped or
// not. Its base is its own file URL unless another is given. Documents that a
// mergeMap names are opened below one folder only; nothing is fetched from the
// network. A [Target] is a file, or standard output, and a [Format]; a file
// appears when it is complete.
package mapfile
