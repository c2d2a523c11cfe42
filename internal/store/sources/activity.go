package sources

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Activity is an activity of a source at one time, for operators. The last [MaxActivities] are kept.
type Activity struct {
	Time    time.Time       `json:"time"` // by this node's clock
	Source  string          `json:"source"`
	Kind    ActivityKind    `json:"kind"`
	Entries []ActivityEntry `json:"entries,omitempty"`
	Note    string          `json:"note,omitempty"` // a URL, or a reason
}

// ActivityEntry is an entry of a feed in an activity.
type ActivityEntry struct {
	TopicSI string    `json:"topicSI"`
	Title   string    `json:"title,omitempty"`
	State   string    `json:"state,omitempty"`
	Updated time.Time `json:"updated"` // the server's time
	Error   string    `json:"error,omitempty"`
}

// ActivityKind is the kind of an activity.
type ActivityKind string

// The kinds of activities.
const (
	ActivityApplied     ActivityKind = "applied"     // entries were
	ActivityQuarantined ActivityKind = "quarantined" // entries were, see [Quarantined]
	ActivityReleased    ActivityKind = "released"    // entries were applied after all, or superseded
	ActivityForgotten   ActivityKind = "forgotten"   // entries were taken out of quarantine
	ActivityReplaced    ActivityKind = "replaced"    // the source as a whole, by a snapshot
	ActivityRepaired    ActivityKind = "repaired"    // topics that were not as the source states, fetched anew
	// damaged rows: derived ones were made again, unreadable records removed
	ActivityMended       ActivityKind = "mended"
	ActivityEdited       ActivityKind = "edited"     // local statements were
	ActivityRejected     ActivityKind = "rejected"   // claims were, in the merged view
	ActivityUnrejected   ActivityKind = "unrejected" // claims that were rejected show again
	ActivityMoved        ActivityKind = "moved"      // the source is followed at another address
	ActivitySubscribed   ActivityKind = "subscribed"
	ActivityUnsubscribed ActivityKind = "unsubscribed"
)

// MaxActivities is the number of activities that are kept.
const MaxActivities = 5000

var lastActivity = keys.Source{Number: keys.Activities}.Key(keys.TableMeta)

// Note stores an activity with the change that it describes.
func (a *Applying) Note(activity Activity) error {
	activity.Source = a.subscription.Name
	return a.st.Note(a.tx, activity)
}

// Note keeps an activity with a change.
func (st *Store) Note(t *txn.Tx, a Activity) error {
	a.Time = st.now().UTC()
	number := uint64(1)
	b, err := t.Get(lastActivity)
	if err != nil {
		return err
	}
	if len(b) == 8 {
		number = binary.BigEndian.Uint64(b) + 1
	}
	if err := t.Put(lastActivity, binary.BigEndian.AppendUint64(nil, number)); err != nil {
		return err
	}
	if number > MaxActivities {
		if err := t.Delete(activityKey(number - MaxActivities)); err != nil {
			return err
		}
	}
	return t.PutJSON(activityKey(number), a)
}

func activityKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(keys.Once(keys.TableActivity), number)
}

// Activity calls f with the activities that are kept, the newest first, until it
// returns false.
func (st *Store) Activity(ctx context.Context, f func(Activity) bool) error {
	return st.rows.View(ctx, func(t *txn.Tx) error {
		b, err := t.Get(lastActivity)
		if len(b) != 8 || err != nil {
			return err
		}
		last := binary.BigEndian.Uint64(b)
		for number := last; number > 0 && last-number < MaxActivities; number-- {
			var a Activity
			if there, err := t.GetJSON(activityKey(number), &a); !there || err != nil || !f(a) {
				return err
			}
		}
		return nil
	})
}
