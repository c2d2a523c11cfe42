package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func (n *node) putSettings(name, settings string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodPut, "/topicmaps/"+name, strings.NewReader(settings), append([]string{"Content-Type", "application/json"}, headers...)...)
}

// mustSet changes settings of a collection that is there.
func (n *node) mustSet(name, settings string) {
	n.t.Helper()
	a := n.putSettings(name, settings)
	require.Equal(n.t, http.StatusOK, a.StatusCode, "%s", a.body)
}

func (n *node) remove(name string, headers ...string) answer {
	n.t.Helper()
	return n.do(http.MethodDelete, "/topicmaps/"+name, nil, headers...)
}

// errors returns what the log says of failures of the server.
func (n *node) errors() (lines []string) {
	for line := range strings.Lines(n.logs.String()) {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return lines
}

func settingsIn(t testing.TB, a answer) map[string]any {
	t.Helper()
	require.Equal(t, "application/json", a.mediaType(), "%s", a.body)
	var s map[string]any
	require.NoError(t, json.Unmarshal(a.body, &s))
	return s
}

func (n *node) tag(name string, headers ...string) string {
	n.t.Helper()
	return n.mustGet("/topicmaps/"+name, headers...).Header.Get("ETag")
}

// A collection that nothing was ever published to is served by all feeds.
func TestCollectionIsCreatedEmptyAndFilled(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.putSettings("towns", `{"title": "Towns", "summary": "Some towns of Norway", "documentSize": 7, "keepFor": "48h"}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, "%s", a.body)
	assert.Equal(t, n.url("/topicmaps/towns"), a.Header.Get("Location"))
	want := map[string]any{
		"title": "Towns", "summary": "Some towns of Norway", "sp": n.sp("towns"), "documentSize": 7.0, "omitInstances": false, "recordFormats": []any{}, "rdf": false,
		"snapshotEvery": 0.0, "snapshotAfter": "0s", "snapshotsKept": 0.0, "keepEntries": 0.0, "keepFor": "48h0m0s",
		"resourceSync": true, "mirrors": []any{}, "via": "", "changesPerList": 0.0, "changeListAfter": "0s", "sign": "",
	}
	assert.Equal(t, want, settingsIn(t, a))
	assert.Equal(t, want, settingsIn(t, n.mustGet("/topicmaps/towns/settings")))

	overview := n.feed("/topicmaps")
	require.Len(t, overview.Entries, 1)
	assert.Equal(t, "Towns", overview.Entries[0].Titles[0])
	assert.Contains(t, overview.raw, "<summary>Some towns of Norway</summary>")
	d := n.feed("/topicmaps/towns")
	assert.Len(t, d.Entries, 2)
	assert.Contains(t, d.raw, "Some towns of Norway")
	assert.Empty(t, n.feed("/topicmaps/towns/fragments").Entries)
	snapshots := n.feed("/topicmaps/towns/snapshots")
	require.Len(t, snapshots.Entries, 1, "of the empty map")
	for _, href := range snapshots.Entries[0].typed(t, "topicmapdata") {
		assert.Equal(t, n.expected("towns", topicMap()), canonical(t, n.mustGet(href).body, n.sp("towns")))
	}
	assert.Equal(t, n.expected("towns", topicMap()), n.current("towns"))

	p := n.mustPut("towns", small())
	assert.Equal(t, 10, p.Added)
	assert.Equal(t, n.expected("towns", small()), n.current("towns"))
	assert.Len(t, n.feed("/topicmaps/towns/fragments").Entries, 3, "the second document of seven")
}

func TestSettingsAreChangedAndTheRestStays(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	before := n.state("small")
	a := n.putSettings("small", `{"title": "Towns", "omitInstances": true, "snapshotAfter": "90m"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	s := settingsIn(t, a)
	assert.Equal(t, []any{"Towns", true, "1h30m0s", n.sp("small"), "", 100.0}, []any{s["title"], s["omitInstances"], s["snapshotAfter"], s["sp"], s["summary"], s["documentSize"]})
	assert.Equal(t, feedTime(c), n.feed("/topicmaps/small").updated(), "nothing is published")
	assert.NotEqual(t, before["/small"], n.state("small")["/small"], "the title shows")

	a = n.putSettings("small", `{"title": "", "sp": "`+n.sp("small")+`", "summary": null}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	s = settingsIn(t, a)
	assert.Equal(t, []any{"", true}, []any{s["title"], s["omitInstances"]})
	assert.Equal(t, before, n.state("small"))
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	before := n.mustGet("/topicmaps/small/settings").body
	for _, c := range []struct {
		name, settings string
		status         int
		says           string
	}{
		{"small", ``, 400, "not JSON"},
		{"small", `{"title": "x"`, 400, "not JSON"},
		{"small", `{"title": "x"} {}`, 400, "not JSON"},
		{"small", `<topicMap/>`, 400, "not JSON"},
		{"small", `["x"]`, 422, "array"},
		{"small", `{"titel": "x"}`, 422, "titel"},
		{"small", `{"title": 1}`, 422, "title cannot be a JSON number"},
		{"small", `{"documentSize": "10"}`, 422, "documentSize cannot be a JSON string"},
		{"small", `{"documentSize": 1.5}`, 422, "documentSize cannot be a JSON number"},
		{"small", `{"documentSize": -1}`, 422, "documentSize (--document-size) is negative"},
		{"small", `{"snapshotsKept": -1}`, 422, "negative"},
		{"small", `{"keepEntries": -1}`, 422, "keepEntries cannot be a JSON number -1"},
		{"small", `{"keepFor": "-1h"}`, 422, "negative"},
		{"small", `{"keepFor": "a week"}`, 422, "a week"},
		{"small", `{"keepFor": 3600}`, 422, "keepFor"},
		{"small", `{"sp": "http://other.example.org/"}`, 409, "for ever"},
		{"small", `{"title": "` + strings.Repeat("x", 70_000) + `"}`, 413, "65536"},
		{"new", `{"sp": "other"}`, 422, "absolute IRI"},
		{"new", `{"sp": "http://other.example.org/x"}`, 422, "must end in"},
		{"new", `{"documentSize": -1}`, 422, "negative"},
		{"a%20map", `{}`, 422, "letters"},
		{"new", `{`, 400, "not JSON"},
	} {
		a := n.putSettings(c.name, c.settings, "Accept", "text/plain")
		assert.Equal(t, c.status, a.StatusCode, "%.80s: %s", c.settings, a.body)
		assert.Contains(t, string(a.body), c.says, "%.80s", c.settings)
	}
	a := n.putSettings("small", `{"title": "x"}`, "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
	assert.Equal(t, before, n.mustGet("/topicmaps/small/settings").body)
	assert.Len(t, n.feed("/topicmaps").Entries, 1)
	assert.Equal(t, http.StatusNotFound, n.get("/topicmaps/none/settings").StatusCode)
}

// What JSON can say and Atom cannot must not break the feeds.
func TestTitlesThatXMLCannotHave(t *testing.T) {
	t.Parallel()
	n := start(t)
	for i, title := range []string{`\u0000\u0001`, `<b>&\"`, `a\nb`, `\ud800`, `東京`} {
		name := fmt.Sprintf("map-%d", i)
		a := n.putSettings(name, `{"title": "`+title+`", "summary": "`+title+`"}`)
		assert.Contains(t, []int{http.StatusCreated, http.StatusUnprocessableEntity}, a.StatusCode, "%s", a.body)
	}
	assert.NotEmpty(t, n.feed("/topicmaps").Entries)
}

func TestDeletedCollectionIsGoneAndTheNextOneIsAnother(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.publish("small", small())
	n.publish("other", maps.Libraries)
	other := n.mustGet("/topicmaps/other/snapshots/current.xtm21").body
	_, documents := n.history("/topicmaps/small/fragments")
	urls := []string{"/topicmaps/small", "/topicmaps/small/fragments", "/topicmaps/small/snapshots", "/topicmaps/small/settings", "/topicmaps/small/snapshots/current", "/topicmaps/small.atom"}
	for _, d := range documents {
		for _, e := range d.Entries {
			urls = append(urls, e.typed(t, "topicmapdata")[xtm21Type])
		}
	}
	for _, e := range n.feed("/topicmaps/small/snapshots").Entries {
		urls = append(urls, e.typed(t, "topicmapdata")[xtm21Type])
	}
	require.Greater(t, len(urls), 10)
	id := n.feed("/topicmaps/small/fragments").id()
	assert.Equal(t, publish.Published{Collection: "small", Deleted: c.Topics}, published(t, n.remove("small")))
	for _, url := range urls {
		assert.Equal(t, http.StatusNotFound, n.get(url).StatusCode, url)
	}
	assert.Equal(t, http.StatusNotFound, n.remove("small").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.put("small", small()).StatusCode)
	assert.Len(t, n.feed("/topicmaps").Entries, 1)

	require.Equal(t, http.StatusCreated, n.putSettings("small", `{}`).StatusCode)
	n.mustPut("small", small())
	assert.NotEqual(t, id, n.feed("/topicmaps/small/fragments").id(), "a history of its own")
	for _, url := range urls[6:] {
		assert.Equal(t, http.StatusNotFound, n.get(url).StatusCode, "of the former one: %s", url)
	}
	assert.Equal(t, n.expected("small", small()), n.current("small"))
	assert.Equal(t, other, n.mustGet("/topicmaps/other/snapshots/current.xtm21").body)
	assert.Empty(t, n.errors())
}

// Whoever reads or writes while a collection comes and goes gets a whole answer,
// or is told that it is not there.
func TestCollectionGoesWhileOthersReadAndWrite(t *testing.T) {
	t.Parallel()
	n := start(t, every(3))
	var done atomic.Bool
	var others sync.WaitGroup
	var found, missed atomic.Int64
	try := func(send func() answer) {
		others.Go(func() {
			for !done.Load() {
				switch a := send(); a.StatusCode {
				case http.StatusOK:
					found.Add(1)
				case http.StatusNotFound, http.StatusConflict, http.StatusGone:
					missed.Add(1)
				default:
					assert.Fail(t, "an answer", "%s %s: %d %s", a.Request.Method, a.Request.URL, a.StatusCode, a.body)
					return
				}
			}
		})
	}
	try(func() answer { return n.get("/topicmaps/small/fragments") })
	try(func() answer { return n.get("/topicmaps/small/snapshots/current.xtm21") })
	try(func() answer { return n.put("small", small("Oslo", fmt.Sprint(found.Load()))) })
	try(func() answer {
		return n.postTopics("small", topicMap(topic("new", fmt.Sprint(missed.Load()))), nil)
	})
	for i := 0; i < 60 || found.Load() == 0 || missed.Load() == 0; i++ {
		a := n.putSettings("small", `{}`)
		assert.Equal(t, http.StatusCreated, a.StatusCode, "%s", a.body)
		a = n.remove("small")
		assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.body)
	}
	done.Store(true)
	others.Wait()
	assert.Empty(t, n.feed("/topicmaps").Entries)
	assert.Empty(t, n.errors())
}

// Of two that create a collection at once, one does, and both have it.
func TestCollectionIsCreatedOnce(t *testing.T) {
	t.Parallel()
	n := start(t)
	for i := range 10 {
		var both sync.WaitGroup
		answers := make([]answer, 4)
		for j := range answers {
			both.Go(func() { answers[j] = n.putSettings(fmt.Sprint("map", i), `{"title": "T"}`) })
		}
		both.Wait()
		created := 0
		for _, a := range answers {
			require.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.StatusCode, "%s", a.body)
			if a.StatusCode == http.StatusCreated {
				created++
			}
		}
		assert.Equal(t, 1, created)
	}
}

// The ETag of the Topic Map Feed, however it was got, lets one of several writers
// write: the others would write over what they have not seen.
func TestOneOfTheWritersWithTheSameETagWins(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	for name, write := range map[string]func(i int, tag string) answer{
		"PUT": func(i int, tag string) answer { return n.put("small", small("Oslo", fmt.Sprint(i)), "If-Match", tag) },
		"POST": func(i int, tag string) answer {
			return n.postTopics("small", topicMap(topic("tromsø", fmt.Sprint(i))), nil, "If-Match", tag)
		},
		"settings": func(i int, tag string) answer {
			return n.putSettings("small", fmt.Sprintf(`{"title": "%d"}`, i), "If-Match", tag)
		},
		"one of each": func(i int, tag string) answer {
			if i%2 == 0 {
				return n.put("small", small("Bergen", fmt.Sprint(i)), "If-Match", tag)
			}
			return n.delete("small", psi+"tromsø", "If-Match", tag)
		},
	} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			n.mustPut("small", small())
			n.putSettings("small", `{"title": ""}`)
			tag := n.tag("small", "Accept-Encoding", coding)
			answers := make([]answer, 6)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = write(i+1, tag) })
			}
			all.Wait()
			won := 0
			for _, a := range answers {
				switch a.StatusCode {
				case http.StatusOK:
					won++
				case http.StatusPreconditionFailed:
					assert.Contains(t, string(a.body), "has changed since")
				default:
					assert.Fail(t, "an answer", "%d %s", a.StatusCode, a.body)
				}
			}
			assert.Equal(t, 1, won, "%s, %s", name, coding)
			assert.NotEqual(t, tag, n.tag("small", "Accept-Encoding", coding))
		}
	}
}

