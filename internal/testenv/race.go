//go:build race

package testenv

// Race states whether the race detector is on, which needs several times the time and the memory.
const Race = true
