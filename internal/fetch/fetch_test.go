// Package fetch_test tests fetching from servers on real sockets.
package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/fetch"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

func fetcher(change ...func(*fetch.Fetcher)) *fetch.Fetcher {
	f := fetch.Fetcher{Backoff: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&f)
	}
	return f.WithDefaults()
}

// serve starts a server; it ends with the test.
func serve(t *testing.T, answer http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(answer)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// get fetches a text.
func get(t *testing.T, f *fetch.Fetcher, at string, change ...func(*fetch.Request)) (string, *fetch.Answer, error) {
	from, err := f.From(at)
	require.NoError(t, err)
	r := fetch.Request{URL: at, Accept: "text/plain", Max: 1000}
	for _, c := range change {
		c(&r)
	}
	return fetch.Do(context.Background(), from, r, func(a *fetch.Answer) (string, error) {
		b, err := io.ReadAll(a.Body)
		return string(b), err
	})
}

func TestAnswerSaysWhatItIs(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		assert.Equal(t, "text/plain", r.Header.Get("Accept"))
		assert.Equal(t, "tmshare-client (+https://github.com/tmshare/tmshare)", r.Header.Get("User-Agent"))
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("X-Else", "else")
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte("hello"))
	})
	text, a, err := get(t, fetcher(), s.URL+"/")
	require.NoError(t, err)
	assert.Equal(t, "hello", text)
	assert.Equal(t, []any{s.URL + "/there", "text/plain", `"1"`, 200, "else", int64(5), int64(5), false},
		[]any{a.URL, a.ContentType, a.ETag, a.Status, a.Header.Get("X-Else"), a.Length, a.Body.Size(), a.NotModified})

	text, a, err = get(t, fetcher(), s.URL+"/", func(r *fetch.Request) { r.ETag = `"1"` })
	require.NoError(t, err)
	assert.Empty(t, text)
	assert.True(t, a.NotModified)
}

// What another try may mend is tried again, and only that.
func TestTries(t *testing.T) {
	t.Parallel()
	answering := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for name, c := range map[string]struct {
		first http.HandlerFunc
		tries int
		says  string // "": the second try succeeds
	}{
		"500":       {answering(500), 2, ""},
		"408":       {answering(408), 2, ""},
		"429":       {answering(429), 2, ""},
		"cut":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 2, ""},
		"truncated": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }, 2, ""},
		"silent":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 2, ""},
		"404":       {answering(404), 1, "404"},
		"410":       {answering(410), 1, "410"},
		"too long":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2000)) }, 1, "longer than the limit of 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int64
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if tries.Add(1) == 1 {
					c.first(w, r)
					return
				}
				_, _ = w.Write([]byte("hello"))
			})
			text, _, err := get(t, fetcher(func(f *fetch.Fetcher) { f.Stall = 200 * time.Millisecond }), s.URL)
			assert.EqualValues(t, c.tries, tries.Load())
			if c.says == "" {
				require.NoError(t, err)
				assert.Equal(t, "hello", text)
				return
			}
			var failed *fetch.Error
			require.ErrorAs(t, err, &failed)
			assert.ErrorContains(t, failed, c.says)
			assert.False(t, failed.Transient())
			assert.Equal(t, name == "410", failed.Gone())
		})
	}
}

// The reader of an answer may fail, and mark its error as permanent.
func TestPermanentErrorsOfTheReader(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	bad := errors.New("bad")
	for _, c := range []struct {
		err   error
		f     *fetch.Fetcher
		reads int
	}{
		{bad, fetcher(), 4},
		{fetch.Permanent(bad), fetcher(), 1},
		{fmt.Errorf("it is %w", fetch.Permanent(bad)), fetcher(), 1},
		{fetch.Permanent(bad), fetcher(func(f *fetch.Fetcher) { f.Tries = 1 }), 1},
	} {
		from, err := c.f.From(s.URL)
		require.NoError(t, err)
		reads := 0
		_, _, err = fetch.Do(context.Background(), from, fetch.Request{URL: s.URL, Max: 1}, func(*fetch.Answer) (int, error) {
			reads++
			return 0, c.err
		})
		assert.Equal(t, c.reads, reads)
		assert.ErrorIs(t, err, bad)
		assert.EqualError(t, err, c.err.Error())
	}
}