func TestIfMatchOnWrites(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	tag := n.tag("small")
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"If-Match", tag, 200}, {"If-Match", `"x", ` + tag, 200}, {"If-Match", "*", 200},
		{"If-Match", `"x"`, 412}, {"If-Match", "W/" + tag, 412}, {"If-Match", strings.Trim(tag, `"`), 412},
		{"If-Match", strings.TrimSuffix(tag, `"`) + `-br"`, 412}, {"If-None-Match", "*", 412}, {"If-None-Match", `"x"`, 200},
		{"If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT", 412}, {"If-Unmodified-Since", "Sat, 01 Jan 2050 00:00:00 GMT", 200},
	} {
		for what, a := range map[string]answer{
			"PUT":      n.put("small", small(), c.header, c.value),
			"POST":     n.postTopics("small", topicMap(topic("tromsø", "Tromsø")), nil, c.header, c.value),
			"settings": n.putSettings("small", `{}`, c.header, c.value),
			"DELETE":   n.do(http.MethodDelete, "/topicmaps/small/topics?si="+psi+"oslo!", nil, c.header, c.value),
		} {
			if want := c.status; what == "DELETE" {
				assert.Equal(t, http.StatusNotFound, a.StatusCode)
			} else {
				assert.Equal(t, want, a.StatusCode, "%s %s: %s: %s", what, c.header, c.value, a.body)
			}
		}
	}
	assert.Equal(t, http.StatusPreconditionFailed, n.remove("small", "If-Match", `"x"`).StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, n.putSettings("none", `{}`, "If-Match", "*").StatusCode)
	assert.Equal(t, tag, n.tag("small"), "nothing has changed")

	before := n.get("/topicmaps/small/settings")
	assert.Equal(t, http.StatusOK, n.putSettings("small", `{"keepEntries": 10}`, "If-Match", before.Header.Get("ETag")).StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, n.putSettings("small", `{"keepEntries": 20}`, "If-Match", before.Header.Get("ETag")).StatusCode, "no feed shows this one")

	// Reading is conditional, too.
	now := n.mustGet("/topicmaps/small/settings").Header.Get("ETag")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for headers, want := range map[[2]string]int{
			{"If-None-Match", now}:                       http.StatusNotModified,
			{"If-None-Match", "W/" + now}:                http.StatusNotModified,
			{"If-None-Match", before.Header.Get("ETag")}: http.StatusOK,
			{"If-Match", now}:                            http.StatusOK,
			{"If-Match", before.Header.Get("ETag")}:      http.StatusPreconditionFailed,
		} {
			a := n.do(method, "/topicmaps/small/settings", nil, headers[:]...)
			assert.Equal(t, want, a.StatusCode, "%s %v", method, headers)
			if want == http.StatusNotModified {
				assert.Empty(t, a.body)
				assert.Equal(t, now, a.Header.Get("ETag"))
			}
		}
	}
	assert.Equal(t, http.StatusCreated, n.putSettings("new", `{}`, "If-None-Match", "*").StatusCode)
	assert.Equal(t, http.StatusOK, n.remove("small", "If-Match", n.tag("small")).StatusCode)
}

