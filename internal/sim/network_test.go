package sim

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing/synctest"

	"github.com/tmshare/tmshare/feeds"
)

// network carries requests between nodes. The seed and the request determine its fault.
type network struct {
	w       *world
	weather weather
	step    int
	asked   map[string]int // number of requests in this step
	in      int            // the step of asked
	cut     map[[2]int]bool
	stale   map[string][]answer // cached answers, by URL
	failed  failure             // of a request
	quiet   bool                // no node changes while others read
}

// weather has the number of faults of each kind in 1000 answers.
type weather struct {
	dropped, refused, truncated, stale int
	during                             int // requests while which the origin changes
	origin                             int // requests at which the origin's process dies
}

var weathers = []weather{
	{}, {}, {during: 250}, {during: 100}, {during: 30}, {origin: 30},
	{dropped: 60, refused: 60, truncated: 60},
	{dropped: 400, refused: 100},
	{truncated: 300},
	{stale: 400},
	{stale: 200, during: 100},
	{dropped: 50, refused: 50, truncated: 50, stale: 100, during: 60, origin: 20},
}

// answer is the answer of a server.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// cutOff parts a node from some of the others.
func (n *network) cutOff(from *node) {
	if n.cut == nil {
		n.cut = map[[2]int]bool{}
	}
	for _, o := range n.w.nodes {
		if o != from && n.w.chance(2) {
			n.cut[[2]int{from.index, o.index}], n.cut[[2]int{o.index, from.index}] = true, true
			n.w.say("%s and %s cannot reach each other", from.name, o.name)
		}
	}
}

func (n *network) heal() { n.cut = nil }

// transport is the network as a node sees it.
type transport struct{ from *node }

var (
	errUnreachable = errors.New("connect: no route to host")
	errReset       = errors.New("read: connection reset by peer")
)

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	err = errReset // if it fails
	n := t.from.w.net
	defer n.catch()
	synctest.Wait() // complete earlier work, so that the order of events is the same each time
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	to := n.w.nodeOf(r.URL.Host)
	if to == nil || to.down || t.from.down || n.cut[[2]int{t.from.index, to.index}] {
		return nil, errUnreachable
	}
	rng := n.fate(t.from, r)
	hit := func(perMille int) bool { return rng.IntN(1000) < perMille }
	wrong := n.weather
	during, behind := hit(wrong.during), rng.IntN(2) == 0
	if during && !behind {
		n.change(to)
	}
	if hit(wrong.origin) {
		to.restart("is started again, while others read")
	}
	a := ask(to.server, r)
	if during && behind {
		n.change(to)
	}
	old := n.remember(r, a)
	switch {
	case hit(wrong.dropped):
		n.fault("lost", r)
		return nil, errReset
	case hit(wrong.refused):
		n.fault("503", r)
		return answer{status: http.StatusServiceUnavailable}.response(r, nil), nil
	case hit(wrong.truncated):
		n.fault("truncated", r)
		return a.truncated(r, rng), nil
	case hit(wrong.stale) && len(old) > 0 && (r.Header.Get("Cache-Control") != "no-cache" || rng.IntN(3) == 0): // some caches honour no wish, and no query
		a = old[rng.IntN(len(old))]
		n.fault("old", r)
		if tag := r.Header.Get("If-None-Match"); tag != "" && tag == a.header.Get("ETag") {
			a = answer{http.StatusNotModified, a.header, nil}
		}
	}
	return a.response(r, nil), nil
}

// catch keeps a failure until the end of the round that made the request, which may run in another goroutine.
func (n *network) catch() {
	switch failed := recover().(type) {
	case nil:
	case failure:
		n.failed = failed
	default:
		panic(failed)
	}
}

func (n *network) fault(what string, r *http.Request) {
	n.w.counts.faults++
	n.w.say("    %s: %s", what, known(r))
}

func (n *network) change(to *node) {
	if n.quiet || to.dead {
		return
	}
	n.w.counts.during++
	to.edits(1)
}

// fate returns the random numbers of a request.
func (n *network) fate(from *node, r *http.Request) *rand.Rand {
	if n.asked == nil || n.in != n.step {
		n.in, n.asked = n.step, map[string]int{}
	}
	what := from.name + " " + known(r)
	n.asked[what]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s %d", n.w.seed, n.step, what, n.asked[what])
	return rand.New(rand.NewPCG(h.Sum64(), 3))
}

// random matches the part of an address that differs in each run: a UUID. That of an entry ends in its number.
var random = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-([0-9a-f]{12})`)

// askedValue is the random value of a request that caches have no answer to.
var askedValue = regexp.MustCompile(`([?&]asked)=[^&]*`)

// known returns a description of a request without the parts that differ in each run.
func known(r *http.Request) string {
	id := "*"
	if u := r.URL.Path; strings.Contains(u, "/fragments/") && !strings.Contains(u, "/archive/") {
		id = "*$2"
	}
	u := random.ReplaceAllString(r.URL.String(), id)
	u = askedValue.ReplaceAllString(u, "$1")
	if r.Header.Get("If-None-Match") != "" {
		u += " if changed"
	}
	return u
}

// remember returns the cached answers of an address, and adds the answer to the cache.
func (n *network) remember(r *http.Request, a answer) []answer {
	url := askedValue.ReplaceAllString(r.URL.String(), "")
	old := n.stale[url]
	if a.header.Get(feeds.AskedHeader) == "" && a.status == http.StatusOK && (len(old) == 0 || !bytes.Equal(old[len(old)-1].body, a.body)) {
		n.stale[url] = append(old[max(0, len(old)-3):len(old):len(old)], a)
	}
	return old
}

// ask returns the answer of a server.
func ask(h http.Handler, r *http.Request) answer {
	recorder := httptest.NewRecorder()
	asked := r.Clone(r.Context())
	asked.RequestURI, asked.RemoteAddr, asked.Host = r.URL.RequestURI(), "192.0.2.1:1", r.URL.Host
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	h.ServeHTTP(recorder, asked)
	return answer{recorder.Code, recorder.Result().Header, recorder.Body.Bytes()}
}

func (a answer) response(r *http.Request, body io.Reader) *http.Response {
	length := int64(len(a.body))
	if body == nil {
		body = bytes.NewReader(a.body)
	}
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: a.status, Status: fmt.Sprint(a.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: length, Request: r,
	}
}

// truncated returns the answer without its end, which HTTP may show or hide.
func (a answer) truncated(r *http.Request, rng *rand.Rand) *http.Response {
	if len(a.body) == 0 {
		return a.response(r, nil)
	}
	cut := a.body[:rng.IntN(len(a.body)*9/10+1)]
	if rng.IntN(2) == 0 {
		return a.response(r, io.MultiReader(bytes.NewReader(cut), broken{}))
	}
	a.body = cut
	a.header = a.header.Clone()
	a.header.Del("Content-Length")
	return a.response(r, nil)
}

// broken is a connection that has ended.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
