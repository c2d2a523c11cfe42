// Package formats reads topic maps from files and writes them to files.
//
// A [Format] can be read, written, or both; a [Registry] lists those of a program. A [Source] is a file, or standard
// input, in a readable format, gzipped or not. Its base is its own file URL unless another is given. Documents that a
// mergeMap names are opened below one folder only; nothing is fetched from the network. A [Target] is a file, or
// standard output; a file appears when it is complete.
package formats
