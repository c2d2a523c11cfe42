package server_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// A walker that checks the records of a map, in both forms, against each rule of Atom-PMH for producers. The expected
// state is not taken from the feeds: the current pool are the topics of the map, and the fragments feed shows what is
// pruned.

// The kinds of entries (Atom-PMH, Detecting entry type). Other entries determine whether one of a record is active or
// historical.
const (
	ofRecord   = "of a record"
	ofDeletion = "of a deletion"
)

// kindOf returns the kind of an entry by its content.
func kindOf(t testing.TB, e *served.Document) string {
	t.Helper()
	alternates := len(e.Hrefs("alternate")) + len(e.Hrefs(""))
	if alternates > 0 {
		require.Empty(t, e.Content, "an entry of a record shall not contain an atom:content element")
		return ofRecord
	}
	require.Len(t, e.Content, 1, "a deletion entry shall contain an atom:content element, and no other kind of entry has no alternate link")
	require.Empty(t, e.Content[0].Attributes, "that has no src attribute")
	require.Empty(t, e.Content[0].Inside, "and no content")
	return ofDeletion
}

// recordsWalker walks through the records of a map repeatedly, and keeps the parts that must not change.
type recordsWalker struct {
	*node
	name    string
	formats []string // media types in which all records must be offered now; nil: not known

	ids     map[string]string // record → its identifier, for life
	records map[string]string // identifier → its record

	// Of one history, which ends when the collection is deleted:
	pool     map[string]string          // record → name, when last looked at
	known    map[string]served.Document // id and time → the entry
	ever     map[string]bool            // records that were in the pool
	finished map[string]served.Answer   // documents that may be kept for ever, by their URLs
	feedIDs  []string

	complete served.Answer   // as it was when last looked at
	pruned   map[string]bool // documents that have lost entries
}

func walkRecords(n *node, name string) *recordsWalker {
	w := &recordsWalker{node: n, name: name, formats: []string{served.XTM1Type, served.XTM21Type}, ids: map[string]string{}, records: map[string]string{}, pruned: map[string]bool{}}
	w.begin()
	return w
}

// begin forgets the history: another begins.
func (w *recordsWalker) begin() {
	w.pool, w.known, w.ever, w.finished = map[string]string{}, map[string]served.Document{}, map[string]bool{}, map[string]served.Answer{}
	w.feedIDs = nil
}

// currentPool returns the names of each present topic, by TopicSI.
func (n *node) currentPool(name string) map[string]string {
	n.T.Helper()
	var tm struct {
		Topics []struct {
			Identifiers []struct {
				Href string `xml:"href,attr"`
			} `xml:"subjectIdentifier"`
			Names []string `xml:"name>value"`
		} `xml:"topic"`
	}
	require.NoError(n.T, xml.Unmarshal(n.MustGet("/topicmaps/"+name+"/snapshots/current.xtm21").Bytes, &tm))
	pool := map[string]string{}
	for _, topic := range tm.Topics {
		require.NotEmpty(n.T, topic.Identifiers)
		slices.Sort(topic.Names)
		pool[topic.Identifiers[0].Href] = strings.Join(topic.Names, ", ")
	}
	require.Len(n.T, pool, len(tm.Topics))
	return pool
}

// get1 gets a feed document once.
func (w *recordsWalker) get1(url string) (*served.Document, served.Answer) {
	w.T.Helper()
	a := w.MustGet(url)
	d := served.ParseAtom(w.T, a)
	require.Equal(w.T, "feed", d.XMLName.Local)
	return d, a
}

// check checks both forms after at most one event since the last check.
func (w *recordsWalker) check() {
	w.T.Helper()
	pool := w.currentPool(w.name)
	for record := range pool {
		w.ever[record] = true
	}
	recent, entries := w.checkArchived()
	active := w.checkEntries(entries, pool)
	w.checkEvents(entries, pool)
	w.checkComplete(recent, active)
	w.pool = pool
}