// A server that wants to be left alone for an hour is.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	tries := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries++
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	_, _, err := get(t, fetcher(), s.URL)
	var failed *fetch.Error
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, fetch.Error{URL: s.URL, Status: 503, RetryAfter: time.Hour}, *failed)
	assert.Equal(t, 1, tries)
}

// sending is a server without a socket, for tests on the clock of a bubble (testing/synctest): it writes the body of
// each answer, whose header it may set before the first byte.
type sending func(r *http.Request, header http.Header, body io.Writer)

func (s sending) RoundTrip(r *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	context.AfterFunc(r.Context(), func() { w.CloseWithError(r.Context().Err()) })
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: -1, Request: r}
	if r.Header.Get("Range") != "" {
		res.StatusCode = http.StatusPartialContent
	}
	begun := make(chan struct{})
	go func() {
		s(r, res.Header, &announced{w, sync.OnceFunc(func() { close(begun) })})
		w.CloseWithError(r.Context().Err()) // the end, where it is nil
	}()
	<-begun
	return res, nil
}

// announced calls first before the first byte.
type announced struct {
	io.Writer
	first func()
}

func (a *announced) Write(p []byte) (int, error) {
	a.first()
	return a.Writer.Write(p)
}

// fetcher returns one that gives up after the first try.
func (s sending) fetcher(stall time.Duration, rate int64) *fetch.Fetcher {
	return fetcher(func(f *fetch.Fetcher) {
		f.HTTP, f.Tries, f.Stall, f.MinRate = &http.Client{Transport: s}, 1, stall, rate
	})
}

const slowURL = "http://slow.example.org/"

// pass waits for some time, or returns when the request is cancelled.
func pass(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

// endless sends a byte every five milliseconds until the request is cancelled.
func endless(r *http.Request, _ http.Header, body io.Writer) {
	for r.Context().Err() == nil {
		_, _ = body.Write([]byte(" "))
		pass(r, 5*time.Millisecond)
	}
}

// A server that sends a byte now and then is given the time of the request, and
// time in which it is not read does not count.
func TestTimeForTheWholeAnswer(t *testing.T) {
	t.Parallel()
	const within = time.Second
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, _, err := get(t, sending(endless).fetcher(time.Minute, 1), slowURL, func(r *fetch.Request) { r.Within, r.Max = within, 1<<20 })
		assert.ErrorContains(t, err, "the server has not sent all within 1s")
		assert.Equal(t, within, time.Since(begun))
	})
	for name, paused := range map[string]bool{"read": false, "not read": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := sending(func(r *http.Request, _ http.Header, body io.Writer) {
					_, _ = body.Write([]byte("hel"))
					pass(r, 3*within/2)
					_, _ = body.Write([]byte("lo"))
				}).fetcher(within, 1)
				from, err := f.From(slowURL)
				require.NoError(t, err)
				r := fetch.Request{URL: slowURL, Max: 10, Within: within}
				rest, _, err := fetch.Do(t.Context(), from, r, func(a *fetch.Answer) (string, error) {
					_, err := io.ReadFull(a.Body, make([]byte, len("hel")))
					require.NoError(t, err)
					if paused {
						a.Body.Pause()
						time.Sleep(within + within/10)
						a.Body.Resume()
					}
					b, err := io.ReadAll(a.Body)
					return string(b), err
				})
				if paused {
					require.NoError(t, err)
					assert.Equal(t, "lo", rest)
				} else {
					assert.ErrorContains(t, err, "1s", "all is not there in time, or nothing more comes")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // the clocks go again after a pause
		f := sending(func(r *http.Request, _ http.Header, body io.Writer) {
			_, _ = body.Write(nil)
			<-r.Context().Done()
		}).fetcher(within, 1)
		from, err := f.From(slowURL)
		require.NoError(t, err)
		_, _, err = fetch.Do(t.Context(), from, fetch.Request{URL: slowURL, Max: 10}, func(a *fetch.Answer) (string, error) {
			a.Body.Pause()
			time.Sleep(time.Hour)
			a.Body.Resume()
			b, err := io.ReadAll(a.Body)
			return string(b), err
		})
		assert.ErrorContains(t, err, "the server has sent nothing for 1s")
	})
}

