// Package history looks back: at the states that a collection had and at what changed between them. The rows of a
// collection remember what they were (package past), so a state of the past is read like the present one.
package history
