package server_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// Formats that are withdrawn, and offered again.

func TestWithdrawnFormatIsGone(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("small", served.Small())
	n.Delete("small", served.PSI+"tromsø")
	w := walkRecords(n, "small")
	oslo := n.find("small", served.PSI+"oslo").Header.Get("Location")
	gone := func(url string) {
		t.Helper()
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := n.Do(method, url, nil)
			assert.Equal(t, http.StatusGone, a.StatusCode, "%s %s", method, url)
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"), "it may be offered again")
		}
	}
	answers := func(accept, want string) {
		t.Helper()
		a := n.MustGet(oslo, "Accept", accept)
		assert.True(t, served.SameType(want, a.Header.Get("Content-Type")), "%s: %s", accept, a.Header.Get("Content-Type"))
		assert.Equal(t, "Accept, Accept-Encoding", a.Header.Get("Vary"))
	}

	w.offer("xtm2.1")
	w.settled()
	gone(oslo + ".xtm1")
	n.MustGet(oslo + ".xtm21")
	for _, accept := range []string{"", "*/*", "application/xml", served.XTM1Type + ", */*;q=0.1", served.XTM21Type} {
		answers(accept, served.XTM21Type)
	}
	refused := n.Get(oslo, "Accept", served.XTM1Type)
	assert.Equal(t, http.StatusNotAcceptable, refused.StatusCode)
	assert.Contains(t, string(refused.Bytes), served.XTM21Type, "says what there is")
	assert.NotContains(t, string(refused.Bytes), served.XTM1Type)
	n.inBothForms("small")

	w.offer("xtm1")
	w.settled()
	gone(oslo + ".xtm21")
	for _, accept := range []string{"", "*/*", served.XTM1Type, "text/xml"} {
		answers(accept, served.XTM1Type)
	}
	assert.Equal(t, http.StatusNotAcceptable, n.Get(oslo, "Accept", served.XTM21Type).StatusCode)
	n.inBothForms("small")

	w.offer()
	w.settled()
	answers("", served.XTM1Type)
	answers(served.XTM21Type, served.XTM21Type)
	for _, ext := range []string{".xtm1", ".xtm21"} {
		n.MustGet(oslo + ext)
	}
	n.inBothForms("small")
	assert.Empty(t, n.errors())
}

// inBothForms checks that all fragments and snapshots are available in both forms.
func (n *node) inBothForms(name string) {
	n.T.Helper()
	all, _ := n.History("/topicmaps/" + name + "/fragments")
	for _, e := range append(all, n.Feed("/topicmaps/"+name+"/snapshots").Entries...) {
		data := e.Typed(n.T, "topicmapdata")
		assert.Len(n.T, data, 2)
		for mediaType, href := range data {
			assert.True(n.T, served.SameType(mediaType, n.MustGet(href).Header.Get("Content-Type")), href)
		}
	}
	for _, ext := range []string{"", ".xtm1", ".xtm21"} {
		n.MustGet("/topicmaps/" + name + "/snapshots/current" + ext)
	}
}

// Each record gets exactly one entry for it.
func TestEachRecordIsPublishedAgainWhenFormatsChange(t *testing.T) {
	t.Parallel()
	n := start(t, served.DocumentSize(4))
	n.Publish("towns", served.TopicMap(served.Topic("oslo", "Oslo"), served.Topic("bergen", "Bergen")))
	w := walkRecords(n, "towns")
	w.check()
	before := len(w.known)
	for i, formats := range [][]string{{"xtm2.1"}, {"xtm1"}, {"xtm1", "xtm2.1"}, {"xtm2.1"}, {}} {
		w.offer(formats...)
		w.settled()
		w.check()
		assert.Len(t, w.known, before+(i+1)*3, "%v", formats)
	}
	w.offer("xtm1", "xtm2.1") // the present formats
	w.settled()
	w.check()
	assert.Len(t, w.known, before+5*3)
	served.Published(t, n.Delete("towns", served.PSI+"oslo"))
	w.check()
	w.offer("xtm1")
	w.settled()
	w.check()
	assert.Len(t, w.known, before+5*3+1+2, "what is deleted is not")

	// A collection may begin with a choice.
	require.Equal(t, http.StatusCreated, n.PutSettings("choice", `{"recordFormats": ["xtm2.1"]}`).StatusCode)
	n.MustPut("choice", served.TopicMap(served.Topic("oslo", "Oslo")))
	w = walkRecords(n, "choice")
	w.formats = []string{served.XTM21Type}
	w.check()
	assert.Len(t, w.known, 2)

	for settings, why := range map[string]string{
		`{"recordFormats": ["rdf"]}`:          "rdf",
		`{"recordFormats": ["xtm1", "xtm1"]}`: "twice",
		`{"recordFormats": "xtm1"}`:           "recordFormats",
	} {
		a := n.PutSettings("choice", settings)
		assert.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, settings)
		assert.Contains(t, string(a.Bytes), why)
	}
}

