// Package publish makes entries of a change: a document is read, a change is decided by comparing
// it with what is published, and the change is committed. [Publisher.Publish] is the whole way,
// from top to bottom, for requests, files that are watched, and dry runs.
package publish
