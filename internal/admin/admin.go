// Package admin sends requests to a running server over HTTP: to publish, to change settings and to clean up. The
// commands of tmshare-server use it.
//
// It builds the server's URLs itself, so that it works under an address other than the public one, such as that of the
// machine itself. Subscribers follow links instead.
package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
)

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	base  string // the server's address, without a slash at the end
	addr  string // the same without a password
	token string
	http  *http.Client
}

// New returns a client for the server at an address. It sends the bearer token; "": none.
func New(address, token string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		strings.ContainsAny(address, "?#") {
		return nil, fmt.Errorf(
			"%q is not an http or https URL without query and fragment: write it as in http://127.0.0.1:8080", address)
	}
	trimmed := func(s string) string { // the address of the overview will do, and of its page
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(s, "/"), ".html"), "/topicmaps")
	}
	return &Client{
		base: trimmed(address), addr: trimmed(u.Redacted()),
		token: token,
		http: &http.Client{
			Transport: http.DefaultTransport.(*http.Transport).Clone(),
			// A redirected PUT would become a GET (RFC 9110 §15.4.3, 302 Found), and its success would look like that
			// of the PUT.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Trust makes the client trust an authority in a file, besides those of this machine; "": none.
func (c *Client) Trust(file string) (err error) {
	c.http, err = fetch.Trusting(c.http, file)
	return err
}

// CheckName returns an error for an invalid name of a collection, given by flag, or "" by an argument. For an address,
// the error has the right form.
func CheckName(flag, given string) error {
	if !strings.Contains(given, "://") {
		return store.ValidateName(given)
	}
	server, below, _ := strings.Cut(given, "/topicmaps")
	name, _, _ := strings.Cut(strings.TrimPrefix(below, "/"), "/")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".html"), ".atom")
	return fmt.Errorf("%s is an address: write %s%s --server %s", given, flag, cmp.Or(name, "NAME"), server)
}

// Refusal is the error for an answer without success, with the server's problem.
type Refusal struct {
	problems.Problem
	ofDocument bool // a document was sent
}

func (r *Refusal) Error() string {
	s := r.Detail
	if r.Status == http.StatusUnauthorized {
		s += "; here: --token-file FILE"
	}
	if r.Status == http.StatusNotFound {
		for what, advice := range map[string]string{
			"not found: collection ": `"tmshare-server collections" lists those that are there`,
			"not found: entry ":      `"tmshare-server log" lists those that are there`,
			"no topic of ":           `"tmshare-client find" finds topics by name`,
		} {
			if strings.HasPrefix(r.Detail, what) {
				s += "; " + advice
			}
		}
	}
	if strings.HasSuffix(s, formats.ChooseGraph) {
		s += "; here: --graph IRI"
	}
	if strings.Contains(s, formats.SendAs) {
		s += "; here: by the ending of the file's name, which standard input lacks"
	}
	if r.HeldBack != nil {
		s += "; here: --max-delete " + r.HeldBack.MaxDelete
	}
	if r.RequestID != "" {
		s += " (request " + r.RequestID + ")"
	}
	lines := r.Users
	if r.HeldBack != nil {
		lines = r.HeldBack.Lines()
	}
	for _, line := range lines {
		s += "\n  " + line
	}
	return s
}

// Outcome returns the exit code of a command that is refused.
func (r *Refusal) Outcome() int {
	switch {
	case r.HeldBack != nil:
		return cli.HeldBack
	case slices.Contains(cli.AwayStatuses, r.Status):
		return cli.Unreachable
	case r.Status == http.StatusConflict, r.Status == http.StatusPreconditionFailed,
		r.Status == http.StatusMisdirectedRequest,                 // the collection was moved to another server
		r.Status == http.StatusPermanentRedirect && r.Title != "": // the collection was renamed; the server says so
		return cli.Conflict
	case r.ofDocument && (r.Status == http.StatusUnprocessableEntity || strings.Contains(r.Detail, formats.Unread)),
		r.Status == http.StatusUnsupportedMediaType:
		return cli.BrokenInput
	case r.Status == http.StatusUnprocessableEntity, !r.ofDocument && r.Status == http.StatusBadRequest: // bad input
		return cli.Usage
	}
	return cli.Failed
}

