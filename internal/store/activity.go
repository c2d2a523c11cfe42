package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
)

// Activity is what was done with a source at one time, for the people who look
// after a node. The last [maxActivities] are kept.
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

// ActivityKind says what was done.
type ActivityKind string

// The kinds of activities.
const (
	ActivityApplied      ActivityKind = "applied"     // entries were
	ActivityQuarantined  ActivityKind = "quarantined" // entries were, see [Quarantined]
	ActivityReleased     ActivityKind = "released"    // entries were applied after all, or superseded
	ActivityForgotten    ActivityKind = "forgotten"   // entries were taken out of quarantine
	ActivityReplaced     ActivityKind = "replaced"    // the source as a whole, by a snapshot
	ActivityEdited       ActivityKind = "edited"      // local statements were
	ActivitySubscribed   ActivityKind = "subscribed"
	ActivityUnsubscribed ActivityKind = "unsubscribed"
)

// maxActivities is how many activities are kept.
const maxActivities = 5000

const lastActivity = "last activity"

// Note keeps an activity together with the change that it tells of.
func (a *Applying) Note(activity Activity) error {
	activity.Source = a.subscription.Name
	return a.db.note(a.tx, activity)
}

func (db *DB) note(t *txn.Tx, a Activity) error {
	a.Time = db.now().UTC()
	number := uint64(1)
	b, err := t.Get(keys.Meta(lastActivity))
	if err != nil {
		return err
	}
	if len(b) == 8 {
		number = binary.BigEndian.Uint64(b) + 1
	}
	if err := t.Put(keys.Meta(lastActivity), binary.BigEndian.AppendUint64(nil, number)); err != nil {
		return err
	}
	if number > maxActivities {
		if err := t.Delete(activityKey(number - maxActivities)); err != nil {
			return err
		}
	}
	return t.PutJSON(activityKey(number), a)
}

func activityKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keys.TableActivity}, number)
}

// Activity calls f with the activities that are kept, the newest first, until it
// returns false.
func (db *DB) Activity(ctx context.Context, f func(Activity) bool) error {
	return db.rows.View(ctx, func(t *txn.Tx) error {
		b, err := t.Get(keys.Meta(lastActivity))
		if len(b) != 8 || err != nil {
			return err
		}
		last := binary.BigEndian.Uint64(b)
		for number := last; number > 0 && last-number < maxActivities; number-- {
			row, err := t.Get(activityKey(number))
			if row == nil || err != nil {
				return err
			}
			var a Activity
			if err := json.Unmarshal(row, &a); err != nil {
				return err
			}
			if !f(a) {
				return nil
			}
		}
		return nil
	})
}

// PublishLocal is Publish for local statements: it keeps an activity with it.
func (db *DB) PublishLocal(ctx context.Context, name string, decide func(Collection, merge.State) (*fragment.Change, error)) (*Collection, error) {
	return db.Publish(ctx, name, func(c Collection, state merge.State) (*fragment.Change, error) {
		change, err := decide(c, state)
		if err != nil || change.Empty() {
			return change, err
		}
		a := Activity{Source: name, Kind: ActivityEdited}
		for _, e := range change.Entries[:min(len(change.Entries), maxEntries)] {
			state := "live"
			if e.Deleted {
				state = "deleted"
			}
			a.Entries = append(a.Entries, ActivityEntry{TopicSI: string(e.TopicSI), Title: e.Title, State: state, Updated: db.now().UTC()})
		}
		if left := len(change.Entries) - len(a.Entries); left > 0 {
			a.Note = fmt.Sprintf("and %d more", left)
		}
		return change, db.note(state.(interface{ Tx() *txn.Tx }).Tx(), a)
	})
}

// maxEntries is how many entries an activity of local statements lists.
const maxEntries = 200
