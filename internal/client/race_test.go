//go:build race

package client_test

// raceDetector says whether the tests run with the race detector.
const raceDetector = true
