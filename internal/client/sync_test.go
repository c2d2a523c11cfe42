package client_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func TestFirstRoundLoadsTheSnapshotAndWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	next := append(topics(5, "v1")[:3], topic("t3", "changed"), topic("t9", "new")) // without t4
	last := o.Put(doc(next...))
	s := subscribed(t, o)
	o.Seen()

	r := s.sync()
	assert.True(t, r.CleanStart)
	assert.Empty(t, r.Reason)
	assert.Equal(t, 3, r.Entries)
	assert.Equal(t, 3, r.Applied)
	assert.Equal(t, last.LastChange, feeds.FormatTime(r.Mark), "the mark is the server's time")
	s.has(o, doc(next...))

	seen := o.Seen()
	assert.Equal(t, 3, fragments(seen))
	assert.Equal(t, 1, times(seen, "/egov/snapshots/"), "one snapshot, in one form")
	assert.Len(t, seen, 3+4, "%s", seen)
	assert.Contains(t, s.reported(), "egov: loading the snapshot of ")
}

func TestSecondRoundAppliesOnlyWhatHasChanged(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(20, "v1")...))
	s := inStep(t, o)
	next := append(topics(20, "v1")[:18], topic("t18", "changed")) // without t19
	last := o.Put(doc(next...))

	r := s.sync()
	assert.Equal(t, client.Round{Name: "egov", Entries: 2, Applied: 2, Mark: r.Mark, Proven: true}, *r)
	assert.Equal(t, last.LastChange, feeds.FormatTime(r.Mark))
	s.has(o, doc(next...))
	seen := o.Seen()
	assert.Equal(t, "/egov/fragments (if changed)", seen[0])
	assert.Equal(t, 2, fragments(seen))
	assert.Len(t, seen, 3, "%s", seen)
}

func TestRoundWithoutNewsIsOneConditionalRequest(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	for range 2 {
		r := s.sync()
		assert.Equal(t, client.Round{Name: "egov", Mark: r.Mark, Proven: true}, *r)
		assert.Equal(t, []string{"/egov/fragments (if changed)"}, o.Seen())
	}
	o.Put(doc(topics(5, "v2")...))
	s.sync()
	o.Seen()
	s.sync()
	assert.Equal(t, []string{"/egov/fragments (if changed)"}, o.Seen())
	assert.False(t, s.known("egov").LastCheck.Before(s.known("egov").LastChange))
}

// The server's clock is decades behind, the client's ahead.
func TestMarkIsTheServersTime(t *testing.T) {
	t.Parallel()
	now := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)
	o := publishing(t, doc(topics(3, "v1")...), func(c *server.Config) { c.Now = func() time.Time { return now } })
	s := inStep(t, o, func(c *client.Config) { c.Now = func() time.Time { return now.AddDate(200, 0, 0) } })
	for i := range 3 {
		o.Put(doc(topics(3, fmt.Sprint(i))...))
		r := s.sync()
		assert.Equal(t, 3, r.Applied)
		assert.Equal(t, 1999, r.Mark.Year())
		s.has(o, doc(topics(3, fmt.Sprint(i))...))
	}
	assert.Equal(t, 2199, s.known("egov").LastChange.Year())
}

func TestRoundReadsBackThroughTheArchiveAsFarAsNeeded(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(30, "v1")...), documentSize(4)) // 31 entries, with the type of all names: 7 closed documents, 3 entries in the open one
	s := inStep(t, o, singly)
	o.Put(doc(append(topics(10, "v2"), topics(30, "v1")[10:]...)...)) // 10 more entries: 10 closed documents
	r := s.sync()
	assert.Equal(t, 10, r.Applied)
	s.has(o, doc(append(topics(10, "v2"), topics(30, "v1")[10:]...)...))
	seen := o.Seen()
	// From the open document, the 11th, to the 8th, which has the mark.
	assert.Equal(t, 3, times(seen, "/archive/"), "%s", seen)
	assert.Len(t, seen, 1+3+10, "%s", seen)

	s.sync()
	assert.Equal(t, []string{"/egov/fragments (if changed)"}, o.Seen())
}

func TestBatchesOfAnySizeGiveTheSame(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	for _, batch := range []int{1, 3, 1000} {
		o := publishing(t, doc(topics(8, "v1")...), documentSize(3))
		s := inStep(t, o, func(c *client.Config) { c.Batch, c.Parallel = batch, 2 })
		o.Put(doc(topics(8, "v2")...))
		o.Put(doc(append(topics(8, "v2")[:5], topics(3, "v3")[2])...))
		r := s.sync()
		assert.Equal(t, 12, r.Entries)
		s.has(o, doc(append(topics(8, "v2")[:5], topics(3, "v3")[2])...))
	}
}

