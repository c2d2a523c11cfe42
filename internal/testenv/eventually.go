package testenv

import (
	"testing"
	"time"
)

// hung is how long a condition is waited for. It is no claim about speed: it only ends a test that hangs.
const hung = 5 * time.Minute

// Eventually waits until a condition holds, and ends the test if that does not happen for minutes. It
// looks again after a pause that grows, from the goroutine of the test, so that holds may end the test.
func Eventually(t testing.TB, holds func() bool, what ...any) {
	t.Helper()
	begun := time.Now()
	for pause := time.Millisecond; !holds(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Since(begun) > hung {
			t.Fatal(append([]any{"the condition does not hold after", hung}, what...)...)
		}
		time.Sleep(pause)
	}
}
