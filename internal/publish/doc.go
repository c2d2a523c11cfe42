// Package publish publishes changes: it reads a document, compares it with the published state, and commits the change.
// [Publisher.Publish] does this for requests, watched files, and dry runs.
package publish
