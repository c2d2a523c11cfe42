package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"

	"github.com/tmshare/tmshare/feeds"
)

// Accept headers, what we like best first.
const (
	acceptAtom = feeds.MediaTypeAtom + ", application/xml;q=0.5, text/xml;q=0.5"
	acceptXTM  = feeds.MediaTypeXTM21 + ", " + feeds.MediaTypeXTM1 + ";q=0.8, text/xtm1+xml;q=0.8, application/x-tm+xml;q=0.7, application/xml;q=0.5, text/xml;q=0.5"
)

const userAgent = "tmshare-client (+https://github.com/tmshare/tmshare)"

func defaultHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = time.Minute
	t.MaxIdleConnsPerHost = 64 // more than Parallel, or connections are made anew all the time
	return &http.Client{Transport: t}
}

// answer is a response whose body is to be read and closed.
type answer struct {
	body        *body
	url         string // after redirects
	contentType string
	etag        string
	updated     string // TMShare-Updated
	notModified bool

	status int
	header http.Header
	length int64 // Content-Length, -1 if it was not given
}

// home returns a predicate for the hosts to which links of a subscription to
// the URL may lead.
func (c *Client) home(subscribed string) (func(*url.URL) error, error) {
	u, err := url.Parse(subscribed)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an http or https URL", subscribed)
	}
	if u.User != nil { // it would stand in every list and message
		return nil, fmt.Errorf("the URL on %s has a name or a password in it: put a token for reading into a file instead (--token-file)", u.Host)
	}
	allowed := append([]string{u.Host}, c.Hosts...)
	return func(to *url.URL) error {
		if to.Scheme != "http" && to.Scheme != "https" {
			return fmt.Errorf("links to %s: are not followed", to.Scheme)
		}
		if slices.Contains(allowed, to.Host) || slices.Contains(allowed, to.Hostname()) {
			return nil
		}
		return fmt.Errorf("the link leads away from %s, to the host %s; allow it with --host %s", u.Host, to.Host, to.Host)
	}, nil
}

// request is one document to fetch.
type request struct {
	url    string
	accept string
	etag   string // "" = unconditionally
	max    int64  // bytes of the body, unpacked
	home   func(*url.URL) error
	within time.Duration // for all of the answer; 0: as long as it takes

	packed  bool              // the body is read as it came, packed
	prepare func(http.Header) // called before each try, if not nil
	also    []int             // what is read besides 200
}

// fetch fetches a document and reads it with read, which is not called for an
// answer that it has not changed. Failures that another try may mend, a
// truncated or corrupt body among them, are tried again after a while.
func fetch[T any](ctx context.Context, c *Client, r request, read func(*answer) (T, error)) (T, *answer, error) {
	var got *answer
	try := func() (T, error) {
		var none T
		a, err := c.open(ctx, r)
		if err == nil && !a.notModified {
			defer a.body.Close()
			var value T
			if value, err = read(a); err == nil {
				got = a
				return value, nil
			}
		} else if err == nil {
			got = a
			return none, nil
		}
		var failed *FetchError
		switch isFetch := errors.As(err, &failed); {
		case ctx.Err() != nil, isFetch && !failed.transient(), errors.As(err, new(*feeds.LimitError)):
			return none, backoff.Permanent(err)
		case isFetch && failed.RetryAfter > 0:
			return none, errors.Join(err, backoff.RetryAfter(int((failed.RetryAfter+time.Second-1)/time.Second)))
		}
		c.Logger.Debug("trying again", "url", r.url, "error", err)
		return none, err
	}
	value, err := backoff.Retry(ctx, try, backoff.WithBackOff(c.backoff()), backoff.WithMaxTries(uint(c.Tries)), backoff.WithMaxElapsedTime(maxWait))
	var failed *FetchError
	if errors.As(err, &failed) { // without what the tries have put around it
		err = failed
	}
	return value, got, err
}

// maxWait bounds the time spent on retries of one request.
const maxWait = 2 * time.Minute

func (c *Client) backoff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = c.Backoff + time.Duration(rand.Int64N(int64(c.Backoff)/4+1))
	b.MaxInterval = 20 * time.Second
	return b
}