// halting is a store that republishes records by one commit at a time on request.
type halting struct {
	server.Store
	on     atomic.Bool
	begun  atomic.Int32
	halted chan int32 // takes the number of each commit, when it has ended
}

func (h *halting) OfferRecordsAnew(ctx context.Context, name string) (int, error) {
	if h.on.Load() {
		ctx = &once{Context: ctx}
		n := h.begun.Add(1)
		defer func() { h.halted <- n }()
	}
	return h.Store.OfferRecordsAnew(ctx, name)
}

// once is a context that ends when the job looks at it for the second time, between its first two
// commits. What it calls may look as often as it likes.
type once struct {
	context.Context
	looks int
}

func (o *once) Err() error {
	caller, _, _, _ := runtime.Caller(1)
	if strings.HasSuffix(runtime.FuncForPC(caller).Name(), ".OfferRecordsAnew") {
		o.looks++
	}
	if o.looks > 1 {
		return context.Canceled
	}
	return o.Context.Err()
}

// Formats are withdrawn and offered again while the job is half done, and the server is
// stopped in the middle: every rule holds in between, and in the end all records are
// offered as they ought to be.
func TestFormatsThatChangeWhileTheJobIsHalfDone(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const topics = recordsBatch + 2 // two commits
	dir := t.TempDir()
	h := &halting{halted: make(chan int32, 100)} // more than there are commits
	h.on.Store(true)
	n := recordsAt(t, dir, served.DocumentSize(10), every(1_000_000), func(c *server.Config) { h.Store, c.Store = c.Store, h })
	var parts []string
	for i := range topics {
		parts = append(parts, served.Topic(fmt.Sprint("t", i), fmt.Sprint("Name ", i)))
	}
	n.Publish("m", served.TopicMap(parts...))
	w := walkRecords(n, "m")
	w.check()

	// step waits until the job has halted after one commit more.
	step := func(formats ...string) {
		t.Helper()
		before := h.begun.Load()
		w.offer(formats...)
		for <-h.halted <= before { // for commits that began earlier
		}
		w.formats = nil // either set of formats is possible
		w.check()
	}
	step("xtm2.1")
	forms := func() (count map[int]int) {
		count = map[int]int{}
		for _, e := range served.ParseAtom(t, w.complete).Entries {
			count[len(e.Typed(t, "alternate"))]++
		}
		return count
	}
	assert.Equal(t, map[int]int{1: recordsBatch, 2: topics + 1 - recordsBatch}, forms())
	for _, e := range served.ParseAtom(t, w.complete).Entries { // each by its own entry
		_, old := e.Typed(t, "alternate")[served.XTM1Type]
		want := map[bool]int{true: http.StatusOK, false: http.StatusGone}[old]
		assert.Equal(t, want, n.Get(strings.TrimSuffix(e.Link(t, "self"), ".atom")+".xtm1").StatusCode)
	}
	served.Published(t, n.postTopics("m", served.TopicMap(served.Topic("t1", "another name"), served.Topic("t21", "another, too")), nil))
	w.check()
	served.Published(t, n.Delete("m", served.PSI+"t7"))
	w.check()
	step("xtm1")
	step()
	step("xtm2.1")

	w.Stop()
	w.node = recordsAt(t, dir, every(1_000_000))
	w.restarted()
	w.check()
	require.NoError(t, w.Start())
	w.settled()
	w.formats = []string{served.XTM21Type}
	w.check()
	assert.Equal(t, map[int]int{1: topics}, forms())
}