// A document that came while the collection was exchanged for another of the name
// was read on the prefix of the first.
func TestDocumentIsNotPublishedToAnotherCollectionOfTheName(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.publish("small", small())
	body, w := io.Pipe()
	answered := make(chan answer)
	// The body is sent once the server wants it: then it has looked at the collection.
	go func() { answered <- n.do(http.MethodPut, "/topicmaps/small", body, "Expect", "100-continue") }()
	_, err := w.Write(small()[:200])
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, n.remove("small").StatusCode)
	require.Equal(t, http.StatusCreated, n.putSettings("small", `{"sp": "http://another.example.org/"}`).StatusCode)
	_, err = w.Write(small()[200:])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	a := <-answered
	assert.Equal(t, http.StatusConflict, a.StatusCode, "%s", a.body)
	assert.Empty(t, n.feed("/topicmaps/small/fragments").Entries)
}

func TestWaysInNeedATokenWhereThereIsOne(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := start(t, func(c *server.Config) { c.Tokens = []string{token} })
	n.AnswerGuessesAfter(time.Millisecond)
	n.publish("small", small())
	before := n.state("small")
	requests := map[string]func(headers ...string) answer{
		"PUT":          func(h ...string) answer { return n.put("small", small("Oslo", "x"), h...) },
		"POST":         func(h ...string) answer { return n.postTopics("small", topicMap(topic("oslo", "x")), nil, h...) },
		"DELETE":       func(h ...string) answer { return n.delete("small", psi+"tromsø", h...) },
		"DELETE ?si=":  func(h ...string) answer { return n.do("DELETE", "/topicmaps/small/topics?si="+psi+"bergen", nil, h...) },
		"PUT settings": func(h ...string) answer { return n.putSettings("small", `{"title": "x"}`, h...) },
		"PUT new":      func(h ...string) answer { return n.putSettings("new", `{}`, h...) },
		"snapshot":     func(h ...string) answer { return n.post("/topicmaps/small/snapshots", h...) },
		"gc":           func(h ...string) answer { return n.post("/topicmaps/small/gc", h...) },
		"DELETE map":   func(h ...string) answer { return n.remove("small", h...) },
	}
	for name, send := range requests {
		a := send()
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, name)
		assert.Contains(t, a.Header.Get("WWW-Authenticate"), "Bearer", name)
		assert.Equal(t, http.StatusUnauthorized, send("Authorization", "Bearer fedcba9876543210").StatusCode, name)
	}
	assert.Equal(t, before, n.state("small"))
	for _, name := range []string{"PUT", "POST", "DELETE", "DELETE ?si=", "PUT settings", "PUT new", "snapshot", "gc", "DELETE map"} {
		a := requests[name]("Authorization", "Bearer "+token)
		assert.Less(t, a.StatusCode, 300, "%s: %s", name, bytes.TrimSpace(a.body))
	}
}
