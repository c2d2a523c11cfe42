package faults

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Sign is the property by which a reader can detect a lie.
type Sign int

const (
	Absent  Sign = iota // the status: the document does not exist, or not for this reader
	Status              // the status: there is no answer
	Framing             // HTTP's framing of the body is wrong
	Content             // only the content, or a digest, is wrong
	Old                 // an earlier answer
)

// Lie is an answer that is not the server's.
type Lie struct {
	Name string
	Sign
	Passing bool // an answer to another try may be right
	ofFeeds bool // only for documents with entries
	slow    bool // for the reader: it waits
	tell    func(l *Liar, w http.ResponseWriter, r *http.Request, t truth)
}

// Passing are the lies after which a reader should try again, by name.
var Passing = sync.OnceValue(func() map[string]Answer {
	all := map[string]Answer{}
	for _, lie := range Lies {
		if lie.Passing {
			l := NewLiar(1, nil)
			all[lie.Name] = func(w http.ResponseWriter, r *http.Request, real http.Handler) {
				lie.tell(l, w, r, l.remember(r, real))
			}
		}
	}
	return all
})

func status(code int, headers ...string) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(_ *Liar, w http.ResponseWriter, _ *http.Request, _ truth) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

// body answers with the changed body.
func body(change func(l *Liar, body []byte) []byte) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(l *Liar, w http.ResponseWriter, _ *http.Request, t truth) {
		Send(w, t.status, t.now.header, change(l, bytes.Clone(t.now.body)))
	}
}

// packed answers with a body that has the content coding gzip.
func packed(repack func(l *Liar, body []byte) []byte) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(l *Liar, w http.ResponseWriter, _ *http.Request, t truth) {
		w.Header().Set("Content-Encoding", "gzip")
		Send(w, http.StatusOK, t.now.header, repack(l, t.now.body))
	}
}

// saying answers with another length than the body's.
func saying(length func(body []byte) int) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(_ *Liar, w http.ResponseWriter, _ *http.Request, t truth) {
		w.Header().Set("Content-Length", fmt.Sprint(length(t.now.body)))
		Send(w, t.status, t.now.header, t.now.body)
	}
}

// instead answers with a text.
func instead(text string) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(_ *Liar, w http.ResponseWriter, _ *http.Request, _ truth) { _, _ = io.WriteString(w, text) }
}

func drop(*Liar, http.ResponseWriter, *http.Request, truth) { panic(http.ErrAbortHandler) }

// middle sends a part of the answer, or announces more than all of it, and then calls end.
func middle(end func(r *http.Request)) func(*Liar, http.ResponseWriter, *http.Request, truth) {
	return func(l *Liar, w http.ResponseWriter, r *http.Request, t truth) {
		w.Header().Set("Content-Length", fmt.Sprint(len(t.now.body)+1))
		Send(w, t.status, t.now.header, t.now.body[:l.draw(len(t.now.body)+1)])
		w.(http.Flusher).Flush()
		end(r)
	}
}

// bomb is a small body that unpacks to 32 MB of white space.
var bomb = sync.OnceValue(func() []byte { return Packed(bytes.Repeat([]byte(" "), 32<<20)) })

