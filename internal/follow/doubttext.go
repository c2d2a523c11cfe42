package follow

import (
	"fmt"
	"time"
)

// DoubtError is the error for a doubted reading, of which nothing was applied. The next right reading ends the doubt,
// without a command.
type DoubtError struct{ *Doubt }

func (e *DoubtError) Error() string { return e.Doubt.String() }

// String describes the doubt for people, and when it will be believed.
func (d *Doubt) String() string {
	text := fmt.Sprintf("in doubt since %s: %s", d.First.UTC().Format(time.RFC3339), d.Reason)
	if d.Lost > 0 && d.Loss != LossRecords && d.Loss != LossMany { // their reasons include it
		text += fmt.Sprintf("; %d records would be removed or go back", d.Lost)
	}
	if d.Needed > 0 {
		text += fmt.Sprintf("; %d of %d readings, believed at the earliest at %s", min(d.N, d.Needed), d.Needed,
			d.Until.UTC().Format(time.RFC3339))
	}
	return text
}

// Advice returns the remedy for a doubt. with returns the command for a round with a flag.
func (d *Doubt) Advice(with func(flag string) string) string {
	const stays = "What is there stays, and a right reading ends the doubt. "
	switch {
	case d.Loss == LossMany:
		return stays + "If it is right that this is gone: " + with("--max-delete all")
	case !d.Counted && d.Loss != LossRecords: // no statement could be confirmed
		return stays + "The next rounds tell"
	}
	return stays + "If it is right that this is gone: " + with("--confirm")
}
