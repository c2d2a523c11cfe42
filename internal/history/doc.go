// Package history reads past states of a collection and the changes between them. The rows of a collection keep their
// former versions (package past), so a past state is read like the present one.
package history
