package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// wasThen has the documents served at the time of a commit.
type wasThen struct {
	at     string // the time of the last change
	state  string
	topics map[string]string // by key; "": deleted
}

func (n *node) recordState(name string) wasThen {
	a := n.MustGet("/topicmaps/" + name + "/snapshots/current.xtm21")
	was := wasThen{a.Header.Get("TMShare-Updated"), served.Canonical(n.T, a.Bytes, n.SP(name)), map[string]string{}}
	for _, id := range []string{"oslo", "bergen", "norway", "new"} {
		key := fragment.Key(served.PSI + fragment.Ref(id))
		if a := n.Get("/topicmaps/" + name + "/topics/" + key + ".xtm21"); a.StatusCode == http.StatusOK {
			was.topics[key] = served.Canonical(n.T, a.Bytes, n.SP(name))
		}
	}
	return was
}

// The documents of a time are served later with ?at=, and by datetime negotiation, within the history.
func TestThePastIsServed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Rounds(2, 10)) {
		c := served.NewClock()
		n := startAt(t, c, served.DocumentSize(2))
		random := rand.New(rand.NewPCG(seed, 7089))
		n.Publish("m", served.Small())
		past := []wasThen{n.recordState("m")}
		for step := range 12 {
			c.Advance(time.Duration(1+random.IntN(5)) * time.Minute)
			doc := served.Small([]string{"Oslo", "Bergen", "Norway"}[random.IntN(3)], fmt.Sprint("step ", step))
			if random.IntN(2) == 0 {
				doc = served.Replace(t, doc, "</topicMap>", served.Topic("new", fmt.Sprint("new ", step))+"</topicMap>")
			}
			n.MustPut("m", doc)
			past = append(past, n.recordState("m"))
		}
		for _, was := range past {
			a := n.MustGet("/topicmaps/m/snapshots/current.xtm21?at=" + was.at)
			assert.Equal(t, was.state, served.Canonical(t, a.Bytes, n.SP("m")))
			assert.Equal(t, was.at, a.Header.Get("TMShare-Updated"))
			second, err := time.Parse(time.RFC3339Nano, was.at)
			require.NoError(t, err)
			assert.Equal(t, second.Format(http.TimeFormat), a.Header.Get("Memento-Datetime"))
			assert.Contains(t, a.Header.Values("Link"), "<"+n.URL("/topicmaps/m/snapshots/current")+`>; rel="original timegate"`)
			assert.Equal(t, http.StatusNotModified, n.Get("/topicmaps/m/snapshots/current.xtm21?at="+was.at, "If-None-Match", a.Header.Get("ETag")).StatusCode)
			assert.Equal(t, http.StatusOK, n.Do(http.MethodHead, "/topicmaps/m/snapshots/current?at="+was.at, nil).StatusCode)
			for key, want := range was.topics {
				a := n.MustGet("/topicmaps/m/topics/" + key + ".xtm21?at=" + was.at)
				assert.Equal(t, want, served.Canonical(t, a.Bytes, n.SP("m")))
				memento := n.MustGet(a.Header.Get("Content-Location"))
				assert.Equal(t, a.Bytes, memento.Bytes)
				assert.Equal(t, memento.Header.Get("Memento-Datetime"), a.Header.Get("Memento-Datetime"))
			}

			led := n.Get("/topicmaps/m/snapshots/current.xtm21", served.AcceptDatetime(second.Add(59*time.Second))...)
			require.Equal(t, http.StatusFound, led.StatusCode)
			assert.Equal(t, "Accept-Datetime", led.Header.Get("Vary"))
			assert.Empty(t, led.Header.Get("Memento-Datetime"))
			assert.Equal(t, n.URL("/topicmaps/m/snapshots/current.xtm21?at="+was.at), led.Header.Get("Location"))
		}
		first, last := past[0], past[len(past)-1]
		for at, want := range map[time.Time]string{c.Now().Add(-1000 * time.Hour): first.at, c.Now().Add(1000 * time.Hour): last.at} {
			assert.Equal(t, n.URL("/topicmaps/m/snapshots/current?at="+want), n.Get("/topicmaps/m/snapshots/current", served.AcceptDatetime(at)...).Header.Get("Location"))
		}
	}
}

