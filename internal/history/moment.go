package history

import (
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// TimeHelp is the syntax of a time for messages.
const TimeHelp = "write a time such as 2026-11-23T14:05:00Z or 2026-11-23T15:05:00+01:00; a date alone is its first " +
	"moment, in UTC"

// ParseTime parses a time of RFC 3339, and common variants: an unescaped + in a query, a blank between date and time, a
// date alone.
func ParseTime(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	if date := len(time.DateOnly); len(text) > date && text[date] == ' ' {
		text = text[:date] + "T" + text[date+1:]
	}
	t, err := feeds.ParseTime(strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		err = fmt.Errorf("%w; %s", err, TimeHelp)
	}
	return t, err
}

// ParseAgo is [ParseTime] on a command line: a duration such as 2h or 3d is a time before now, and today and yesterday
// are the first moments of these days, in UTC.
func ParseAgo(text string, now time.Time) (time.Time, error) {
	today := now.UTC().Truncate(24 * time.Hour)
	switch text {
	case "today":
		return today, nil
	case "yesterday":
		return today.AddDate(0, 0, -1), nil
	}
	if n, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 16); err == nil && strings.HasSuffix(text, "d") {
		return now.AddDate(0, 0, -int(n)), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 && text != "0" {
		return now.Add(-d), nil
	}
	return ParseTime(text)
}

// Moment is a state of a collection: the one after an entry, which is the last of its commit.
type Moment struct {
	Seq     uint64    // of the entry; 0: before the first one
	Updated time.Time // of the entry, or of the creation of the collection
}

// At returns the state at a time. After the last entry it is the present state. A commit counts from the time of its
// first entry on, because no part of it was ever visible. The error is [store.ErrGone] if the log is pruned beyond that
// time, and [store.ErrNotFound] if the collection did not exist yet.
func At(v *store.View, t time.Time) (Moment, error) {
	switch {
	case v.Horizon > 0 && t.Before(v.HorizonTime):
		return Moment{}, fmt.Errorf("%w: the history of %s before %s is pruned, and %s is before that",
			store.ErrGone, v.Name, feeds.FormatTime(v.HorizonTime), feeds.FormatTime(t))
	case t.Before(v.Created):
		return Moment{}, fmt.Errorf("%w: a state of %s at %s; the collection was created at %s",
			store.ErrNotFound, v.Name, feeds.FormatTime(t), feeds.FormatTime(v.Created))
	}
	later, err := search(v, v.Horizon, func(e *store.Entry) bool { return e.Updated.After(t) })
	if err != nil {
		return Moment{}, err
	}
	return AfterCommit(v, later-1)
}

// Asked is [At] for a time that somebody asks for. The answer must stay true: what is later than now, and than the last
// entry, is refused. A second is forgiven, as people and pages round times up to whole ones.
func Asked(v *store.View, t, now time.Time) (Moment, error) {
	if known := now.Add(time.Second); t.After(known) && t.After(v.Updated.Add(time.Second)) {
		return Moment{}, txn.Refuse(http.StatusBadRequest,
			"%s is in the future: by the clock of the server it is %s; give an earlier time, or none for what is now",
			feeds.FormatTime(t), feeds.FormatTime(now))
	}
	return At(v, t)
}

// Before returns the sequence of the last entry before a time; that of the horizon if none is stored.
func Before(v *store.View, t time.Time) (uint64, error) {
	first, err := search(v, v.Horizon, func(e *store.Entry) bool { return !e.Updated.Before(t) })
	return first - 1, err
}

// BeforeCommit returns the state before the commit that the entry with a sequence belongs to. The error is
// [store.ErrGone] if the log is pruned beyond that.
func BeforeCommit(v *store.View, seq uint64) (Moment, error) {
	commit, err := v.CommitOf(seq)
	if err != nil || commit == 0 {
		return Moment{0, v.Created}, err
	}
	before, err := v.CommitBefore(commit)
	if err != nil {
		return Moment{}, err
	}
	m, err := AfterCommit(v, max(before, v.Horizon))
	if err == nil && m.Seq >= commit { // the log is pruned within the commit
		err = fmt.Errorf("%w: the history of %s before %s is pruned", store.ErrGone, v.Name, feeds.FormatTime(v.HorizonTime))
	}
	return m, err
}

// Now returns the present state.
func Now(v *store.View) Moment { return Moment{v.Head, v.Updated} }

// First returns the first state that can be looked at: the one after the first commit, or, where the log is pruned,
// that at the horizon. A replica has those from its beginning on.
func First(v *store.View) (Moment, error) {
	first := min(max(v.Horizon, 1), v.Head)
	if v.Replica != nil {
		first = max(first, v.Remembered)
	}
	return AfterCommit(v, first)
}

// AfterCommit returns the state after the commit that the entry with a sequence belongs to.
func AfterCommit(v *store.View, seq uint64) (Moment, error) {
	seq, err := v.CommitOf(seq)
	if err != nil {
		return Moment{}, err
	}
	switch seq {
	case 0:
		return Moment{0, v.Created}, nil
	case v.Horizon:
		return Moment{seq, v.HorizonTime}, nil
	case v.Head:
		return Now(v), nil
	}
	e, err := v.Entry(seq)
	if err != nil {
		return Moment{}, err
	}
	return Moment{seq, e.Updated}, nil
}

// search returns the sequence of the first entry later than after for which f is true, or one more than the last. f
// must be true for all later ones, too.
func search(v *store.View, after uint64, f func(*store.Entry) bool) (seq uint64, failed error) {
	i := sort.Search(int(v.Head-after), func(i int) bool {
		if failed != nil {
			return true
		}
		e, err := v.Entry(after + 1 + uint64(i))
		if err != nil {
			failed = err
			return true
		}
		return f(e)
	})
	return after + 1 + uint64(i), failed
}
