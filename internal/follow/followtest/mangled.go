package followtest

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// mangled is a fault that hides entries of the documents with changes.
type mangled struct {
	name string
	// change changes a document. recent marks the first one.
	change func(body string, recent bool) string
	old    bool // documents are as they were before the last publication
	aged   bool // and caches send their age
}

// without removes the entries of a document for which drop returns true, by their places.
func without(body string, drop func(i, n int) bool) string {
	n, i := len(faults.Entry.FindAllString(body, -1)), -1
	return faults.Entry.ReplaceAllStringFunc(body, func(e string) string {
		if i++; drop(i, n) {
			return ""
		}
		return e
	})
}

func inRecent(drop func(i, n int) bool, link bool) func(string, bool) string {
	return func(body string, recent bool) string {
		if !recent {
			return body
		}
		if !link {
			body = faults.PrevLink.ReplaceAllString(body, "")
		}
		return without(body, drop)
	}
}

func inEach(drop func(i, n int) bool) func(string, bool) string {
	return func(body string, _ bool) string { return without(body, drop) }
}

var mangling = []mangled{
	{name: "empty", change: inRecent(func(int, int) bool { return true }, false)},
	{name: "empty, with the rest behind it", change: inRecent(func(int, int) bool { return true }, true)},
	{name: "one entry left", change: inRecent(func(i, _ int) bool { return i > 0 }, false)},
	{name: "first entries gone", change: inEach(func(i, n int) bool { return i < min(3, n-1) })},
	{name: "middle entries gone", change: inEach(func(i, n int) bool { return i > 0 && i < n-1 })},
	{name: "last entries gone", change: inEach(func(i, n int) bool { return i >= max(1, n-3) })},
	{name: "no link to what is behind", change: inRecent(func(int, int) bool { return false }, false)},
	{name: "moved between documents", change: inRecent(func(i, n int) bool { return n > 1 && i == n-1 }, true)},
	{name: "old", old: true},
	{name: "old, by caches that say how old", old: true, aged: true},
}

// answered is a document at a time.
type answered struct {
	header http.Header
	body   string
	at     time.Time
}

// answer answers with the documents as they are mangled now, at the time that it is.
func (d *doubting) answer(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if packages(r) || strings.Contains(r.URL.Path, "resourcedump") || strings.Contains(r.URL.Path, "changedump") {
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	if d.source.Record(r) != "" {
		return false
	}
	singly(r)
	plain := r.Clone(r.Context())
	for _, h := range []string{"If-None-Match", "If-Modified-Since", "Range", "If-Range", "Prefer"} {
		plain.Header.Del(h)
	}
	what, body := faults.Record(real, plain)
	if what.Code != http.StatusOK {
		return false
	}
	d.mu.Lock()
	wrong, stamps, now := d.wrong, d.stamps, time.Now().Add(d.ahead)
	key := r.URL.Path + "|" + r.Header.Get("Accept")
	a := answered{what.Header(), string(body), now}
	if checked, err := feeds.ParseTime(a.header.Get(feeds.CheckedHeader)); err == nil {
		a.header.Set(feeds.CheckedHeader, feeds.FormatTime(checked.Add(d.ahead)))
	}
	if wrong == nil {
		d.now[key] = a
	}
	if was, ok := d.saved[key]; ok && wrong != nil && wrong.old {
		a = was
	}
	d.mu.Unlock()
	isList := strings.Contains(a.body, "<urlset") && !strings.Contains(a.body, `capability="capabilitylist"`)
	if wrong != nil && wrong.change != nil && (isList || strings.Contains(a.body, "<feed")) {
		a.body = wrong.change(a.body, !strings.Contains(r.URL.Path, "/archive/"))
	}
	if stamps != nil && (isList || strings.Contains(a.body, "<feed")) {
		a.body = faults.Entry.ReplaceAllStringFunc(a.body, stamps)
	}
	maps.Copy(w.Header(), a.header)
	w.Header().Del("Content-Length")
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(a.body)))
	w.Header().Set("ETag", etag)
	w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	if wrong != nil && wrong.aged {
		w.Header().Set("Age", fmt.Sprint(int(now.Sub(a.at)/time.Second)))
	}
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte(a.body))
	return true
}