// checkArchived walks through the archived form, and returns its subscription document and
// all entries of the logical feed, the newest first.
func (w *recordsWalker) checkArchived() (recent *served.Document, entries []served.Document) {
	t, feed := w.T, w.URL("/topicmaps/"+w.name+"/records")
	t.Helper()
	recent, a := w.get1(feed)
	assert.Equal(t, shortly, a.Header.Get("Cache-Control"))
	assert.Equal(t, feed, recent.Link(t, "self"))
	assert.Equal(t, feed, recent.Link(t, "current"), "it is suggested that all subscription documents include a current link")
	assert.Empty(t, recent.Archive)
	assert.Empty(t, recent.Hrefs("next-archive"))
	open, _ := w.get1(recent.Link(t, "via"))
	assert.Equal(t, recent.Entries, open.Entries, "it has a permanent address already")
	assert.Equal(t, recent.Hrefs("prev-archive"), open.Hrefs("prev-archive"))
	assert.Empty(t, open.Archive)

	newer := len(w.known)
	for document, at, next := recent, feed, ""; ; {
		assert.Empty(t, document.Complete, "a feed with deletion entries should not include fh:complete in any document")
		assert.Equal(t, recent.ID(), document.ID())
		for i := range document.Entries {
			e := &document.Entries[i]
			assert.LessOrEqual(t, e.Updated(), document.Updated(), "every document shall have a timestamp later than or equal to that of every entry contained in it")
		}
		if document != recent {
			w.checkArchive(document, at, next)
			next = at
		}
		entries = append(entries, document.Entries...)
		previous := document.Link(t, "prev-archive")
		if previous == "" {
			break
		}
		require.Less(t, len(entries), newer+100_000, "the feed does not end")
		referee, _ := w.get1(previous) // a prev-archive link shall resolve to an Atom Feed Document
		for i := range document.Entries {
			assert.LessOrEqual(t, referee.Updated(), document.Entries[i].Updated(), "the referee shall have a timestamp that is earlier than or equal to that of every entry in the referrer")
		}
		document, at = referee, previous
	}
	w.checkFinished()
	return recent, entries
}

// checkArchive checks an archive document against RFC 5005 §4 (Archived Feeds). next is the URL of the next one, which
// links to it.
func (w *recordsWalker) checkArchive(d *served.Document, at, next string) {
	t := w.T
	t.Helper()
	a := w.MustGet(at)
	assert.Len(t, d.Archive, 1, "fh:archive")
	assert.Equal(t, at, d.Link(t, "self"))
	assert.Equal(t, w.URL("/topicmaps/"+w.name+"/records"), d.Link(t, "current"))
	gone := w.isPruned(at)
	switch {
	case next == "":
		assert.Empty(t, d.Hrefs("next-archive"), "it would be an error to link to a document before completion")
	case !gone:
		assert.Equal(t, next, d.Link(t, "next-archive"))
	default: // those between may have lost all entries
		assert.Equal(t, http.StatusOK, w.Get(d.Link(t, "next-archive")).StatusCode)
	}
	if gone || next == "" {
		assert.Equal(t, shortly, a.Header.Get("Cache-Control"), at)
		return
	}
	assert.Equal(t, shortly, a.Header.Get("Cache-Control"), "%s: pruning may rewrite it", at)
	if _, ok := w.finished[at]; !ok {
		w.finished[at] = a
	}
}

// isPruned reports whether the document of the fragments feed with the same entries is pruned.
func (w *recordsWalker) isPruned(at string) bool {
	w.T.Helper()
	status := w.Get(strings.Replace(at, "/records/", "/fragments/", 1)).StatusCode
	require.Contains(w.T, []int{http.StatusOK, http.StatusGone}, status)
	return status == http.StatusGone
}