// Lies are all lies.
var Lies = []Lie{
	{Name: "500", Sign: Status, Passing: true, tell: status(500)},
	{Name: "503", Sign: Status, Passing: true, tell: status(503)},
	{Name: "408", Sign: Status, Passing: true, tell: status(408)},
	{Name: "429", Sign: Status, Passing: true, tell: status(429)},
	{Name: "403", Sign: Absent, tell: status(403)},
	{Name: "404", Sign: Absent, tell: status(404)},
	{Name: "410", Sign: Absent, tell: status(410)},
	{Name: "304", Sign: Old, tell: status(304)},
	{Name: "503, Retry-After 0", Sign: Status, tell: status(503, "Retry-After", "0")},
	{Name: "429, Retry-After 1", Sign: Status, slow: true, tell: status(429, "Retry-After", "1")},
	{Name: "302 in a circle", Sign: Status, tell: func(_ *Liar, w http.ResponseWriter, r *http.Request, _ truth) {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}},
	{Name: "delayed", Sign: Status, tell: func(l *Liar, w http.ResponseWriter, _ *http.Request, t truth) {
		time.Sleep(time.Duration(l.draw(20)) * time.Millisecond)
		Send(w, t.status, t.now.header, t.now.body)
	}},
	{Name: "silent", Sign: Framing, slow: true, tell: func(_ *Liar, _ http.ResponseWriter, r *http.Request, _ truth) {
		<-r.Context().Done()
	}},
	{Name: "silent in the middle", Sign: Framing, slow: true, tell: middle(func(r *http.Request) {
		<-r.Context().Done()
	})},
	{Name: "dropped", Sign: Framing, Passing: true, tell: drop},
	{Name: "dropped in the middle", Sign: Framing, Passing: true, tell: middle(func(*http.Request) {
		panic(http.ErrAbortHandler)
	})},
	{Name: "shorter than its length states", Sign: Framing, Passing: true, tell: saying(func(body []byte) int {
		return len(body) + 7
	})},
	{Name: "longer than its length states", Sign: Content, Passing: true, tell: saying(func(body []byte) int {
		return len(body) / 2
	})},
	{Name: "truncated, packed", Sign: Framing, Passing: true, tell: packed(func(l *Liar, body []byte) []byte {
		p := Packed(body)
		return p[:l.draw(len(p))]
	})},
	{Name: "bits flipped, packed", Sign: Framing, tell: packed(func(l *Liar, body []byte) []byte {
		p := Packed(body)
		for range 1 + l.draw(3) {
			p[l.draw(len(p))] ^= 1 << l.draw(8)
		}
		return p
	})},
	{Name: "wrong checksum, packed", Sign: Framing, Passing: true, tell: packed(func(_ *Liar, body []byte) []byte {
		p := Packed(body)
		p[len(p)-8] ^= 0xFF
		return p
	})},
	{Name: "not packed, but stated so", Sign: Framing, Passing: true, tell: packed(func(_ *Liar, body []byte) []byte {
		return body
	})},
	{Name: "bomb", Sign: Content, tell: packed(func(*Liar, []byte) []byte { return bomb() })},
	{Name: "empty", Sign: Content, Passing: true, tell: instead("")},
	{Name: "truncated", Sign: Content, Passing: true, tell: body(func(l *Liar, body []byte) []byte {
		return body[:l.draw(len(body)*3/4+1)]
	})},
	{Name: "cut off in the last tag", Sign: Content, Passing: true, tell: body(func(_ *Liar, body []byte) []byte {
		return bytes.TrimRight(body, ">\n")
	})},
	{Name: "not XML", Sign: Content, Passing: true, tell: instead("upstream sent too big header\n")},
	{Name: "a page of a proxy", Sign: Content, Passing: true,
		tell: instead("<html xmlns='http://www.w3.org/1999/xhtml'><body>Sign in</body></html>")},
	{Name: "a tag damaged", Sign: Content, tell: body(func(_ *Liar, body []byte) []byte {
		return bytes.Replace(body, []byte("</"), []byte("</x"), 1)
	}), Passing: true},
	{Name: "endless", Sign: Content, tell: func(_ *Liar, w http.ResponseWriter, r *http.Request, t truth) {
		chunk := bytes.Repeat([]byte("<!-- and so on -->\n"), 200)
		head, _, _ := strings.Cut(string(t.now.body), "<entry")
		_, err := io.WriteString(w, strings.TrimSuffix(strings.TrimSpace(head), "</feed>"))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	}},
	{Name: "another kind of document", Sign: Content,
		tell: func(l *Liar, w http.ResponseWriter, r *http.Request, t truth) {
			other := unconditional(r)
			other.URL.Path = collection(r) + "/fragments"
			if l.Feed(r) {
				other.URL.Path = collection(r) + "/snapshots/current.xtm21"
			}
			answer, body := Record(t.real, other)
			Send(w, answer.Code, answer.Header(), body)
		}},
	{Name: "as it was before", Sign: Old, tell: stale},
	{Name: "as it was before", Sign: Old, ofFeeds: true, tell: stale},
	{Name: "as it was before", Sign: Old, ofFeeds: true, tell: stale},
	{Name: "entries shuffled and repeated", Sign: Old, ofFeeds: true, tell: shuffled},
	{Name: "entries shuffled and repeated", Sign: Old, ofFeeds: true, tell: shuffled},
	{Name: "endless feed", Sign: Content, ofFeeds: true,
		tell: func(l *Liar, w http.ResponseWriter, r *http.Request, t truth) {
			feed := collection(r) + "/fragments"
			if strings.Contains(r.URL.Path, "/records") {
				feed = collection(r) + "/records"
			}
			l.more(w, r, t.real, feed, "0")
		}},
}

