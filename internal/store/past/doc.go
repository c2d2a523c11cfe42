// Package past stores former versions of a source's rows, and reads them.
//
// A commit has a number: the sequence of the last entry of the log that it leads to. It has two kinds of rows. One has,
// for each changed row, its version before. The other lists the keys of these rows. [Recorder] writes both. [Reader]
// reads the rows after any commit whose successors are stored: so all code that reads records also reads those of the
// past.
package past
