package fetch

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/iri"
)

// Fetcher holds the settings for fetching. It is made by [Fetcher.WithDefaults] and must not be changed while in use.
// It is safe for concurrent use.
type Fetcher struct {
	// HTTP makes the requests. The default honours the proxy environment and
	// has time limits on connecting and waiting.
	HTTP *http.Client

	Program string // the User-Agent; default tmshare-client

	// Hosts may be followed to besides the one of the document that one began
	// with ("host" or "host:port").
	Hosts []string
	// Allow returns the reason why a URL is not requested, or nil. [Fetcher.From] sets it.
	Allow func(*url.URL) error

	Tries   int           // of each request; default 4
	Backoff time.Duration // before the second try, growing; default 250 ms
	Stall   time.Duration // a try ends after this long without a byte; default 1 min
	MinRate int64         // bytes per second, averaged over each Stall: a slower try is ended; default 100
	MaxTime time.Duration // for a document that is read at once: the usual Request.Within; default 15 min

	Logger *slog.Logger
	Now    func() time.Time

	// Moved receives the permanent new address of a document, even if links to it are not followed. It may be nil.
	Moved func(from, to string)

	uncached bool
	asking   bool
}

// Uncached returns a fetcher that bypasses caches (RFC 9111 §5.2.1.4, no-cache).
func (f *Fetcher) Uncached() *Fetcher {
	own := *f
	own.uncached = true
	return &own
}

// Asking returns a fetcher whose requests have a random value in their query, which TMShare servers repeat: see
// [Answer.Echoed]. Caches have no answer to them.
func (f *Fetcher) Asking() *Fetcher {
	own := f.Uncached()
	own.asking = true
	return own
}

// WithDefaults returns f with defaults for the fields that are zero.
func (f Fetcher) WithDefaults() *Fetcher {
	if f.HTTP == nil {
		f.HTTP = defaultHTTP()
	}
	f.Tries = cmp.Or(f.Tries, 4)
	f.Backoff = cmp.Or(f.Backoff, 250*time.Millisecond)
	f.Stall = cmp.Or(f.Stall, time.Minute)
	f.MinRate = cmp.Or(f.MinRate, 100)
	f.MaxTime = cmp.Or(f.MaxTime, 15*time.Minute)
	f.Logger = cmp.Or(f.Logger, slog.Default())
	if f.Now == nil {
		f.Now = time.Now
	}
	return &f
}

func defaultHTTP() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = time.Minute
	t.MaxIdleConnsPerHost = 64 // more than are used concurrently, to avoid new connections
	return &http.Client{Transport: t}
}

// From returns a fetcher for a source subscribed to at a URL: links may lead to its host, and to Hosts.
func (f *Fetcher) From(subscribed string) (*Fetcher, error) {
	u, err := url.Parse(subscribed)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, cli.UsageError(
			fmt.Errorf("%q is not an http or https URL: write it as in http://127.0.0.1:8080/topicmaps", subscribed))
	}
	if u.User != nil { // lists and messages would show it
		return nil, cli.UsageError(fmt.Errorf(
			"the URL on %s has a name or a password in it: put a token for reading into a file instead (--token-file)", u.Host))
	}
	own, from := iri.HostOf(u), *f
	from.Allow = func(to *url.URL) error {
		if to.Scheme != "http" && to.Scheme != "https" {
			return fmt.Errorf("links to %s: are not followed", to.Scheme)
		}
		host, name := iri.HostOf(to), iri.Host("", strings.TrimSuffix(to.Host, ":"+to.Port()))
		if own == host || own == name || slices.ContainsFunc(f.Hosts, func(h string) bool {
			same := iri.Host(to.Scheme, h)
			return same == host || same == name || h == to.Hostname()
		}) {
			return nil
		}
		return fmt.Errorf("the link leads away from %s, to the host %s: give the address that the server has there. If "+
			"%[1]s is right, its owner corrects --base-url. If both are, allow it with --host %[2]s", u.Host, to.Host)
	}
	return &from, nil
}