// collection returns the path of the collection that a request is for.
func collection(r *http.Request) string {
	parts := strings.SplitN(r.URL.Path, "/", 4)
	return strings.Join(parts[:min(3, len(parts))], "/")
}

// Send sends an answer, with the header of its body.
func Send(w http.ResponseWriter, status int, header http.Header, body []byte) {
	for _, h := range []string{"Content-Type", "ETag", "TMShare-Updated", "Last-Modified"} {
		if v := header.Get(h); v != "" {
			w.Header().Set(h, v)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// stale answers as the server did some time ago, as a cache may.
func stale(l *Liar, w http.ResponseWriter, r *http.Request, t truth) {
	if len(t.before) == 0 || r.Header.Get("Cache-Control") == "no-cache" {
		Send(w, t.status, t.now.header, t.now.body)
		return
	}
	was := t.before[l.draw(len(t.before))]
	Send(w, http.StatusOK, was.header, was.body)
}

// Entry is an entry of a feed, or an item of a list.
var Entry = regexp.MustCompile(`(?s)<entry[ >].*?</entry>\s*|<url>.*?</url>\s*`)

// shuffled answers with the entries of a feed in another order, one of them twice.
func shuffled(l *Liar, w http.ResponseWriter, _ *http.Request, t truth) {
	body := string(t.now.body)
	entries := Entry.FindAllString(body, -1)
	if len(entries) > 0 {
		entries = append(entries, entries[l.draw(len(entries))])
		for i := range entries {
			j := i + l.draw(len(entries)-i)
			entries[i], entries[j] = entries[j], entries[i]
		}
		at := Entry.FindStringIndex(body)
		body = Entry.ReplaceAllString(body, "")
		body = body[:at[0]] + strings.Join(entries, "") + body[at[0]:]
	}
	Send(w, t.status, t.now.header, []byte(body))
}

// endlessPart is in the addresses of invented documents.
const endlessPart = "/archive/endless-"

// PrevLink is the link of a feed document to the previous one.
var PrevLink = regexp.MustCompile(`<link rel="prev-archive"[^>]*>`)

// more answers with a feed without its entries, and with a link to more of it.
func (l *Liar) more(w http.ResponseWriter, r *http.Request, real http.Handler, feed, n string) {
	recent := unconditional(r)
	recent.URL.Path = feed
	answer, body := Record(real, recent)
	text := PrevLink.ReplaceAllString(Entry.ReplaceAllString(string(body), ""), "")
	link := fmt.Sprintf(`<link rel="prev-archive" href="%s%s%s0"/></feed>`, feed, endlessPart, n)
	Send(w, answer.Code, answer.Header(), []byte(strings.Replace(text, "</feed>", link, 1)))
}
