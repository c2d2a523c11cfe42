//go:build !race

package testenv

// Race says that the race detector is at work: all takes several times the time and the memory.
const Race = false
