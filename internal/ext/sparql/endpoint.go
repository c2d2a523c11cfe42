package sparql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/icholy/digest"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/tokenfile"
	"github.com/tmshare/tmshare/xtm"
)

// endpoint queries and updates a store by the SPARQL 1.1 Protocol. It is safe for concurrent use.
type endpoint struct {
	updates, queries string // URLs
	fetcher          *fetch.Fetcher
}

// These bound answers, and the time for one: a store may take minutes for an update.
const (
	maxAnswer = 64 << 20
	maxTime   = 10 * time.Minute
)

// newEndpoint returns the endpoint of a target. It reads the files with its credentials.
func newEndpoint(t *Target, f *fetch.Fetcher) (*endpoint, error) {
	own := *f
	e := &endpoint{updates: t.Update, queries: t.Query, fetcher: &own}
	h := *f.HTTP
	if h.Transport == nil {
		h.Transport = http.DefaultTransport
	}
	h.Timeout = 0 // the fetcher bounds the time
	switch {
	case t.TokenFile != "":
		shown, err := fetch.BearerFrom(&h, t.Update, t.TokenFile)
		if err == nil {
			shown, err = fetch.BearerFrom(shown, t.Query, t.TokenFile)
		}
		if err != nil {
			return nil, err
		}
		h = *shown
	case t.PasswordFile != "":
		all, err := tokenfile.Read(t.PasswordFile)
		if err != nil {
			return nil, err
		}
		if all[0].Name == "" {
			return nil, fmt.Errorf("%s: has no user: write \"user: password\" in one line", t.PasswordFile)
		}
		h.Transport = &password{user: all[0].Name, password: all[0].Value, next: h.Transport}
	}
	e.fetcher.HTTP = &h
	return e, nil
}

// password authenticates by the scheme that the store requests: HTTP Basic (RFC 7617) or Digest (RFC 7616).
type password struct {
	user, password string
	next           http.RoundTripper
	digest         *digest.Transport
	basic          bool
}

// RoundTrip implements [http.RoundTripper]. It is not safe for concurrent use.
func (p *password) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.digest != nil {
		return p.digest.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	if p.basic {
		r.SetBasicAuth(p.user, p.password)
	}
	res, err := p.next.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusUnauthorized || p.basic || r.GetBody == nil {
		return res, err
	}
	asked := strings.ToLower(strings.Join(res.Header.Values("WWW-Authenticate"), ","))
	switch {
	case strings.Contains(asked, "digest"):
		p.digest = &digest.Transport{Username: p.user, Password: p.password, Transport: p.next}
	case strings.Contains(asked, "basic"):
		p.basic = true
	default:
		return res, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 4096))
	res.Body.Close()
	if r.Body, err = r.GetBody(); err != nil {
		return nil, err
	}
	return p.RoundTrip(r)
}

// from returns a fetcher for a URL configured by the operator, and for redirects to the same host.
func (e *endpoint) from(at string) *fetch.Fetcher {
	own := *e.fetcher
	from, err := url.Parse(at)
	own.Allow = func(u *url.URL) error {
		if err == nil && u.Host != from.Host {
			err = fmt.Errorf("it leads to another host, %s: give that address", u.Host)
		}
		return err
	}
	return &own
}

// update executes an update request (SPARQL 1.1 Protocol §2.2, update operation). One that was executed may be
// executed again, where the answer was lost.
func (e *endpoint) update(ctx context.Context, text string) error {
	r := fetch.Request{URL: e.updates, Method: http.MethodPost, Post: []byte(text), PostType: "application/sparql-update",
		Accept: "*/*", Max: maxAnswer, Within: maxTime,
		Also: []int{http.StatusCreated, http.StatusAccepted, http.StatusNoContent}}
	_, _, err := fetch.Do(ctx, e.from(e.updates), r, func(a *fetch.Answer) (int64, error) {
		return io.Copy(io.Discard, a.Body)
	})
	return explained(err)
}

// query executes a query (ibid. §2.1, query operation).
func query[T any](ctx context.Context, e *endpoint, text, accept string,
	read func(*fetch.Answer) (T, error)) (T, error) {
	r := fetch.Request{URL: e.queries, Method: http.MethodPost, Post: []byte(url.Values{"query": {text}}.Encode()),
		PostType: "application/x-www-form-urlencoded", Accept: accept, Max: maxAnswer, Within: maxTime}
	found, _, err := fetch.Do(ctx, e.from(e.queries), r, read)
	return found, explained(err)
}

// explained adds the remedy to an error about refused credentials.
func explained(err error) error {
	if failed, ok := errors.AsType[*fetch.Error](err); ok {
		switch failed.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("%s: the store answered %d: it wants a user who may "+
				"update (--password-file with \"user: password\", or --token-file)", failed.URL, failed.Status)}
		}
	}
	return err
}

// results are those of a SELECT query (SPARQL 1.1 Query Results JSON Format).
type results struct {
	Results struct {
		Bindings []map[string]struct{ Value string }
	}
}

// values returns the values of a variable, of a query that selects it.
func (e *endpoint) values(ctx context.Context, text, variable string) (all []string, err error) {
	return query(ctx, e, text, "application/sparql-results+json", func(a *fetch.Answer) (all []string, err error) {
		var r results
		if err := json.NewDecoder(a.Body).Decode(&r); err != nil {
			return nil, fetch.Permanent(fmt.Errorf("%s: the answer is no SPARQL results in JSON: %w", a.URL, err))
		}
		for _, b := range r.Results.Bindings {
			all = append(all, b[variable].Value)
		}
		return all, nil
	})
}

// count returns the number that a query selects as ?n.
func (e *endpoint) count(ctx context.Context, text string) (n int, err error) {
	all, err := e.values(ctx, text, "n")
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%s: the store answered a count with %d rows", e.queries, len(all))
	}
	if err == nil {
		if _, err = fmt.Sscanf(all[0], "%d", &n); err != nil {
			err = fmt.Errorf("%s: the store answered a count with %q", e.queries, all[0])
		}
	}
	return n, err
}

// construct returns the statements that a query constructs.
func (e *endpoint) construct(ctx context.Context, text string) ([]rdf.Quad, error) {
	const accept = "application/n-triples, text/turtle;q=0.9" // N-Triples is Turtle, too
	return query(ctx, e, text, accept, func(a *fetch.Answer) (all []rdf.Quad, err error) {
		o := turtle.Options{URI: a.URL, Base: a.URL, Tolerated: func(*xtm.SyntaxError) {}}
		err = turtle.Read(a.Body, turtle.Turtle, o, func(q rdf.Quad) error { all = append(all, q); return nil })
		return all, err
	})
}
