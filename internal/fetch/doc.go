// Package fetch gets documents over HTTP from servers that nobody vouches for.
// Whatever the project reads of other servers comes through it.
//
// A [Fetcher] says how: how long it waits, and to which hosts links may lead
// ([Fetcher.From]). [Do] fetches one document and reads it, again after a while
// where that may help; what it cannot have is an [*Error]. A [Download] fetches
// a large one to a file, and goes on where it was interrupted. [BearerFrom] shows a
// token to one server alone.
//
// Answers are bounded in bytes, unpacked, and in time (body.go), and unpacked
// where they are packed (coding.go). The package knows nothing of what it fetches,
// but for when it was made (made.go).
package fetch
