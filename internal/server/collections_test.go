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
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

func (n *node) remove(name string, headers ...string) served.Answer {
	n.T.Helper()
	return n.Do(http.MethodDelete, "/topicmaps/"+name, nil, headers...)
}

// errors returns the logged failures of the server.
func (n *node) errors() (lines []string) {
	for line := range strings.Lines(n.Logs.String()) {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return lines
}

func settingsIn(t testing.TB, a served.Answer) map[string]any {
	t.Helper()
	require.Equal(t, "application/json", a.MediaType(), "%s", a.Bytes)
	var s map[string]any
	require.NoError(t, json.Unmarshal(a.Bytes, &s))
	return s
}

func (n *node) tag(name string, headers ...string) string {
	n.T.Helper()
	return n.MustGet("/topicmaps/"+name, headers...).Header.Get("ETag")
}

// A collection without publications is served by all feeds.
func TestCollectionIsCreatedEmptyAndFilled(t *testing.T) {
	t.Parallel()
	n := start(t)
	a := n.PutSettings("towns", `{"title": "Towns", "summary": "Some towns of Norway", "documentSize": 7, "keepFor": "48h"}`)
	require.Equal(t, http.StatusCreated, a.StatusCode, "%s", a.Bytes)
	assert.Equal(t, n.URL("/topicmaps/towns"), a.Header.Get("Location"))
	want := map[string]any{
		"title": "Towns", "summary": "Some towns of Norway", "language": "", "sp": n.SP("towns"), "documentSize": 7.0, "omitInstances": false, "recordFormats": []any{}, "rdf": false,
		"snapshotEvery": 0.0, "snapshotAfter": "0s", "snapshotsKept": 0.0, "keepEntries": 0.0, "keepFor": "48h0m0s",
		"resourceSync": true, "mirrors": []any{}, "via": "", "changesPerList": 0.0, "changeListAfter": "0s", "sign": "",
	}
	assert.Equal(t, want, settingsIn(t, a))
	assert.Equal(t, want, settingsIn(t, n.MustGet("/topicmaps/towns/settings")))

	overview := n.Feed("/topicmaps")
	require.Len(t, overview.Entries, 1)
	assert.Equal(t, "Towns", overview.Entries[0].Titles[0])
	assert.Contains(t, overview.Raw, "<summary>Some towns of Norway</summary>")
	d := n.Feed("/topicmaps/towns")
	assert.Len(t, d.Entries, 2)
	assert.Contains(t, d.Raw, "Some towns of Norway")
	assert.Empty(t, n.Feed("/topicmaps/towns/fragments").Entries)
	snapshots := n.Feed("/topicmaps/towns/snapshots")
	require.Len(t, snapshots.Entries, 1, "of the empty map")
	for _, href := range snapshots.Entries[0].Typed(t, "topicmapdata") {
		assert.Equal(t, n.Expected("towns", served.TopicMap()), served.Canonical(t, n.MustGet(href).Bytes, n.SP("towns")))
	}
	assert.Equal(t, n.Expected("towns", served.TopicMap()), n.Current("towns"))

	p := n.MustPut("towns", served.Small())
	assert.Equal(t, 10, p.Added)
	assert.Equal(t, n.Expected("towns", served.Small()), n.Current("towns"))
	assert.Len(t, n.Feed("/topicmaps/towns/fragments").Entries, 3, "the second document of seven")
}

func TestSettingsAreChangedAndTheRestStays(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	before := n.State("small")
	a := n.PutSettings("small", `{"title": "Towns", "omitInstances": true, "snapshotAfter": "90m"}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	s := settingsIn(t, a)
	assert.Equal(t, []any{"Towns", true, "1h30m0s", n.SP("small"), "", 100.0}, []any{s["title"], s["omitInstances"], s["snapshotAfter"], s["sp"], s["summary"], s["documentSize"]})
	assert.Equal(t, feedTime(c), n.Feed("/topicmaps/small").Updated(), "nothing is published")
	assert.NotEqual(t, before["/small"], n.State("small")["/small"], "the title shows")

	a = n.PutSettings("small", `{"title": "", "sp": "`+n.SP("small")+`", "summary": null}`)
	require.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	s = settingsIn(t, a)
	assert.Equal(t, []any{"", true}, []any{s["title"], s["omitInstances"]})
	assert.Equal(t, before, n.State("small"))
}

func TestSettingsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	before := n.MustGet("/topicmaps/small/settings").Bytes
	for _, c := range []struct {
		name, settings string
		status         int
		says           string
	}{
		{"small", ``, 400, "not JSON"},
		{"small", `{"title": "x"`, 400, "not JSON"},
		{"small", `{"title": "x"} {}`, 400, "not JSON"},
		{"small", `<topicMap/>`, 400, "not JSON"},
		{"small", `{"title": "a\ud800"}`, 422, `\ud800 is half of a surrogate pair, which is no character`},
		{"small", `{"title": "\ud83d\ude00", "x\udc00": 1}`, 422, `\udc00 is half of a surrogate pair`},
		{"small", "{\"title\": \"\xff\"}", 422, "not UTF-8"},
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
		a := n.PutSettings(c.name, c.settings, "Accept", "text/plain")
		assert.Equal(t, c.status, a.StatusCode, "%.80s: %s", c.settings, a.Bytes)
		assert.Contains(t, string(a.Bytes), c.says, "%.80s", c.settings)
	}
	a := n.PutSettings("small", `{"title": "x"}`, "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusUnsupportedMediaType, a.StatusCode)
	assert.Equal(t, before, n.MustGet("/topicmaps/small/settings").Bytes)
	assert.Len(t, n.Feed("/topicmaps").Entries, 1)
	assert.Equal(t, http.StatusNotFound, n.Get("/topicmaps/none/settings").StatusCode)
}

// Characters that JSON allows and Atom does not must not break the feeds.
func TestTitlesThatXMLCannotHave(t *testing.T) {
	t.Parallel()
	n := start(t)
	for i, title := range []string{`\u0000\u0001`, `<b>&\"`, `a\nb`, `\ud800`, `東京`} {
		name := fmt.Sprintf("map-%d", i)
		a := n.PutSettings(name, `{"title": "`+title+`", "summary": "`+title+`"}`)
		assert.Contains(t, []int{http.StatusCreated, http.StatusUnprocessableEntity}, a.StatusCode, "%s", a.Bytes)
	}
	assert.NotEmpty(t, n.Feed("/topicmaps").Entries)
}

func TestDeletedCollectionIsGoneAndTheNextOneIsAnother(t *testing.T) {
	t.Parallel()
	n := start(t)
	c := n.Publish("small", served.Small())
	n.Publish("other", maps.Libraries)
	other := n.MustGet("/topicmaps/other/snapshots/current.xtm21").Bytes
	_, documents := n.History("/topicmaps/small/fragments")
	urls := []string{"/topicmaps/small", "/topicmaps/small/fragments", "/topicmaps/small/snapshots", "/topicmaps/small/settings", "/topicmaps/small/snapshots/current", "/topicmaps/small.atom"}
	for _, d := range documents {
		for _, e := range d.Entries {
			urls = append(urls, e.Typed(t, "topicmapdata")[served.XTM21Type])
		}
	}
	for _, e := range n.Feed("/topicmaps/small/snapshots").Entries {
		urls = append(urls, e.Typed(t, "topicmapdata")[served.XTM21Type])
	}
	require.Greater(t, len(urls), 10)
	id := n.Feed("/topicmaps/small/fragments").ID()
	assert.Equal(t, publish.Published{Collection: "small", Deleted: c.Topics}, served.Published(t, n.remove("small")))
	for _, url := range urls {
		assert.Equal(t, http.StatusGone, n.Get(url).StatusCode, url)
	}
	assert.Equal(t, http.StatusGone, n.remove("small").StatusCode)
	assert.Equal(t, http.StatusNotFound, n.Put("small", served.Small()).StatusCode)
	assert.Len(t, n.Feed("/topicmaps").Entries, 1)

	require.Equal(t, http.StatusCreated, n.PutSettings("small", `{}`).StatusCode)
	n.MustPut("small", served.Small())
	assert.NotEqual(t, id, n.Feed("/topicmaps/small/fragments").ID(), "a history of its own")
	for _, url := range urls[6:] {
		assert.Equal(t, http.StatusNotFound, n.Get(url).StatusCode, "of the former one: %s", url)
	}
	assert.Equal(t, n.Expected("small", served.Small()), n.Current("small"))
	assert.Equal(t, other, n.MustGet("/topicmaps/other/snapshots/current.xtm21").Bytes)
	assert.Empty(t, n.errors())
}

// Readers and writers of a collection that is deleted and created again get a whole answer, or 404.
func TestCollectionGoesWhileOthersReadAndWrite(t *testing.T) {
	t.Parallel()
	n := start(t, every(3))
	var done atomic.Bool
	var others sync.WaitGroup
	var found, missed atomic.Int64
	try := func(send func() served.Answer) {
		others.Go(func() {
			for !done.Load() {
				switch a := send(); a.StatusCode {
				case http.StatusOK:
					found.Add(1)
				case http.StatusNotFound, http.StatusConflict, http.StatusGone:
					missed.Add(1)
				default:
					assert.Fail(t, "an answer", "%s %s: %d %s", a.Request.Method, a.Request.URL, a.StatusCode, a.Bytes)
					return
				}
			}
		})
	}
	try(func() served.Answer { return n.Get("/topicmaps/small/fragments") })
	try(func() served.Answer { return n.Get("/topicmaps/small/snapshots/current.xtm21") })
	try(func() served.Answer { return n.Put("small", served.Small("Oslo", fmt.Sprint(found.Load()))) })
	try(func() served.Answer {
		return n.postTopics("small", served.TopicMap(served.Topic("new", fmt.Sprint(missed.Load()))), nil)
	})
	for i := 0; i < 60 || found.Load() == 0 || missed.Load() == 0; i++ {
		a := n.PutSettings("small", `{}`)
		assert.Equal(t, http.StatusCreated, a.StatusCode, "%s", a.Bytes)
		a = n.remove("small")
		assert.Equal(t, http.StatusOK, a.StatusCode, "%s", a.Bytes)
	}
	done.Store(true)
	others.Wait()
	assert.Empty(t, n.Feed("/topicmaps").Entries)
	assert.Empty(t, n.errors())
}

// Of two that create a collection at once, one does, and both have it.
func TestCollectionIsCreatedOnce(t *testing.T) {
	t.Parallel()
	n := start(t)
	for i := range 10 {
		var both sync.WaitGroup
		answers := make([]served.Answer, 4)
		for j := range answers {
			both.Go(func() { answers[j] = n.PutSettings(fmt.Sprint("map", i), `{"title": "T"}`) })
		}
		both.Wait()
		created := 0
		for _, a := range answers {
			require.Contains(t, []int{http.StatusOK, http.StatusCreated}, a.StatusCode, "%s", a.Bytes)
			if a.StatusCode == http.StatusCreated {
				created++
			}
		}
		assert.Equal(t, 1, created)
	}
}

// The ETag of the Topic Map Feed, in any coding, lets one of several writers write: the others would overwrite changes
// that they have not seen.
func TestOneOfTheWritersWithTheSameETagWins(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	for name, write := range map[string]func(i int, tag string) served.Answer{
		"PUT": func(i int, tag string) served.Answer {
			return n.Put("small", served.Small("Oslo", fmt.Sprint(i)), "If-Match", tag)
		},
		"POST": func(i int, tag string) served.Answer {
			return n.postTopics("small", served.TopicMap(served.Topic("tromsø", fmt.Sprint(i))), nil, "If-Match", tag)
		},
		"settings": func(i int, tag string) served.Answer {
			return n.PutSettings("small", fmt.Sprintf(`{"title": "%d"}`, i), "If-Match", tag)
		},
		"one of each": func(i int, tag string) served.Answer {
			if i%2 == 0 {
				return n.Put("small", served.Small("Bergen", fmt.Sprint(i)), "If-Match", tag)
			}
			return n.Delete("small", served.PSI+"tromsø", "If-Match", tag)
		},
	} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			n.MustPut("small", served.Small())
			n.PutSettings("small", `{"title": ""}`)
			tag := n.tag("small", "Accept-Encoding", coding)
			answers := make([]served.Answer, 6)
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
					assert.Contains(t, string(a.Bytes), "has changed since")
				default:
					assert.Fail(t, "an answer", "%d %s", a.StatusCode, a.Bytes)
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
	n.Publish("small", served.Small())
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
		for what, a := range map[string]served.Answer{
			"PUT":      n.Put("small", served.Small(), c.header, c.value),
			"POST":     n.postTopics("small", served.TopicMap(served.Topic("tromsø", "Tromsø")), nil, c.header, c.value),
			"settings": n.PutSettings("small", `{}`, c.header, c.value),
			"DELETE":   n.Do(http.MethodDelete, "/topicmaps/small/topics?si="+served.PSI+"oslo!", nil, c.header, c.value),
		} {
			if want := c.status; what == "DELETE" {
				assert.Equal(t, http.StatusNotFound, a.StatusCode)
			} else {
				assert.Equal(t, want, a.StatusCode, "%s %s: %s: %s", what, c.header, c.value, a.Bytes)
			}
		}
	}
	assert.Equal(t, http.StatusPreconditionFailed, n.remove("small", "If-Match", `"x"`).StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, n.PutSettings("none", `{}`, "If-Match", "*").StatusCode)
	assert.Equal(t, tag, n.tag("small"), "nothing has changed")

	before := n.Get("/topicmaps/small/settings")
	assert.Equal(t, http.StatusOK, n.PutSettings("small", `{"keepEntries": 10}`, "If-Match", before.Header.Get("ETag")).StatusCode)
	assert.Equal(t, http.StatusPreconditionFailed, n.PutSettings("small", `{"keepEntries": 20}`, "If-Match", before.Header.Get("ETag")).StatusCode, "no feed shows this one")

	// Reading is conditional, too.
	now := n.MustGet("/topicmaps/small/settings").Header.Get("ETag")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		for headers, want := range map[[2]string]int{
			{"If-None-Match", now}:                       http.StatusNotModified,
			{"If-None-Match", "W/" + now}:                http.StatusNotModified,
			{"If-None-Match", before.Header.Get("ETag")}: http.StatusOK,
			{"If-Match", now}:                            http.StatusOK,
			{"If-Match", before.Header.Get("ETag")}:      http.StatusPreconditionFailed,
		} {
			a := n.Do(method, "/topicmaps/small/settings", nil, headers[:]...)
			assert.Equal(t, want, a.StatusCode, "%s %v", method, headers)
			if want == http.StatusNotModified {
				assert.Empty(t, a.Bytes)
				assert.Equal(t, now, a.Header.Get("ETag"))
			}
		}
	}
	assert.Equal(t, http.StatusCreated, n.PutSettings("new", `{}`, "If-None-Match", "*").StatusCode)
	assert.Equal(t, http.StatusOK, n.remove("small", "If-Match", n.tag("small")).StatusCode)
}

