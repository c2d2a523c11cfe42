// Package web is HTTP as such, for a server of any documents: what it does knows nothing of topic maps.
//
// A [Router] leads requests to each [Handler]. Its [Front] gives each request an id, a [Recorder] and limits on
// time, turns errors into a [Problem], logs and counts. Handlers choose a [Form] by [Choose], and answer through
// [Answers] or [WriteKept], which see to conditions, codings and ranges (RFC 9110).
package web
