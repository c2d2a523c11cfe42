package client_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// liar stands between a client and a server, and lies now and then: in one answer
// of so many. It does whatever a bad network, cache, proxy or server might do, but
// for two things that no client could notice, since TMShare has no digests of
// documents: it changes no document into another one that is well-formed, and it
// answers a request with what belongs to another address only where this is a
// document of another kind. So bits are flipped in packed bodies only.
type liar struct {
	rng   *rand.Rand // guarded by mu
	mu    sync.Mutex
	every int                  // one answer in so many is a lie
	old   map[string][]earlier // by URL: what the server has answered, the oldest first
	told  map[string]int       // lies, by name
	log   []string             // of lies

	patient bool // no lie takes a second or more
}

// earlier is an answer that the server has given.
type earlier struct {
	header http.Header
	body   []byte
}

func newLiar(seed uint64) *liar {
	return &liar{rng: rand.New(rand.NewPCG(seed, 2)), every: 4, old: map[string][]earlier{}, told: map[string]int{}, patient: true}
}

func (l *liar) draw(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rng.IntN(n)
}

func isFeed(r *http.Request) bool { return isRecent(r) || isArchive(r) || isSnapshots(r) }

// answer is the fault of an origin.
func (l *liar) answer(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
	if n, endless := strings.CutPrefix(r.URL.Path, endlessPath); endless {
		l.more(w, r, real, n)
		return true
	}
	a := l.remember(r, real)
	if l.draw(l.every) > 0 {
		return false
	}
	for {
		lie := lies[l.draw(len(lies))]
		if l.patient && lie.slow && l.draw(20) > 0 || lie.tell == nil || !lie.of(r) {
			continue
		}
		l.mu.Lock()
		l.told[lie.name]++
		l.log = append(l.log, lie.name+" "+strings.TrimPrefix(r.URL.Path, "/topicmaps/egov"))
		l.mu.Unlock()
		lie.tell(l, w, r, a)
		return true
	}
}

// remember returns what the server answers to the request, without conditions, and
// what it has answered before.
func (l *liar) remember(r *http.Request, real http.Handler) truth {
	plain := r.Clone(r.Context())
	for _, h := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		plain.Header.Del(h)
	}
	answer, body := record(real, plain)
	t := truth{earlier{answer.Header(), body}, answer.Code, nil, real}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.old[r.URL.Path]
	t.before = slices.Clone(before)
	if answer.Code == http.StatusOK && (len(before) == 0 || !bytes.Equal(before[len(before)-1].body, body)) {
		if before = append(before, t.now); len(before) > 4 {
			before = before[1:]
		}
		l.old[r.URL.Path] = before
	}
	return t
}

// forget makes the liar answer with nothing that it has heard so far.
func (l *liar) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.old)
}

// truth is what there is to lie about.
type truth struct {
	now    earlier
	status int
	before []earlier // what the same address had before, the oldest first
	real   http.Handler
}