// A document that came while the collection was exchanged for another of the name
// was read on the prefix of the first.
func TestDocumentIsNotPublishedToAnotherCollectionOfTheName(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Small())
	body, w := io.Pipe()
	answered := make(chan served.Answer)
	// The body is sent once the server wants it: then it has looked at the collection.
	go func() { answered <- n.Do(http.MethodPut, "/topicmaps/small", body, "Expect", "100-continue") }()
	_, err := w.Write(served.Small()[:200])
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, n.remove("small").StatusCode)
	require.Equal(t, http.StatusCreated, n.PutSettings("small", `{"sp": "http://another.example.org/"}`).StatusCode)
	_, err = w.Write(served.Small()[200:])
	require.NoError(t, err)
	require.NoError(t, w.Close())
	a := <-answered
	assert.Equal(t, http.StatusConflict, a.StatusCode, "%s", a.Bytes)
	assert.Empty(t, n.Feed("/topicmaps/small/fragments").Entries)
}

func TestWaysInNeedATokenWhereThereIsOne(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	n := start(t, func(c *server.Config) { c.Tokens = []string{token} })
	n.AnswerGuessesAfter(time.Millisecond)
	n.Publish("small", served.Small())
	before := n.State("small")
	requests := map[string]func(headers ...string) served.Answer{
		"PUT": func(h ...string) served.Answer { return n.Put("small", served.Small("Oslo", "x"), h...) },
		"POST": func(h ...string) served.Answer {
			return n.postTopics("small", served.TopicMap(served.Topic("oslo", "x")), nil, h...)
		},
		"DELETE": func(h ...string) served.Answer { return n.Delete("small", served.PSI+"tromsø", h...) },
		"DELETE ?si=": func(h ...string) served.Answer {
			return n.Do("DELETE", "/topicmaps/small/topics?si="+served.PSI+"bergen", nil, h...)
		},
		"PUT settings": func(h ...string) served.Answer { return n.PutSettings("small", `{"title": "x"}`, h...) },
		"PUT new":      func(h ...string) served.Answer { return n.PutSettings("new", `{}`, h...) },
		"snapshot":     func(h ...string) served.Answer { return n.Post("/topicmaps/small/snapshots", h...) },
		"gc":           func(h ...string) served.Answer { return n.Post("/topicmaps/small/gc", h...) },
		"DELETE map":   func(h ...string) served.Answer { return n.remove("small", h...) },
	}
	for name, send := range requests {
		a := send()
		assert.Equal(t, http.StatusUnauthorized, a.StatusCode, name)
		assert.Contains(t, a.Header.Get("WWW-Authenticate"), "Bearer", name)
		assert.Equal(t, http.StatusUnauthorized, send("Authorization", "Bearer fedcba9876543210").StatusCode, name)
	}
	assert.Equal(t, before, n.State("small"))
	for _, name := range []string{"PUT", "POST", "DELETE", "DELETE ?si=", "PUT settings", "PUT new", "snapshot", "gc", "DELETE map"} {
		a := requests[name]("Authorization", "Bearer "+token)
		assert.Less(t, a.StatusCode, 300, "%s: %s", name, bytes.TrimSpace(a.Bytes))
	}
}