// request is a request to the server.
type request struct {
	method string
	path   string // below the server's address, escaped
	query  url.Values
	accept string
	body   *Document
	Write
}

// Write holds the conditions and the attribution of a change.
type Write struct {
	IfMatch   string       // only from the state with this ETag
	MaxDelete losses.Limit // of a whole version; the zero value leaves the choice to the server
	DryRun    bool         // change nothing, and return the possible changes

	Author, Message string // author and reason of the change; "" leaves the author to the token
}

// send sends a request. Where the answer is no success, it is a [*Refusal].
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = r.body.Reader
	}
	if r.DryRun {
		r.path += "/dry-run"
	}
	query := url.Values{}
	if r.body != nil {
		maps.Copy(query, r.body.Asked)
	}
	maps.Copy(query, r.query)
	at := c.base + r.path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, body)
	if err != nil {
		return nil, err
	}
	h := req.Header
	if r.body != nil {
		if r.body.Size > 0 {
			req.ContentLength = r.body.Size
		}
		h.Set("Content-Type", r.body.mediaType)
		if r.body.gzipped {
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("User-Agent", "tmshare-server (+https://github.com/tmshare/tmshare)")
	h.Set("Accept", strings.TrimPrefix(r.accept+", application/problem+json", ", "))
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if r.IfMatch != "" {
		h.Set("If-Match", quoted(r.IfMatch))
	}
	for name, text := range map[string]string{"TMShare-Author": r.Author, "TMShare-Note": r.Message} {
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			h.Set(name, text)
		}
	}
	if limit, _ := r.MaxDelete.MarshalText(); len(limit) > 0 {
		h.Set("TMShare-Max-Delete", string(limit))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unanswered(&r, err)
	}
	if res.StatusCode >= 300 && res.StatusCode != http.StatusSeeOther {
		defer res.Body.Close()
		refusal := c.refusal(res)
		refusal.ofDocument = r.body != nil && r.body.mediaType != settingsType
		return nil, refusal
	}
	return res, nil
}

// refusal reads an answer that is no success (RFC 9457, Problem Details for HTTP
// APIs). What others than the server answer, such as proxies, is not shown.
func (c *Client) refusal(res *http.Response) *Refusal {
	r := &Refusal{}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "application/problem+json" {
		_ = json.NewDecoder(io.LimitReader(res.Body, 16<<20)).Decode(&r.Problem) // a broken one has no Detail
	}
	r.Status, r.RequestID = res.StatusCode, cmp.Or(r.RequestID, res.Header.Get("X-Request-Id"))
	if r.Detail == "" {
		r.Detail = fmt.Sprintf("%s answers %s", c.addr, res.Status)
		if to := res.Header.Get("Location"); to != "" {
			r.Detail += ", leading to " + to + "; give the server's address as it is there"
		}
	}
	return r
}

// ask sends a request, decodes its JSON answer, and returns the status.
func (c *Client) ask(ctx context.Context, r request, answer any) (status int, err error) {
	r.accept = "application/json"
	res, err := c.send(ctx, r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return res.StatusCode, c.read(&r, res, func(body io.Reader) error {
		return json.NewDecoder(body).Decode(answer)
	})
}

// isMissing reports whether the error is a 404 of the server.
func isMissing(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && (r.Status == http.StatusNotFound || r.Status == http.StatusGone)
}

// quoted returns an ETag with its quotes, which shells take away.
func quoted(etag string) string {
	if etag == "*" || strings.Contains(etag, `"`) {
		return etag
	}
	return `"` + etag + `"`
}

func mapPath(name string) string { return "/topicmaps/" + url.PathEscape(name) }