// The current map, without a time, states that it supports datetime negotiation.
func TestTheCurrentMapIsATimeGate(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Small())
	a := n.MustGet("/topicmaps/m/snapshots/current")
	assert.Contains(t, strings.Join(a.Header.Values("Vary"), ", "), "Accept-Datetime")
	assert.Contains(t, a.Header.Values("Link"), "<"+n.URL("/topicmaps/m/snapshots/current")+`>; rel="original timegate"`)
	assert.Empty(t, a.Header.Get("Memento-Datetime"))
}

// Missing and pruned states have different errors, and an invalid time is explained.
func TestTimesThatLeadNowhere(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startAt(t, c, served.DocumentSize(1))
	key, times := served.PublishVersions(n.Node, c, 5)
	for path, want := range map[string]int{
		"/snapshots/current?at=2020-01-01":                             http.StatusNotFound,
		"/snapshots/current?at=yesterday":                              http.StatusBadRequest,
		"/snapshots/current?at=2026-01-02&at=2026-01-03":               http.StatusBadRequest,
		"/topics/" + key + "?at=2020-01-01":                            http.StatusNotFound,
		"/topics/" + key + "?at=":                                      http.StatusBadRequest,
		"/topics/" + strings.Repeat("a", 26) + "?at=2026-01-02T04:00Z": http.StatusNotFound,
		"/snapshots/current?at=2999-01-01":                             http.StatusBadRequest,
		"/topics/" + key + "?at=2999-01-01":                            http.StatusBadRequest,
		"/topics/" + key + ".html?at=2999-01-01":                       http.StatusBadRequest,
		"/differences?at=2999-01-01":                                   http.StatusBadRequest,
		"/differences":                                                 http.StatusBadRequest,
		"/differences?at=2027-01-01&at=2026-01-02T03:30Z":              http.StatusBadRequest,
		"/history?since=soon":                                          http.StatusBadRequest,
		"/history?limit=0":                                             http.StatusBadRequest,
		"/history?before=x":                                            http.StatusBadRequest,
		"/history?words=some":                                          http.StatusBadRequest,
		"/history?si=http://nobody/":                                   http.StatusNotFound,
	} {
		a := n.Get("/topicmaps/m" + path)
		assert.Equal(t, want, a.StatusCode, "%s: %s", path, a.Bytes)
		if strings.Contains(path, "2999") {
			assert.Contains(t, string(a.Bytes), "2999-01-01T00:00:00.000000Z is in the future")
		}
		if want == http.StatusBadRequest && strings.Contains(path, "yesterday") {
			assert.Contains(t, string(a.Bytes), "write a time such as")
		}
	}
	assert.Equal(t, http.StatusBadRequest, n.Get("/topicmaps/m/snapshots/current", "Accept-Datetime", "yesterday").StatusCode)

	n.Settings("m", func(s *store.Settings) { s.KeepEntries = 1 })
	require.Equal(t, http.StatusCreated, n.Post("/topicmaps/m/snapshots").StatusCode)
	n.MustPut("m", served.Cities(1, "last"))
	require.Equal(t, http.StatusOK, n.Post("/topicmaps/m/gc").StatusCode)
	var horizon string
	require.NoError(t, n.Store.View(t.Context(), "m", func(v *store.View) error {
		horizon = v.HorizonTime.UTC().Format("2006-01-02T15:04:05.000000Z")
		return nil
	}))
	at := url.QueryEscape(times[1].Add(time.Minute).Format(time.RFC3339))
	for _, path := range []string{"/snapshots/current", "/topics/" + key, "/differences"} {
		a := n.Get("/topicmaps/m" + path + "?at=" + at)
		assert.Equal(t, http.StatusGone, a.StatusCode, "%s: %s", path, a.Bytes)
		assert.Contains(t, string(a.Bytes), horizon, "it says since when there is history")
	}
	assert.Equal(t, http.StatusGone, n.Do(http.MethodHead, "/topicmaps/m/snapshots/current?at="+at, nil).StatusCode)
	led := n.Get("/topicmaps/m/snapshots/current", served.AcceptDatetime(times[1])...)
	require.Equal(t, http.StatusFound, led.StatusCode)
	n.MustGet(led.Header.Get("Location"))

	snapshot := url.QueryEscape(times[4].Add(time.Minute).Format(time.RFC3339))
	a := n.MustGet("/topicmaps/m/snapshots/current.xtm21?at=" + snapshot)
	assert.Contains(t, string(a.Bytes), "version 4", "it is in the snapshot alone")
}