func send(w http.ResponseWriter, status int, header http.Header, body []byte) {
	for _, h := range []string{"Content-Type", "ETag", "TMShare-Updated", "Last-Modified"} {
		if v := header.Get(h); v != "" {
			w.Header().Set(h, v)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func sendPacked(w http.ResponseWriter, t truth, body []byte) {
	w.Header().Set("Content-Encoding", "gzip")
	send(w, http.StatusOK, t.now.header, body)
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

// bomb is a small body that unpacks to 32 MB of white space.
var bomb = sync.OnceValue(func() []byte { return pack(bytes.Repeat([]byte(" "), 32<<20)) })

func anything(*http.Request) bool { return true }

type lie struct {
	name string
	of   func(*http.Request) bool
	slow bool // for the client: it waits
	tell func(l *liar, w http.ResponseWriter, r *http.Request, t truth)
}

func sendStatus(code int, headers ...string) func(*liar, http.ResponseWriter, *http.Request, truth) {
	return func(_ *liar, w http.ResponseWriter, _ *http.Request, _ truth) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

var lies = []lie{
	{"500", anything, false, sendStatus(500)},
	{"503", anything, false, sendStatus(503)},
	{"403", anything, false, sendStatus(403)},
	{"404", anything, false, sendStatus(404)},
	{"410", anything, false, sendStatus(410)},
	{"429", anything, false, sendStatus(429)},
	{"304", anything, false, sendStatus(304)},
	{"503, Retry-After 0", anything, false, sendStatus(503, "Retry-After", "0")},
	{"429, Retry-After 1", anything, true, sendStatus(429, "Retry-After", "1")},
	{"302 in a circle", anything, false, func(_ *liar, w http.ResponseWriter, r *http.Request, _ truth) {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}},
	{"delayed", anything, false, func(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		time.Sleep(time.Duration(l.draw(20)) * time.Millisecond)
		send(w, t.status, t.now.header, t.now.body)
	}},
	{"silent", anything, true, func(_ *liar, _ http.ResponseWriter, r *http.Request, _ truth) { <-r.Context().Done() }},
	{"silent in the middle", anything, true, func(l *liar, w http.ResponseWriter, r *http.Request, t truth) {
		send(w, t.status, t.now.header, t.now.body[:l.draw(len(t.now.body)+1)])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}},
	{"dropped", anything, false, func(*liar, http.ResponseWriter, *http.Request, truth) { panic(http.ErrAbortHandler) }},
	{"dropped in the middle", anything, false, func(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		send(w, t.status, t.now.header, t.now.body[:l.draw(len(t.now.body)+1)])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}},
	{"truncated", anything, false, func(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		send(w, t.status, t.now.header, t.now.body[:l.draw(len(t.now.body)+1)])
	}},
	{"truncated, packed", anything, false, func(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		packed := pack(t.now.body)
		sendPacked(w, t, packed[:l.draw(len(packed))])
	}},
	{"bits flipped, packed", anything, false, func(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		packed := pack(t.now.body)
		for range 1 + l.draw(3) {
			packed[l.draw(len(packed))] ^= 1 << l.draw(8)
		}
		sendPacked(w, t, packed)
	}},
	{"not packed though it says so", anything, false, func(_ *liar, w http.ResponseWriter, _ *http.Request, t truth) { sendPacked(w, t, t.now.body) }},
	{"longer than it says", anything, false, func(_ *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		w.Header().Set("Content-Length", fmt.Sprint(len(t.now.body)/2))
		send(w, t.status, t.now.header, t.now.body)
	}},
	{"shorter than it says", anything, false, func(_ *liar, w http.ResponseWriter, _ *http.Request, t truth) {
		w.Header().Set("Content-Length", fmt.Sprint(len(t.now.body)+7))
		send(w, t.status, t.now.header, t.now.body)
	}},
	{"bomb", anything, false, func(_ *liar, w http.ResponseWriter, _ *http.Request, t truth) { sendPacked(w, t, bomb()) }},
	{"endless", anything, false, func(_ *liar, w http.ResponseWriter, r *http.Request, t truth) {
		chunk := bytes.Repeat([]byte("<!-- and so on -->\n"), 200)
		head, _, _ := strings.Cut(string(t.now.body), "<entry>")
		_, err := io.WriteString(w, strings.TrimSuffix(strings.TrimSpace(head), "</feed>"))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	}},
	{"another kind of document", anything, false, func(_ *liar, w http.ResponseWriter, r *http.Request, t truth) {
		other := r.Clone(r.Context())
		other.URL.Path = "/topicmaps/egov/fragments"
		other.Header.Del("If-None-Match")
		other.Header.Del("Range")
		if isFeed(r) {
			other.URL.Path = "/topicmaps/egov/snapshots/current.xtm21"
		}
		answer, body := record(t.real, other)
		send(w, answer.Code, answer.Header(), body)
	}},
	{"a page of a proxy", anything, false, func(_ *liar, w http.ResponseWriter, _ *http.Request, _ truth) {
		_, _ = io.WriteString(w, "<html xmlns='http://www.w3.org/1999/xhtml'><body>Sign in</body></html>")
	}},
	{"as it was before", anything, false, stale},
	{"as it was before", isFeed, false, stale},
	{"as it was before", isFeed, false, stale},
	{"entries shuffled and repeated", isFeed, false, shuffled},
	{"entries shuffled and repeated", isFeed, false, shuffled},
	{"endless feed", func(r *http.Request) bool { return isRecent(r) || isArchive(r) }, false, func(l *liar, w http.ResponseWriter, r *http.Request, t truth) {
		l.more(w, r, t.real, "0")
	}},
}

// stale answers as the server did some time ago, as a cache may.
func stale(l *liar, w http.ResponseWriter, r *http.Request, t truth) {
	if len(t.before) == 0 || r.Header.Get("Cache-Control") == "no-cache" {
		send(w, t.status, t.now.header, t.now.body)
		return
	}
	was := t.before[l.draw(len(t.before))]
	send(w, http.StatusOK, was.header, was.body)
}

var entryElement = regexp.MustCompile(`(?s)<entry>.*?</entry>\s*|<url>.*?</url>\s*`)

// shuffled answers with the entries of a feed in another order, one of them twice.
func shuffled(l *liar, w http.ResponseWriter, _ *http.Request, t truth) {
	body := string(t.now.body)
	entries := entryElement.FindAllString(body, -1)
	if len(entries) > 0 {
		entries = append(entries, entries[l.draw(len(entries))])
		for i := range entries {
			j := i + l.draw(len(entries)-i)
			entries[i], entries[j] = entries[j], entries[i]
		}
		at := entryElement.FindStringIndex(body)
		body = entryElement.ReplaceAllString(body, "")
		body = body[:at[0]] + strings.Join(entries, "") + body[at[0]:]
	}
	send(w, t.status, t.now.header, []byte(body))
}

const endlessPath = "/topicmaps/egov/fragments/archive/endless-"

var prevLink = regexp.MustCompile(`<link rel="prev-archive"[^>]*>`)

// more answers with the feed without its entries, and with a link to more of it.
func (l *liar) more(w http.ResponseWriter, r *http.Request, real http.Handler, n string) {
	recent := r.Clone(r.Context())
	recent.URL.Path = "/topicmaps/egov/fragments"
	recent.Header.Del("If-None-Match")
	answer, body := record(real, recent)
	text := prevLink.ReplaceAllString(entryElement.ReplaceAllString(string(body), ""), "")
	link := fmt.Sprintf(`<link rel="prev-archive" href="%s%s0"/></feed>`, endlessPath, n)
	send(w, answer.Code, answer.Header(), []byte(strings.Replace(text, "</feed>", link, 1)))
}

// A lie that is never told tests nothing.
func (l *liar) hasToldAll(t *testing.T) {
	t.Helper()
	var untold []string
	for _, lie := range lies {
		if !lie.slow && l.told[lie.name] == 0 {
			untold = append(untold, lie.name)
		}
	}
	// Which lie is told depends on the order of requests that run at a time.
	require.LessOrEqual(t, len(untold), 2, "%v", untold)
}
