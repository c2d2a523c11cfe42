package follow

import (
	"fmt"
	"time"
)

// DoubtError says that a reading is doubted, and nothing of it was applied. The next right reading ends that, without a
// command.
type DoubtError struct{ *Doubt }

func (e *DoubtError) Error() string { return e.Doubt.String() }

// String says what is doubted, for people, and when it will be believed.
func (d *Doubt) String() string {
	text := fmt.Sprintf("in doubt since %s: %s", d.First.UTC().Format(time.RFC3339), d.Reason)
	if d.Lost > 0 && d.Loss != LossRecords && d.Loss != LossMany { // whose reasons say it
		text += fmt.Sprintf("; %d records would be removed or go back", d.Lost)
	}
	if d.Needed > 0 {
		text += fmt.Sprintf("; %d of %d readings, believed at the earliest at %s", min(d.N, d.Needed), d.Needed,
			d.Until.UTC().Format(time.RFC3339))
	}
	return text
}

// Advice says what a person can do about a doubt. with returns the command that does a round with a flag.
func (d *Doubt) Advice(with func(flag string) string) string {
	const stays = "What is there stays, and a right reading ends the doubt. "
	switch {
	case d.Loss == LossMany:
		return stays + "If it is right that this is gone: " + with("--max-delete all")
	case !d.Counted && d.Loss != LossRecords: // nothing was said that could be confirmed
		return stays + "The next rounds tell"
	}
	return stays + "If it is right that this is gone: " + with("--confirm")
}