// checkFinished checks that finished documents are unchanged, byte for byte, or if they are pruned, that the required
// rest remains.
func (w *recordsWalker) checkFinished() {
	t := w.T
	t.Helper()
	for at, was := range w.finished {
		a := w.Get(at, "If-None-Match", was.Header.Get("ETag"))
		if !w.isPruned(at) {
			assert.Equal(t, http.StatusNotModified, a.StatusCode, "%s", at)
			now := w.MustGet(at)
			assert.Equal(t, string(was.Bytes), string(now.Bytes), "a finished document does not change: %s", at)
			assert.Equal(t, was.Header.Get("ETag"), now.Header.Get("ETag"))
			continue
		}
		before, now := served.ParseAtom(t, was), served.ParseAtom(t, w.MustGet(at))
		assert.Len(t, now.Archive, 1)
		if len(now.Entries) < len(before.Entries) {
			w.pruned[at] = true
			assert.Equal(t, http.StatusOK, a.StatusCode, "it is another one now")
		}
		left := now.Entries
		for i := range before.Entries {
			if len(left) > 0 && left[0].ID() == before.Entries[i].ID() && left[0].Updated() == before.Entries[i].Updated() {
				assert.Equal(t, before.Entries[i], left[0])
				left = left[1:]
			}
		}
		assert.Empty(t, left, "nothing comes in, and the order stays")
	}
}

// checkEntries holds the entries of the logical feed to the rules on their types, and returns
// the active ones by record.
func (w *recordsWalker) checkEntries(entries []served.Document, pool map[string]string) map[string]served.Document {
	t := w.T
	t.Helper()
	last, kinds := map[string]served.Document{}, map[string]string{}
	for i := range entries {
		e := entries[i]
		kind := kindOf(t, &e)
		require.Len(t, e.TopicSI, 1)
		record := e.TopicSI[0]
		if _, ok := w.ids[record]; !ok {
			w.ids[record] = e.ID()
			w.records[e.ID()] = record
		}
		assert.Equal(t, w.ids[record], e.ID(), "the id shall be the identifier for the record: %s", record)
		assert.Equal(t, record, w.records[e.ID()], "every entry shall correspond with exactly one record")
		assert.True(t, w.ever[record], "%s: there was no such record", record)
		if i > 0 {
			assert.Less(t, e.Updated(), entries[i-1].Updated(), "no two entries have the same time")
		}
		if newest, ok := last[record]; ok {
			assert.Less(t, e.Updated(), newest.Updated(), "active and deletion entries shall not be earlier than any historical entry for the record, and should not be the same")
		} else {
			last[record], kinds[record] = e, kind
		}
	}
	active := map[string]served.Document{}
	for record, e := range last {
		if kinds[record] == ofRecord {
			active[record] = e
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(pool)), slices.Sorted(maps.Keys(active)),
		"every record in the current pool shall correspond with exactly one active entry, and there shall not be any others")
	assert.Equal(t, slices.Sorted(maps.Keys(w.ever)), slices.Sorted(maps.Keys(last)),
		"every record that is not in the pool any more has its deletion entry, also where the log is pruned")
	for _, record := range slices.Sorted(maps.Keys(active)) {
		e := active[record]
		data := e.Typed(t, "alternate")
		if w.formats != nil {
			assert.ElementsMatch(t, w.formats, slices.Collect(maps.Keys(data)), "formats of %s", record)
		}
		w.checkRepresentations(record, pool[record], data)
	}
	return active
}

// checkRepresentations follows the alternate links of an active entry.
func (w *recordsWalker) checkRepresentations(record, named string, data map[string]string) {
	t := w.T
	t.Helper()
	for mediaType, href := range data {
		a := w.MustGet(href)
		assert.True(t, served.SameType(mediaType, a.Header.Get("Content-Type")), "the link type is an Internet Media Type of the representation format")
		f, err := fragment.Read(context.Background(), bytes.NewReader(a.Bytes), xtm.Options{Base: tmdm.Locator(w.SP(w.name))}, fragment.Ref(record))
		require.NoError(t, err, "%s", href)
		assert.Equal(t, fragment.Ref(record), f.Topic.TopicSI(), "the URI value resolves to a representation of the record")
		var names []string
		for _, n := range f.Topic.Names {
			names = append(names, n.Value)
		}
		slices.Sort(names)
		assert.Equal(t, named, strings.Join(names, ", "), "as it is now")
		assert.True(t, !f.Deleted || named == "", "only what is bare looks as if it were deleted")
	}
}