// The history of a topic describes the changes of each version in words.
func TestHistoryInWords(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("m", served.Small())
	first := n.recordState("m").at
	n.MustPut("m", served.Small("Oslo", "Christiania"))
	n.MustPut("m", served.Replace(t, served.Small("Oslo", "Christiania"), served.Association("part-of", "oslo", "norway"), ""))
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+served.PSI+"oslo", nil).StatusCode)
	get := func(query string) (h history.List) {
		a := n.MustGet("/topicmaps/m/history" + query)
		assert.Equal(t, "application/json", a.MediaType())
		require.NoError(t, json.Unmarshal(a.Bytes, &h))
		return h
	}
	words := func(c history.Change) (lines []string) {
		for _, s := range c.Removed {
			lines = append(lines, "- "+s.Text)
		}
		for _, s := range c.Added {
			lines = append(lines, "+ "+s.Text)
		}
		return lines
	}
	partOf := fmt.Sprintf("association of type %spart-of (%srole-1: %soslo, %srole-2: %snorway)", served.PSI, served.PSI, served.PSI, served.PSI, served.PSI)
	h := get("?si=" + served.PSI + "oslo")
	require.Len(t, h.Changes, 4)
	assert.Equal(t, history.Change{}.Missing, h.Changes[0].Missing)
	var kinds []string
	for _, c := range h.Changes {
		kinds = append(kinds, string(c.Kind))
	}
	assert.Equal(t, []string{"deleted", "updated", "updated", "added"}, kinds)
	assert.Contains(t, words(h.Changes[0]), `- name "Christiania"`)
	assert.Equal(t, []string{"- " + partOf}, words(h.Changes[1]))
	assert.Equal(t, []string{`- name "Oslo"`, `+ name "Christiania"`}, words(h.Changes[2]))
	assert.Contains(t, words(h.Changes[3]), "+ "+partOf)

	all := get("?words=false")
	assert.Empty(t, words(all.Changes[0]))
	assert.Len(t, get("?limit=2").Changes, 2)
	since := get("?since=" + all.Changes[0].Updated)
	assert.Equal(t, all.Changes[:1], get("?words=false&since="+all.Changes[0].Updated).Changes)
	assert.Len(t, since.Changes, 1)
	assert.Equal(t, all.Changes[1], get("?words=false&limit=1&before=" + fmt.Sprint(all.Changes[0].Entry)).Changes[0])

	var d server.Differences
	require.NoError(t, json.Unmarshal(n.MustGet("/topicmaps/m/differences?at="+first).Bytes, &d))
	assert.Equal(t, first, d.From)
	var topics []string
	for _, c := range d.Topics {
		topics = append(topics, string(c.Kind)+" "+strings.TrimPrefix(c.TopicSI, served.PSI))
	}
	assert.Equal(t, []string{"updated norway", "deleted oslo"}, topics)
	assert.Equal(t, []string{"- " + partOf}, words(d.Topics[0]))
	same := n.MustGet("/topicmaps/m/differences?at=" + d.To)
	require.NoError(t, json.Unmarshal(same.Bytes, &d))
	assert.Empty(t, d.Topics)
	assert.JSONEq(t, fmt.Sprintf(`{"collection":"m","from":%q,"to":%q,"topics":[]}`, d.To, d.To), string(same.Bytes))
}

// A topic that was deleted, or has another identifier now, is found by its former one.
func TestDeletedTopicsAreFoundInThePast(t *testing.T) {
	t.Parallel()
	c := served.NewClock()
	n := startAt(t, c)
	n.Publish("m", served.Small())
	before := url.QueryEscape(c.Now().Add(time.Second).Format(time.RFC3339))
	c.Advance(time.Minute)
	require.Equal(t, http.StatusOK, n.Do(http.MethodDelete, "/topicmaps/m/topics?si="+served.PSI+"oslo", nil).StatusCode)
	find := "/topicmaps/m/topics?si=" + served.PSI + "oslo"
	assert.Equal(t, http.StatusNotFound, n.Get(find).StatusCode)
	led := n.Get(find + "&at=" + before)
	require.Equal(t, http.StatusSeeOther, led.StatusCode, "%s", led.Bytes)
	assert.Contains(t, string(n.MustGet(led.Header.Get("Location")).Bytes), "Oslo")
}