// A slow answer is cancelled after some time, independently of the total time; at once if it can be continued. A small
// answer may be of any speed.
func TestLeastRate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		requests, asked := 0, 0
		slow := sending(func(r *http.Request, header http.Header, body io.Writer) {
			requests++
			header.Set("ETag", `"1"`)
			if r.Header.Get("Range") != "" {
				asked++
				header.Set("Content-Range", strings.Replace(r.Header.Get("Range"), "=", " ", 1)+"199/200")
			}
			endless(r, header, body)
		}).fetcher(100*time.Millisecond, 1000)
		_, _, err := get(t, slow, slowURL)
		assert.ErrorContains(t, err, "the server has sent less than 1000 bytes per second for 100ms")
		var failed *fetch.Error
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.Transient())

		requests = 0
		from, err := slow.From(slowURL)
		require.NoError(t, err)
		d := &fetch.Download{Path: filepath.Join(dir, "d"), Key: "k"}
		for i := range 2 {
			assert.ErrorContains(t, d.Fetch(t.Context(), from, fetch.Request{URL: slowURL, Max: 1000}), "less than 1000 bytes per second")
			assert.Equal(t, []int{i + 1, i}, []int{requests, asked})
		}

		small := sending(func(r *http.Request, _ http.Header, body io.Writer) {
			for range 10 {
				_, _ = body.Write(make([]byte, 10))
				pass(r, 5*time.Millisecond)
			}
		})
		text, _, err := get(t, small.fetcher(time.Second, 1<<20), slowURL)
		require.NoError(t, err)
		assert.Len(t, text, 100)
	})
}

// The server's description of an error is returned if it is a line of text.
func TestWhatTheServerSaysIsPassedOn(t *testing.T) {
	t.Parallel()
	for contentType, c := range map[string]struct{ body, says string }{
		"text/plain":                {"Not Found: ask elsewhere\nmore", "404 Not Found (ask elsewhere)"},
		"text/plain; charset=utf-8": {"no \x1b[31mcolours\xFF", "404 Not Found (no [31mcolours)"},
		"text/html":                 {"<html>", "404 Not Found"},
		"application/problem+json":  {`{"title":"Not Found","detail":"ask elsewhere"}`, "404 Not Found (ask elsewhere)"},
		"application/problem+json;": {`{"detail":`, "404 Not Found"},
		"text/plain; x=1":           {strings.Repeat("é", 500), "404 Not Found (" + strings.Repeat("é", 200) + "…)"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(404)
			_, _ = w.Write([]byte(c.body))
		})
		_, _, err := get(t, fetcher(), s.URL)
		assert.EqualError(t, err, fmt.Sprintf("%s: the server answered %s", s.URL, c.says))
	}
}

func TestHome(t *testing.T) {
	t.Parallel()
	f := fetcher(func(f *fetch.Fetcher) { f.Hosts = []string{"mirror.example.org", "other.example.org:8080"} })
	from, err := f.From("http://maps.example.org/feed")
	require.NoError(t, err)
	for to, ok := range map[string]bool{
		"http://maps.example.org/x": true, "https://maps.example.org/x": true, "http://maps.example.org:81/": true,
		"http://mirror.example.org/": true, "http://mirror.example.org:81/": true,
		"http://other.example.org:8080/": true, "http://other.example.org/": false,
		"http://example.org/": false, "file:///etc/passwd": false, "ftp://maps.example.org/": false,
	} {
		u, err := url.Parse(to)
		require.NoError(t, err)
		assert.Equal(t, ok, from.Allow(u) == nil, to)
	}
	for _, bad := range []string{"", "maps.example.org", "ftp://maps.example.org/", "http:///x", "http://user:secret@maps.example.org/"} {
		_, err := f.From(bad)
		require.Error(t, err, bad)
		assert.NotContains(t, err.Error(), "secret")
	}
}