// What no other try can mend.
var (
	errNotAllowed = errors.New("not followed") // an address to which links are not followed
	errTooLong    = errors.New("longer than the limit")
)

// open sends a request and checks the head of the answer.
func (c *Client) open(ctx context.Context, r request) (*answer, error) {
	u, err := url.Parse(r.url)
	if err == nil {
		err = r.home(u)
	}
	if err != nil {
		return nil, &FetchError{URL: r.url, Err: fmt.Errorf("%w: %w", errNotAllowed, err)}
	}
	b := &body{url: r.url, left: r.max, max: r.max, stall: c.Stall, within: r.within}
	ctx = b.watch(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, b.fail(err)
	}
	req.Header.Set("Accept", r.accept)
	req.Header.Set("User-Agent", userAgent)
	if r.etag != "" {
		req.Header.Set("If-None-Match", r.etag)
	}
	req.Header.Set("Accept-Encoding", acceptCodings)
	if r.prepare != nil {
		r.prepare(req.Header)
	}
	h := *c.HTTP
	h.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return fmt.Errorf("%w: more than 10 in a row", errNotAllowed)
		}
		if err := r.home(to.URL); err != nil {
			return fmt.Errorf("%w: %w", errNotAllowed, err)
		}
		return nil
	}
	res, err := h.Do(req)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, b.fail(err)
	}
	b.from = res.Body
	if !r.packed && res.StatusCode != http.StatusNotModified {
		if b.from, err = withoutCoding(res.Body, contentCoding(res.Header)); err != nil {
			res.Body.Close()
			return nil, b.fail(err)
		}
	}
	a := &answer{
		body: b, url: res.Request.URL.String(), contentType: res.Header.Get("Content-Type"),
		etag: res.Header.Get("ETag"), updated: res.Header.Get("TMShare-Updated"),
		status: res.StatusCode, header: res.Header, length: res.ContentLength,
	}
	switch {
	case res.StatusCode == http.StatusNotModified && r.etag != "":
		b.Close()
		a.notModified = true
		return a, nil
	case res.StatusCode != http.StatusOK && !slices.Contains(r.also, res.StatusCode):
		said, _ := io.ReadAll(io.LimitReader(b, 4096)) // also so that the connection can be used again
		b.Close()
		return nil, &FetchError{URL: r.url, Status: res.StatusCode, Detail: detail(res, said), RetryAfter: retryAfter(res, c.Now())}
	}
	return a, nil
}

// detail returns what an error says of itself: the detail of a problem (RFC 9457
// §3.1.4, "detail"), or the first line of a page that is plain text.
func detail(res *http.Response, said []byte) string {
	var line string
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/problem+json":
		var problem struct{ Detail string }
		_ = json.Unmarshal(said, &problem) // where it cannot be read, the status must do
		line = problem.Detail
	case "text/plain":
		line, _, _ = strings.Cut(strings.TrimSpace(string(said)), "\n")
		line = strings.TrimPrefix(line, http.StatusText(res.StatusCode)+": ")
	}
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	if runes := []rune(line); len(runes) > 200 {
		line = string(runes[:200]) + "…"
	}
	return line
}

func retryAfter(res *http.Response, now time.Time) time.Duration {
	text := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

// getFeed fetches a feed document; nil means that it has not changed.
func (c *Client) getFeed(ctx context.Context, ref, etag string, home func(*url.URL) error) (*feeds.Feed, *answer, error) {
	r := request{url: ref, accept: acceptAtom, etag: etag, max: 64 << 20, home: home, within: c.MaxTime}
	if c.Feed.MaxBytes > 0 {
		r.max = c.Feed.MaxBytes
	}
	return fetch(ctx, c, r, func(a *answer) (*feeds.Feed, error) {
		feed, err := feeds.Decode(a.body, a.url, c.Feed)
		if errors.As(err, new(*feeds.SyntaxError)) {
			err = fmt.Errorf("cannot be read as an Atom feed (Content-Type %q): %w", a.contentType, err)
		}
		return feed, err
	})
}
