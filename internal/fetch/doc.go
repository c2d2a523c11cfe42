// Package fetch gets documents over HTTP from servers that are not trusted. All requests of the project to other
// servers use it.
//
// A [Fetcher] has the settings: how long it waits, and to which hosts links may lead ([Fetcher.From]). [Do] fetches one
// document and reads it, with retries if these may help; a failure is an [*Error]. A [Download] fetches a large one to
// a file, and continues after an interruption. [BearerFrom] sends a token to one server only.
//
// Answers are bounded in unpacked bytes and in time (body.go), and unpacked if necessary (coding.go). The package does
// not depend on the content, but determines when it was made (made.go).
package fetch
