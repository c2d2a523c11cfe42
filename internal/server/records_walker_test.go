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
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// A walker that holds the records of a map, in both forms, to every rule of Atom-PMH
// for producers. What must be true it does not take from the feeds: the current pool
// is what the map says that there is now, and what is pruned is what the fragments feed
// says is gone.

// The kinds of entries (Atom-PMH, Detecting entry type). Whether one of a record is
// active or historical depends on what else there is.
const (
	ofRecord   = "of a record"
	ofDeletion = "of a deletion"
)

// kindOf tells the kinds apart by what stands in the entry.
func kindOf(t testing.TB, e *document) string {
	t.Helper()
	alternates := len(e.links("alternate")) + len(e.links(""))
	if alternates > 0 {
		require.Empty(t, e.Content, "an entry of a record shall not contain an atom:content element")
		return ofRecord
	}
	require.Len(t, e.Content, 1, "a deletion entry shall contain an atom:content element, and no other kind of entry has no alternate link")
	require.Empty(t, e.Content[0].Attributes, "that has no src attribute")
	require.Empty(t, e.Content[0].Inside, "and no content")
	return ofDeletion
}

// recordsWalker walks through the records of a map again and again, and remembers what
// must not change.
type recordsWalker struct {
	*node
	name    string
	formats []string // media types in which all records must be offered now; nil: not known

	ids     map[string]string // record → its identifier, for life
	records map[string]string // identifier → its record

	// Of one history, which ends when the collection is deleted:
	pool     map[string]string   // record → name, when last looked at
	known    map[string]document // id and time → the entry
	ever     map[string]bool     // records that were in the pool
	finished map[string]answer   // documents that may be kept for ever, by their URLs
	feedIDs  []string

	complete answer          // as it was when last looked at
	pruned   map[string]bool // documents that have lost entries
}

func walkRecords(n *node, name string) *recordsWalker {
	w := &recordsWalker{node: n, name: name, formats: []string{xtm1Type, xtm21Type}, ids: map[string]string{}, records: map[string]string{}, pruned: map[string]bool{}}
	w.begin()
	return w
}

// begin forgets the history: another begins.
func (w *recordsWalker) begin() {
	w.pool, w.known, w.ever, w.finished = map[string]string{}, map[string]document{}, map[string]bool{}, map[string]answer{}
	w.feedIDs = nil
}

// currentPool returns the topics that there are, by TopicSI, and the names of each.
func (n *node) currentPool(name string) map[string]string {
	n.t.Helper()
	var tm struct {
		Topics []struct {
			Identifiers []struct {
				Href string `xml:"href,attr"`
			} `xml:"subjectIdentifier"`
			Names []string `xml:"name>value"`
		} `xml:"topic"`
	}
	require.NoError(n.t, xml.Unmarshal(n.mustGet("/topicmaps/"+name+"/snapshots/current.xtm21").body, &tm))
	pool := map[string]string{}
	for _, topic := range tm.Topics {
		require.NotEmpty(n.t, topic.Identifiers)
		slices.Sort(topic.Names)
		pool[topic.Identifiers[0].Href] = strings.Join(topic.Names, ", ")
	}
	require.Len(n.t, pool, len(tm.Topics))
	return pool
}

// get1 gets a feed document once.
func (w *recordsWalker) get1(url string) (*document, answer) {
	w.t.Helper()
	a := w.mustGet(url)
	d := parseAtom(w.t, a)
	require.Equal(w.t, "feed", d.XMLName.Local)
	return d, a
}

