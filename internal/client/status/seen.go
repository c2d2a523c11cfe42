package status

import (
	"time"

	"github.com/tmshare/tmshare/internal/client"
)

// Seen holds the observations of a watcher about a source since its start.
type Seen struct {
	Running  bool             `json:"running"`             // a round is under way
	Progress *client.Progress `json:"progress,omitempty"`  // of it
	Next     time.Time        `json:"nextRound,omitzero"`  // when none is
	Took     float64          `json:"lastRoundSeconds"`    // the last one that ended
	Rounds   int64            `json:"rounds"`              // that ended, those that failed among them
	Failures int64            `json:"failedRounds"`        // rounds that failed
	InARow   int64            `json:"failedRoundsInARow"`  // the last ones
	Entries  int64            `json:"entriesSinceStart"`   // that the mark moved over
	Applied  int64            `json:"fragmentsSinceStart"` // applied for them
	Repaired int64            `json:"repaired"`            // topics that differed from the source
	// of the bodies of answers, unpacked where the transport unpacks
	Fetched int64 `json:"bytesSinceStart"`
}