func TestOnlyTheLastOfSeveralEntriesOfATopicIsFetched(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o, singly)
	for i := range 5 {
		o.Put(doc(append(topics(3, "v1")[:2], topic("t2", fmt.Sprint("change ", i)))...))
	}
	o.Put(doc(append(topics(1, "last"), topic("t1", "last"), topic("t2", "change 4"))...))
	r := s.sync()
	assert.Equal(t, 7, r.Entries)
	assert.Equal(t, 3, r.Applied)
	assert.Equal(t, 3, fragments(o.Seen()))
	s.has(o, doc(topic("t0", "Topic 0 last"), topic("t1", "last"), topic("t2", "change 4")))
}

// What the server publishes while a round runs is applied by that round or by
// the next, and never lost.
func TestEntriesPublishedDuringARoundAreNotLost(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*http.Request) bool{
		"before the recent document":     isRecent,
		"between documents of the feed":  isArchive,
		"between feed and fragment":      isFragment,
		"between snapshots and snapshot": isSnapshot,
		"before the snapshots feed":      isSnapshots,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(9, "v1")...), documentSize(4))
			o.Put(doc(topics(9, "v2")...))
			s := subscribed(t, o)
			var once sync.Once
			o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if when(r) {
					once.Do(func() { o.Put(doc(topics(10, "v3")...)); o.TakeSnapshot() })
				}
				return false
			})
			s.sync()
			s.sync()
			s.has(o, doc(topics(10, "v3")...))
			o.Seen()
			s.sync()
			assert.Equal(t, []string{"/egov/fragments (if changed)"}, o.Seen())
		})
	}
}

func TestSourceWithoutASnapshotIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(30, "v1")...), documentSize(4))
	o.Put(doc(topics(29, "v2")...))
	o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, "/snapshots") {
			return false
		}
		_, body := record(real, r)
		before, rest, _ := strings.Cut(string(body), "<entry")
		_, after, _ := strings.Cut(rest, "</entry>")
		_, _ = w.Write([]byte(before + after))
		return true
	})
	s := subscribed(t, o)
	r := s.sync()
	assert.Equal(t, 31+30, r.Entries) // with the topic that is the type of all names
	assert.Equal(t, 31, r.Applied)
	assert.Contains(t, s.reported(), "egov: no snapshot; reading the feed from its beginning")
	s.has(o, doc(topics(29, "v2")...))
}

func TestReplaceLoadsTheNewestSnapshotAgain(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := inStep(t, o)
	o.Put(doc(topics(6, "v2")...))
	o.TakeSnapshot()
	o.Put(doc(topics(6, "v3")...))
	o.Seen()
	r, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.True(t, r.CleanStart)
	assert.Equal(t, "asked for", r.Reason)
	assert.Equal(t, 6, r.Applied)
	assert.Equal(t, 1, times(o.Seen(), "/egov/snapshots/"))
	s.has(o, doc(topics(6, "v3")...))
}

// A requested replacement loads everything, even if the feed's document is that of the last round.
func TestReplaceIsCompleteWhereNothingIsNew(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	o.Put(doc(topics(6, "v2")...))
	s := inStep(t, o)
	r, err := s.Replace(context.Background(), "egov")
	require.NoError(t, err)
	assert.Equal(t, 6, r.Applied)
	s.has(o, doc(topics(6, "v2")...))
}

// The state of its entry distinguishes a topic without statements from a deleted one.
func TestTopicWithIdentifiersOnlyIsNotTakenForDeleted(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := inStep(t, o)
	bare := doc(append(topics(2, "v1"), `<topic><subjectIdentifier href="http://psi.example.org/t2"/></topic>`)...)
	o.Put(bare)
	s.sync()
	s.has(o, bare)
	assert.Contains(t, s.export(formats.XTM21, false), si("t2"))
}

func TestRoundOfAnUnknownSubscriptionNamesTheOthers(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc())
	_, err := newSubscriber(t).Sync(context.Background(), "egov")
	assert.EqualError(t, err, `there is no subscription "egov"; there are none: subscribe to a URL first`)
	_, err = inStep(t, o).Sync(context.Background(), "egvo")
	assert.EqualError(t, err, `there is no subscription "egvo"; there are: egov`)
}

// The large map of the project, with all that XTM 1.0 can express.
func TestARealMapStaysInStep(t *testing.T) {
	t.Parallel()
	o := publishing(t, string(maps.EGov))
	s := inStep(t, o)
	s.has(o, string(maps.EGov))
	renamed := strings.Replace(string(maps.EGov), "<baseNameString>Occurrence</baseNameString>", "<baseNameString>Renamed</baseNameString>", 1)
	require.NotEqual(t, string(maps.EGov), renamed)
	o.Put(renamed)
	assert.Equal(t, 1, s.sync().Applied)
	s.has(o, renamed)
}