// check looks at both forms after one event, or none, since the last check.
func (w *recordsWalker) check() {
	w.t.Helper()
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
func (w *recordsWalker) checkArchived() (recent *document, entries []document) {
	t, feed := w.t, w.url("/topicmaps/"+w.name+"/records")
	t.Helper()
	recent, a := w.get1(feed)
	assert.Equal(t, shortly, a.Header.Get("Cache-Control"))
	assert.Equal(t, feed, recent.link(t, "self"))
	assert.Equal(t, feed, recent.link(t, "current"), "it is suggested that all subscription documents include a current link")
	assert.Empty(t, recent.Archive)
	assert.Empty(t, recent.links("next-archive"))
	open, _ := w.get1(recent.link(t, "via"))
	assert.Equal(t, recent.Entries, open.Entries, "it has a permanent address already")
	assert.Equal(t, recent.links("prev-archive"), open.links("prev-archive"))
	assert.Empty(t, open.Archive)

	newer := len(w.known)
	for document, at, next := recent, feed, ""; ; {
		assert.Empty(t, document.Complete, "a feed with deletion entries should not include fh:complete in any document")
		assert.Equal(t, recent.id(), document.id())
		for i := range document.Entries {
			e := &document.Entries[i]
			assert.LessOrEqual(t, e.updated(), document.updated(), "every document shall have a timestamp later than or equal to that of every entry contained in it")
		}
		if document != recent {
			w.checkArchive(document, at, next)
			next = at
		}
		entries = append(entries, document.Entries...)
		previous := document.link(t, "prev-archive")
		if previous == "" {
			break
		}
		require.Less(t, len(entries), newer+100_000, "the feed does not end")
		referee, _ := w.get1(previous) // a prev-archive link shall resolve to an Atom Feed Document
		for i := range document.Entries {
			assert.LessOrEqual(t, referee.updated(), document.Entries[i].updated(), "the referee shall have a timestamp that is earlier than or equal to that of every entry in the referrer")
		}
		document, at = referee, previous
	}
	w.checkFinished()
	return recent, entries
}

// checkArchive holds an archive document to RFC 5005 §4 (Archived Feeds). next is the URL of
// the one behind it that leads to it.
func (w *recordsWalker) checkArchive(d *document, at, next string) {
	t := w.t
	t.Helper()
	a := w.mustGet(at)
	assert.Len(t, d.Archive, 1, "fh:archive")
	assert.Equal(t, at, d.link(t, "self"))
	assert.Equal(t, w.url("/topicmaps/"+w.name+"/records"), d.link(t, "current"))
	gone := w.isPruned(at)
	switch {
	case next == "":
		assert.Empty(t, d.links("next-archive"), "it would be an error to link to a document before completion")
	case !gone:
		assert.Equal(t, next, d.link(t, "next-archive"))
	default: // those between may have lost all entries
		assert.Equal(t, http.StatusOK, w.get(d.link(t, "next-archive")).StatusCode)
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

// isPruned reports whether the document of the fragments feed with the same entries is gone.
func (w *recordsWalker) isPruned(at string) bool {
	w.t.Helper()
	status := w.get(strings.Replace(at, "/records/", "/fragments/", 1)).StatusCode
	require.Contains(w.t, []int{http.StatusOK, http.StatusGone}, status)
	return status == http.StatusGone
}

// checkFinished holds the documents that were finished to what they were, byte for byte, or
// where they are pruned, to what must be left of them.
func (w *recordsWalker) checkFinished() {
	t := w.t
	t.Helper()
	for at, was := range w.finished {
		a := w.get(at, "If-None-Match", was.Header.Get("ETag"))
		if !w.isPruned(at) {
			assert.Equal(t, http.StatusNotModified, a.StatusCode, "%s", at)
			now := w.mustGet(at)
			assert.Equal(t, string(was.body), string(now.body), "a finished document does not change: %s", at)
			assert.Equal(t, was.Header.Get("ETag"), now.Header.Get("ETag"))
			continue
		}
		before, now := parseAtom(t, was), parseAtom(t, w.mustGet(at))
		assert.Len(t, now.Archive, 1)
		if len(now.Entries) < len(before.Entries) {
			w.pruned[at] = true
			assert.Equal(t, http.StatusOK, a.StatusCode, "it is another one now")
		}
		left := now.Entries
		for i := range before.Entries {
			if len(left) > 0 && left[0].id() == before.Entries[i].id() && left[0].updated() == before.Entries[i].updated() {
				assert.Equal(t, before.Entries[i], left[0])
				left = left[1:]
			}
		}
		assert.Empty(t, left, "nothing comes in, and the order stays")
	}
}

// checkEntries holds the entries of the logical feed to the rules on their types, and returns
// the active ones by record.
func (w *recordsWalker) checkEntries(entries []document, pool map[string]string) map[string]document {
	t := w.t
	t.Helper()
	last, kinds := map[string]document{}, map[string]string{}
	for i := range entries {
		e := entries[i]
		kind := kindOf(t, &e)
		require.Len(t, e.TopicSI, 1)
		record := e.TopicSI[0]
		if _, ok := w.ids[record]; !ok {
			w.ids[record] = e.id()
			w.records[e.id()] = record
		}
		assert.Equal(t, w.ids[record], e.id(), "the id shall be the identifier for the record: %s", record)
		assert.Equal(t, record, w.records[e.id()], "every entry shall correspond with exactly one record")
		assert.True(t, w.ever[record], "%s: there was no such record", record)
		if i > 0 {
			assert.Less(t, e.updated(), entries[i-1].updated(), "no two entries have the same time")
		}
		if newest, ok := last[record]; ok {
			assert.Less(t, e.updated(), newest.updated(), "active and deletion entries shall not be earlier than any historical entry for the record, and should not be the same")
		} else {
			last[record], kinds[record] = e, kind
		}
	}
	active := map[string]document{}
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
		data := e.typed(t, "alternate")
		if w.formats != nil {
			assert.ElementsMatch(t, w.formats, slices.Collect(maps.Keys(data)), "formats of %s", record)
		}
		w.checkRepresentations(record, pool[record], data)
	}
	return active
}

// checkRepresentations follows the alternate links of an active entry.
func (w *recordsWalker) checkRepresentations(record, named string, data map[string]string) {
	t := w.t
	t.Helper()
	for mediaType, href := range data {
		a := w.mustGet(href)
		assert.True(t, sameType(mediaType, a.Header.Get("Content-Type")), "the link type is an Internet Media Type of the representation format")
		f, err := fragment.Read(context.Background(), bytes.NewReader(a.body), xtm.Options{Base: tmdm.Locator(w.sp(w.name))}, fragment.Ref(record))
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

// checkEvents compares the entries that are new with what has happened to the pool, in one
// event: what is added, deleted or modified has one of the right kind.
func (w *recordsWalker) checkEvents(entries []document, pool map[string]string) {
	t := w.t
	t.Helper()
	fresh := map[string][]string{}
	for i := range entries {
		e := entries[i]
		key := e.id() + e.updated()
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

// checkComplete holds the complete form to its rules, and to what the archived form says.
func (w *recordsWalker) checkComplete(recent *document, active map[string]document) {
	t, url := w.t, w.url("/topicmaps/"+w.name+"/records/complete")
	t.Helper()
	d, a := w.get1(url)
	assert.Len(t, d.Complete, 1, "it shall include fh:complete")
	assert.Empty(t, d.Archive)
	assert.Equal(t, url, d.link(t, "self"))
	for _, rel := range []string{"prev-archive", "next-archive", "current", "next", "previous"} {
		assert.Empty(t, d.links(rel), "it is one document")
	}
	assert.Len(t, d.Entries, len(active), "all the active entries, and no others")
	for i := range d.Entries {
		e := d.Entries[i]
		require.Equal(t, ofRecord, kindOf(t, &e))
		require.Len(t, e.TopicSI, 1)
		assert.Equal(t, active[e.TopicSI[0]], e, "the same in both forms: identifier, time, links")
		assert.LessOrEqual(t, e.updated(), d.updated())
	}
	if len(w.feedIDs) == 0 {
		w.feedIDs = []string{recent.id(), d.id(), w.node.feed("/topicmaps/" + w.name + "/fragments").id()}
	}
	assert.Equal(t, w.feedIDs[:2], []string{recent.id(), d.id()}, "for life")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(w.feedIDs))), 3, "feeds of their own")

	same := w.complete.Response != nil && string(w.complete.body) == string(a.body)
	if w.complete.Response != nil {
		assert.Equal(t, same, w.complete.Header.Get("ETag") == a.Header.Get("ETag"), "the ETag changes when the document does")
	}
	assert.Equal(t, http.StatusNotModified, w.get(url, "If-None-Match", a.Header.Get("ETag")).StatusCode)
	w.complete = a
}

// settled waits until no records are to be published again, as their formats have changed.
func (w *recordsWalker) settled() {
	w.t.Helper()
	testenv.Eventually(w.t, func() bool {
		l, err := w.Store.Latest(w.t.Context(), w.name)
		return err == nil && !l.Restating
	})
}

// restarted takes note that it is another server, of the same collection: the ETags may be
// others, the bytes may not.
func (w *recordsWalker) restarted() {
	w.t.Helper()
	w.complete = answer{}
	for at, was := range w.finished {
		if a := w.mustGet(at); !w.isPruned(at) {
			assert.Equal(w.t, string(was.body), string(a.body), "a finished document does not change: %s", at)
			was.Header.Set("ETag", a.Header.Get("ETag"))
		}
	}
}