// checkEvents compares the new entries with the changes of the pool in one event: each added, deleted or modified topic
// has one of the right kind.
func (w *recordsWalker) checkEvents(entries []served.Document, pool map[string]string) {
	t := w.T
	t.Helper()
	fresh := map[string][]string{}
	for i := range entries {
		e := entries[i]
		key := e.ID() + e.Updated()
		if was, ok := w.known[key]; ok {
			assert.Equal(t, was, e, "a historical entry is what it was when it was active, its time the same")
			continue
		}
		w.known[key] = e
		fresh[e.TopicSI[0]] = append(fresh[e.TopicSI[0]], kindOf(t, &e))
	}
	for record := range w.ever {
		was, before := w.pool[record]
		is, now := pool[record]
		switch {
		case !before && now:
			assert.Equal(t, []string{ofRecord}, fresh[record], "%s was created", record)
		case before && !now:
			assert.Equal(t, []string{ofDeletion}, fresh[record], "exactly one deletion entry corresponding to the deletion of %s", record)
		case !now:
			assert.Empty(t, fresh[record], "%s is not there, and was not", record)
		case was != is:
			assert.Equal(t, []string{ofRecord}, fresh[record], "%s was modified: what was its active entry is the one historical entry of that", record)
		case len(fresh[record]) > 0:
			assert.Equal(t, []string{ofRecord}, fresh[record], "%s is there as before", record)
		}
	}
}

// checkComplete checks the complete form against its rules, and against the archived form.
func (w *recordsWalker) checkComplete(recent *served.Document, active map[string]served.Document) {
	t, url := w.T, w.URL("/topicmaps/"+w.name+"/records/complete")
	t.Helper()
	d, a := w.get1(url)
	assert.Len(t, d.Complete, 1, "it shall include fh:complete")
	assert.Empty(t, d.Archive)
	assert.Equal(t, url, d.Link(t, "self"))
	for _, rel := range []string{"prev-archive", "next-archive", "current", "next", "previous"} {
		assert.Empty(t, d.Hrefs(rel), "it is one document")
	}
	assert.Len(t, d.Entries, len(active), "all the active entries, and no others")
	for i := range d.Entries {
		e := d.Entries[i]
		require.Equal(t, ofRecord, kindOf(t, &e))
		require.Len(t, e.TopicSI, 1)
		assert.Equal(t, active[e.TopicSI[0]], e, "the same in both forms: identifier, time, links")
		assert.LessOrEqual(t, e.Updated(), d.Updated())
	}
	if len(w.feedIDs) == 0 {
		w.feedIDs = []string{recent.ID(), d.ID(), w.node.Feed("/topicmaps/" + w.name + "/fragments").ID()}
	}
	assert.Equal(t, w.feedIDs[:2], []string{recent.ID(), d.ID()}, "for life")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(w.feedIDs))), 3, "feeds of their own")

	same := w.complete.Response != nil && string(w.complete.Bytes) == string(a.Bytes)
	if w.complete.Response != nil {
		assert.Equal(t, same, w.complete.Header.Get("ETag") == a.Header.Get("ETag"), "the ETag changes when the document does")
	}
	assert.Equal(t, http.StatusNotModified, w.Get(url, "If-None-Match", a.Header.Get("ETag")).StatusCode)
	w.complete = a
}

// settled waits until no more records must be republished for changed formats.
func (w *recordsWalker) settled() {
	w.T.Helper()
	testenv.Eventually(w.T, func() bool {
		l, err := w.Store.Latest(w.T.Context(), w.name)
		return err == nil && !l.Restating
	})
}

// restarted takes note that it is another server, of the same collection: the ETags may be
// others, the bytes may not.
func (w *recordsWalker) restarted() {
	w.T.Helper()
	w.complete = served.Answer{}
	for at, was := range w.finished {
		if a := w.MustGet(at); !w.isPruned(at) {
			assert.Equal(w.T, string(was.Bytes), string(a.Bytes), "a finished document does not change: %s", at)
			was.Header.Set("ETag", a.Header.Get("ETag"))
		}
	}
}
