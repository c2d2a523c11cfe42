// Package past remembers what the rows of a source were, and reads them as they were.
//
// A commit has a number: the sequence of the last entry of the log that it leads to. With it go two kinds of rows. One
// has, for each row that the commit has changed, what that was before. The other lists the keys of these rows.
// [Recorder] writes both. [Reader] shows the rows as they were after any commit whose successors are remembered: so all
// that reads records reads those of the past as well.
package past
