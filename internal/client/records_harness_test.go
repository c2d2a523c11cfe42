package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
)

// What tests of sources of records share: sources that follow the two forms of Atom-PMH, or
// the lists of ResourceSync, and what may happen to the records of a server.

// The forms in which records are published.
const (
	archived = "/records"
	complete = "/records/complete"
	lists    = "/resourcesync/capabilitylist.xml"
)

var forms = []string{archived, complete, lists}

var protocols = map[string]store.Protocol{archived: store.AtomPMH, complete: store.AtomPMH, lists: store.ResourceSync}

func (o *origin) recordsURL(name, form string) string { return o.URL + "/topicmaps/" + name + form }

// record subscribes to the records of a collection.
func (s *subscriber) record(o *origin, collection, form, as string) {
	sub, err := s.Subscribe(context.Background(), o.recordsURL(collection, form), client.SubscribeOptions{Name: as})
	require.NoError(s.t, err)
	require.Equal(s.t, protocols[form], sub.Protocol)
}

// recorded returns a subscriber whose egov follows records, and has made its clean start.
func recorded(t *testing.T, o *origin, form string, change ...func(*client.Config)) *subscriber {
	s := newSubscriber(t, change...)
	s.record(o, "egov", form, "egov")
	s.sync()
	o.seen()
	return s
}

// inForms runs a test for each form.
func inForms(t *testing.T, f func(t *testing.T, form string)) {
	for _, form := range forms {
		t.Run(strings.TrimPrefix(strings.ReplaceAll(form, "/", " "), " "), func(t *testing.T) {
			t.Parallel()
			f(t, form)
		})
	}
}

func isRecord(r *http.Request) bool { return strings.Contains(r.URL.Path, "/topics/") }

func isRecordsFeed(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/records") || strings.Contains(r.URL.Path, "/resourcesync/")
}

// ask makes a request as the server's administrator, not through the faults.
func (o *origin) ask(method, path, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, o.URL+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1"
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	o.server.ServeHTTP(w, r)
	return w
}

// post replaces some topics, if nothing needs what they have lost.
func (o *origin) post(collection, doc string) {
	w := o.ask(http.MethodPost, "/topicmaps/"+collection+"/topics", "", doc)
	require.Contains(o.t, []int{http.StatusOK, http.StatusConflict}, w.Code, "%s", w.Body)
}

// remove deletes a topic, if it is there and nothing needs it.
func (o *origin) remove(collection, si string) {
	w := o.ask(http.MethodDelete, "/topicmaps/"+collection+"/topics?si="+url.QueryEscape(si), "", "")
	require.Contains(o.t, []int{http.StatusOK, http.StatusNotFound, http.StatusConflict}, w.Code, "%s", w.Body)
}

// offer changes the formats of records; none means all.
func (o *origin) offer(collection string, formats ...string) {
	b, err := json.Marshal(map[string]any{"recordFormats": append([]string{}, formats...)})
	require.NoError(o.t, err)
	w := o.ask(http.MethodPut, "/topicmaps/"+collection, "application/json", string(b))
	require.Equal(o.t, http.StatusOK, w.Code, "%s", w.Body)
	_, err = o.db.Restate(context.Background(), collection)
	require.NoError(o.t, err)
}

// resize changes how many entries a document of the feeds has.
func (o *origin) resize(collection string, n int) {
	_, err := o.db.ChangeSettings(o.t.Context(), collection, func(s *store.Settings) error { s.DocumentSize = n; return nil })
	require.NoError(o.t, err)
}

// prune takes a snapshot and gives up the history but for so many entries.
func (o *origin) prune(collection string, keep int) {
	w := o.ask(http.MethodPost, "/topicmaps/"+collection+"/snapshots", "", "")
	require.Less(o.t, w.Code, 300, "%s", w.Body)
	o.collectGarbage(collection, keep)
}

// collectGarbage has the server give up the history but for so many entries.
func (o *origin) collectGarbage(collection string, keep int) {
	keeping := func(n int) {
		_, err := o.db.ChangeSettings(o.t.Context(), collection, func(s *store.Settings) error { s.KeepEntries = uint64(n); return nil })
		require.NoError(o.t, err)
	}
	keeping(keep)
	defer keeping(0)
	w := o.ask(http.MethodPost, "/topicmaps/"+collection+"/gc", "", "")
	require.Equal(o.t, http.StatusOK, w.Code, "%s", w.Body)
}

// hasRecordsOf asserts that a source has the records of the server, each as it is there.
func (s *subscriber) hasRecordsOf(o *origin, collection, name string) {
	s.t.Helper()
	var theirs map[string]string
	require.NoError(s.t, o.db.View(o.t.Context(), collection, func(v *store.View) error {
		theirs = contents(s.t, v.Source())
		return nil
	}))
	s.source(name, func(_ store.Subscription, src fragment.Source) {
		sameRecords(s.t, theirs, contents(s.t, src), "%s", name)
	})
}
