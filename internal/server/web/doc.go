// Package web is an HTTP server for any documents, independent of topic maps.
//
// A [Router] passes requests to a [Handler]. Its [Front] gives each request an id, a [Recorder] and time limits, turns
// errors into a [Problem], logs and counts. Handlers choose a [Form] by [Choose], and answer through [Answers] or
// [WriteKept], which implement conditions, codings and ranges (RFC 9110).
package web
