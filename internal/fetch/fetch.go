package fetch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Request is one document to fetch.
type Request struct {
	Method string // "" = GET; HEAD, POST
	URL    string
	Accept string
	ETag   string        // "" = unconditionally
	Max    int64         // bytes of the body, unpacked; more are an error
	Within time.Duration // for all of the answer; 0: as long as it takes

	Packed   bool              // the body is read as it came, packed
	Post     []byte            // the body to post
	PostType string            // its media type
	Prepare  func(http.Header) // called before each try, if not nil
	Also     []int             // statuses that are read besides 200
}

// Answer is a response. The reader given to [Do] reads its body, and Do closes it.
type Answer struct {
	Body        *Body
	URL         string // after redirects, without a fragment
	ContentType string
	ETag        string
	NotModified bool // since the version with Request.ETag; there is no body

	Status int
	Header http.Header
	Length int64 // Content-Length, -1 if it was not given

	// Echoed states that the server made the answer for this request of [Fetcher.Asking], so that no cache did.
	Echoed bool

	// AsOf is a time, by the server's clock, before the answer was made, so the answer includes all earlier changes. It
	// is the Date less the duration of the request; without a Date, the time of the request by the local clock (RFC
	// 9110 §6.6.1).
	AsOf time.Time
}

// Immutable reports whether the document never changes (RFC 8246).
func (a *Answer) Immutable() bool {
	_, is := a.directive("immutable")
	return is
}

// MaxAge returns the time for which caches may reuse the answer (RFC 9111 §5.2.2.1 "max-age"), zero if not stated.
func (a *Answer) MaxAge() time.Duration {
	value, _ := a.directive("max-age")
	seconds, _ := strconv.ParseUint(value, 10, 31)
	return time.Duration(seconds) * time.Second
}

// directive returns the value of a directive of Cache-Control, and whether it is there.
func (a *Answer) directive(name string) (value string, is bool) {
	for directive := range strings.SplitSeq(strings.Join(a.Header.Values("Cache-Control"), ","), ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if strings.EqualFold(key, name) {
			return strings.Trim(value, `"`), true
		}
	}
	return "", false
}

// Do fetches a document and reads it with read, which is not called if the document has not changed. It retries
// failures that a retry may help, such as a truncated or corrupt body, after some time, and errors of read that are not
// [Permanent].
func Do[T any](ctx context.Context, f *Fetcher, r Request, read func(*Answer) (T, error)) (T, *Answer, error) {
	var got *Answer
	try := func() (T, error) {
		var none T
		a, err := f.open(ctx, r)
		if err == nil && !a.NotModified {
			defer a.Body.Close()
			var value T
			if value, err = read(a); err == nil {
				got = a
				return value, nil
			}
		} else if err == nil {
			got = a
			return none, nil
		}
		var failed *Error
		switch isFetch := errors.As(err, &failed); {
		case ctx.Err() != nil, isFetch && !failed.Transient(), errors.As(err, new(*backoff.PermanentError)):
			return none, backoff.Permanent(err)
		case isFetch && failed.RetryAfter > 0:
			return none, errors.Join(err, backoff.RetryAfter(int((failed.RetryAfter+time.Second-1)/time.Second)))
		}
		f.Logger.Debug("trying again", "url", r.URL, "error", err)
		return none, err
	}
	value, err := backoff.Retry(ctx, try, backoff.WithBackOff(f.backoff()), backoff.WithMaxTries(uint(f.Tries)),
		backoff.WithMaxElapsedTime(maxWait))
	if failed, ok := errors.AsType[*Error](err); ok { // without the wrapping of retries
		err = failed
	}
	return value, got, err
}

// maxWait bounds the time spent on retries of one request.
const maxWait = 2 * time.Minute

func (f *Fetcher) backoff() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = f.Backoff + time.Duration(rand.Int64N(int64(f.Backoff)/4+1))
	b.MaxInterval = 20 * time.Second
	return b
}

// open sends a request and checks the head of the answer.
func (f *Fetcher) open(ctx context.Context, r Request) (*Answer, error) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
	case f.Allow == nil:
		err = errors.New("nothing says which URLs the fetcher may ask")
	default:
		err = f.Allow(u)
	}
	if err != nil {
		return nil, &Error{URL: r.URL, Err: fmt.Errorf("%w: %w", errNotAllowed, err)}
	}
	b := &Body{url: r.URL, left: r.Max, max: r.Max, stall: f.Stall, rate: f.MinRate, within: r.Within}
	ctx = b.watch(ctx)
	at, value := r.URL, ""
	if f.asking {
		value = NewAsked()
		at = Asking(r.URL, value)
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), at, bytes.NewReader(r.Post))
	if err != nil {
		return nil, b.fail(err)
	}
	if r.PostType != "" {
		req.Header.Set("Content-Type", r.PostType)
	}
	req.Header.Set("Accept", r.Accept)
	req.Header.Set("User-Agent", cmp.Or(f.Program, "tmshare-client")+" (+https://github.com/tmshare/tmshare)")
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
	}
	req.Header.Set("Accept-Encoding", acceptCodings)
	if f.uncached {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if r.Prepare != nil {
		r.Prepare(req.Header)
	}
	h, permanent := *f.HTTP, true
	h.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return fmt.Errorf("%w: more than 10 in a row", errNotAllowed)
		}
		status := to.Response.StatusCode
		permanent = permanent && (status == http.StatusMovedPermanently || status == http.StatusPermanentRedirect)
		if permanent && f.Moved != nil {
			f.Moved(r.URL, notAsking(to.URL, value))
		}
		if err := f.Allow(to.URL); err != nil {
			return fmt.Errorf("%w: %w", errNotAllowed, err)
		}
		return nil
	}
	sent, began := f.Now(), time.Now()
	res, err := h.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, b.fail(err)
	}
	b.from = arriving{res.Body, b}
	if !r.Packed && res.StatusCode != http.StatusNotModified {
		if b.from, err = withoutCoding(b.from, contentCoding(res.Header)); err != nil {
			res.Body.Close()
			return nil, b.fail(err)
		}
	}
	from := *res.Request.URL
	from.Fragment, from.RawFragment = "", "" // it is of the reference, not of the document (RFC 3986 §5.1)
	a := &Answer{
		Body: b, URL: notAsking(&from, value), ContentType: res.Header.Get("Content-Type"), ETag: res.Header.Get("ETag"),
		Status: res.StatusCode, Header: res.Header, Length: res.ContentLength,
		AsOf: sent,
	}
	a.Echoed = a.Asked(value)
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		a.AsOf = date.Add(-time.Since(began))
	}
	switch {
	case res.StatusCode == http.StatusNotModified && r.ETag != "":
		b.Close()
		a.NotModified = true
		return a, nil
	case res.StatusCode != http.StatusOK && !slices.Contains(r.Also, res.StatusCode):
		body, _ := io.ReadAll(io.LimitReader(b, 4096)) // reading it also lets the connection be reused
		b.Close()
		return nil, &Error{URL: r.URL, Status: res.StatusCode, Detail: detail(res, body),
			RetryAfter: retryAfter(res, f.Now()),
			// the texts of the servers of Go, nginx and Apache
			plain: u.Scheme == "http" && bytes.Contains(body, []byte("HTTP")) && bytes.Contains(body, []byte("HTTPS")) ||
				bytes.Contains(body, []byte("plain HTTP"))}
	}
	return a, nil
}
