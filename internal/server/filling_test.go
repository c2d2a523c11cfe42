package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
	"github.com/tmshare/tmshare/merge"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// overview returns the entry of a collection in the Topic Maps Feed.
func (n *node) overview(name string) *feeds.Entry {
	n.T.Helper()
	a := n.Do("GET", n.URL("/topicmaps"), nil, "Accept", feeds.MediaTypeAtom)
	feed, err := feeds.Decode(bytes.NewReader(a.Bytes), n.BaseURL, feeds.Limits{})
	require.NoError(n.T, err)
	for i := range feed.Entries {
		if feed.Entries[i].Title == name {
			return &feed.Entries[i]
		}
	}
	n.T.Fatalf("%s is not in the overview", name)
	return nil
}

// firstOnly is a store that derives one topic, and then no more.
type firstOnly struct{ *store.DB }

func (f firstOnly) Derive(ctx context.Context, name string, _ int, decide func(*store.Deriving, merge.State) (*fragment.Change, error)) (*store.Collection, bool, error) {
	c, _, err := f.DB.Derive(ctx, name, 1, decide)
	return c, false, err
}

// A derived collection is not served before it is whole: new followers would take a part for the whole.
func TestDerivedCollectionBeingFilled(t *testing.T) {
	n := start(t)
	n.Publish("egov", maps.EGov)
	db := n.Store.(*store.DB)
	_, err := db.CreateCollection(t.Context(), store.Collection{Name: "all", SP: n.SP("all"), DerivedFrom: []string{"egov"}}, &merge.Memory{}, nil)
	require.NoError(t, err)
	part, err := derive.CatchUp(t.Context(), firstOnly{db}, "all")
	require.NoError(t, err)
	require.Positive(t, part.Head)

	key := fragment.Key("http://psi.example.org/a")
	content := []string{
		"/fragments", "/fragments?since=2020-01-01T00:00:00Z", "/fragments/archive/" + part.Epoch.String() + "-1", "/snapshots", "/snapshots/current", "/records", "/records/complete",
		"/topics?si=http://psi.example.org/a", "/topics/" + key, "/digest", "/history?si=http://psi.example.org/a", "/resourcesync/capabilitylist.xml", "/checkpoint", "/about",
		"/snapshots/" + part.Epoch.String(), "/fragments/" + part.Epoch.String(),
	}
	for _, path := range content {
		a := n.Do("GET", n.URL("/topicmaps/all"+path), nil)
		assert.Equal(t, http.StatusServiceUnavailable, a.StatusCode, path)
		assert.Equal(t, "5", a.Header.Get("Retry-After"), path)
		assert.Contains(t, string(a.Bytes), "ask again in a few seconds", path)
	}
	for _, path := range []string{"", ".atom", "/fragments.atom", "/snapshots.atom", "/settings"} {
		assert.Equal(t, http.StatusOK, n.Do("GET", n.URL("/topicmaps/all"+path), nil).StatusCode, path)
	}
	e := n.overview("all")
	assert.Equal(t, "being filled", e.Condition)
	assert.Contains(t, e.Summary, "being filled: ")
	assert.Empty(t, n.overview("egov").Condition)

	_, err = derive.CatchUp(t.Context(), db, "all")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, n.Do("GET", n.URL("/topicmaps/all/fragments"), nil).StatusCode)
	assert.Empty(t, n.overview("all").Condition)
}

// A collection without its input is served unchanged, with a warning. Creating the input again binds it.
func TestInputMissing(t *testing.T) {
	n := start(t)
	for _, name := range []string{"egov", "more"} {
		n.Publish(name, maps.EGov)
	}
	put := func(names ...string) served.Answer {
		b, err := json.Marshal(map[string]any{"derivedFrom": names})
		require.NoError(t, err)
		a := n.Do("PUT", n.URL("/topicmaps/all"), bytes.NewReader(b), "Content-Type", "application/json")
		n.Idle()
		return a
	}
	require.Equal(t, http.StatusUnprocessableEntity, put("egov", "egov").StatusCode)
	require.Equal(t, http.StatusCreated, put("egov", "more").StatusCode)
	require.Equal(t, http.StatusOK, n.Do("DELETE", n.URL("/topicmaps/more"), nil).StatusCode)
	e := n.overview("all")
	assert.Equal(t, "input missing", e.Condition)
	assert.Contains(t, e.Summary, `more is gone`)
	assert.Contains(t, e.Summary, `"tmshare-server derive all --from egov"`)
	assert.Equal(t, http.StatusOK, n.Do("GET", n.URL("/topicmaps/all/fragments"), nil).StatusCode)

	n.Publish("more", maps.EGov)
	assert.Contains(t, n.overview("all").Summary, `"tmshare-server derive all --from egov,more" takes in what has the name`)
	require.Equal(t, http.StatusConflict, put("more").StatusCode)
	require.Equal(t, http.StatusOK, put("egov", "more").StatusCode)
	assert.Empty(t, n.overview("all").Condition)
	require.Equal(t, http.StatusOK, put("more", "egov").StatusCode, "in any order")
}

// The statements of inputs are available only for the present state, and only in XTM 2.1.
func TestClaimsAreOfNowAndInOneForm(t *testing.T) {
	n := start(t)
	c := n.Publish("egov", maps.EGov)
	const si = "https://psi.egov.example.org/authority/fjordstad-public-library"
	at := "&at=" + feeds.FormatTime(c.Updated)
	topic := "/topicmaps/egov/topics/" + fragment.Key(si)
	for path, status := range map[string]int{
		topic + "?claims=": http.StatusOK, topic + ".xtm21?claims=": http.StatusOK, topic + ".xtm1?claims=": http.StatusBadRequest,
		topic + "?claims=" + at: http.StatusBadRequest, "/topicmaps/egov/topics?claims=&si=" + si: http.StatusSeeOther, "/topicmaps/egov/topics?claims=&si=" + si + at: http.StatusBadRequest,
	} {
		assert.Equal(t, status, n.Do("GET", n.URL(path), nil).StatusCode, path)
	}
}