// Redirects lead to where links may lead, and not on and on.
func TestRedirects(t *testing.T) {
	t.Parallel()
	asked := 0
	elsewhere := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++ })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	})
	_, _, err := get(t, fetcher(), s.URL+"/")
	assert.ErrorContains(t, err, "more than 10 in a row")
	_, _, err = get(t, fetcher(), s.URL+"/away")
	assert.ErrorContains(t, err, "allow it with --host "+elsewhere.Listener.Addr().String())
	assert.Zero(t, asked)
	_, _, err = get(t, fetcher(func(f *fetch.Fetcher) { f.Hosts = []string{elsewhere.Listener.Addr().String()} }), s.URL+"/away")
	require.NoError(t, err)
	assert.Equal(t, 1, asked)
}

// The token is sent to one server, for any redirects.
func TestBearerShowsTheTokenToOneServer(t *testing.T) {
	t.Parallel()
	var shown []string
	note := func(r *http.Request) { shown = append(shown, r.Header.Get("Authorization")) }
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) { note(r) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	})
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	f := fetcher(func(f *fetch.Fetcher) {
		var err error
		f.HTTP, err = fetch.BearerFrom(&http.Client{}, s.URL, file)
		require.NoError(t, err)
		f.Hosts = []string{elsewhere.Listener.Addr().String()}
	})
	_, _, err := get(t, f, s.URL)
	require.NoError(t, err)
	assert.Equal(t, []string{"Bearer secret", ""}, shown)
}

// A connection to a server with an untrusted certificate is refused.
func TestCertificateThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, _, err := get(t, fetcher(), s.URL)
	assert.ErrorContains(t, err, "certificate")
	var failed *fetch.Error
	require.ErrorAs(t, err, &failed)
	assert.Zero(t, failed.Status)
}

// Requests go through the proxy that the environment names.
func TestProxyOfTheEnvironment(t *testing.T) {
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "maps.example.org", r.Host)
		assert.True(t, r.URL.IsAbs())
		_, _ = w.Write([]byte("hello"))
	})
	f := fetcher()
	transport := f.HTTP.Transport.(*http.Transport)
	require.NotNil(t, transport.Proxy, "what the default client uses")
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	transport.Proxy = http.ProxyURL(at) // the environment is read once in a process
	text, _, err := get(t, f, "http://maps.example.org/feed")
	require.NoError(t, err)
	assert.Equal(t, "hello", text)
}

// A body has at most the limit, or is an error, at any place of its end.
func TestTheLimitIsExact(t *testing.T) {
	for _, over := range []int{0, 1, 2} {
		answer := strings.Repeat("x", 100+over)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(answer))) // so that the end comes with the last bytes
			io.WriteString(w, answer)
		}))
		f := fetch.Fetcher{Tries: 1}.WithDefaults()
		from, err := f.From(server.URL)
		require.NoError(t, err)
		got, _, err := fetch.Do(t.Context(), from, fetch.Request{URL: server.URL, Max: 100}, func(a *fetch.Answer) ([]byte, error) { return io.ReadAll(a.Body) })
		server.Close()
		if over == 0 {
			require.NoError(t, err)
			require.Len(t, got, 100)
			continue
		}
		require.ErrorContains(t, err, "longer than the limit", "%d bytes over it", over)
	}
}

// What to do stands in the error.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	short := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "less")
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	once := fetcher(func(f *fetch.Fetcher) { f.Tries = 1 })
	for at, says := range map[string]string{
		short.URL:  ": unexpected EOF: the answer was cut off; try again, and if it stays so, tell the owner of the server",
		closed.URL: "connection refused; check the address, and that the server runs",
		strings.Replace(short.URL, "http:", "https:", 1): "server gave HTTP response to HTTPS client; begin the address with http://",
	} {
		_, _, err := get(t, once, at)
		assert.ErrorContains(t, err, says)
	}
}
