package collections

import (
	"fmt"
	"time"
)

// Period is a time.Duration that JSON has as text: "36h", "15m".
type Period time.Duration

// MarshalText implements encoding.TextMarshaler.
func (p Period) MarshalText() ([]byte, error) { return []byte(time.Duration(p).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Period) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is no length of time such as \"36h\" or \"15m\"", b)
	}
	*p = Period(d)
	return nil
}
