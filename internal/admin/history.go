package admin

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/titles"
)

// Query selects changes of a collection.
type Query struct {
	SI    string    // of a topic; "": all topics
	Since time.Time // not before this time
	Limit int       // as many at most; 0: all
	Words bool      // with the differences

	Commits bool   // in place of the changes
	Author  string // only changes by this author; "": all
	Before  uint64 // sequence of an entry before which to begin; 0: with the newest

	Languages titles.Languages // in which topics are called, the best first
}

// History returns changes of a collection, the newest first.
func (c *Client) History(ctx context.Context, name string, q Query) (*history.List, error) {
	query := url.Values{"words": {strconv.FormatBool(q.Words)}, "limit": {"1000"}}
	for name, value := range map[string]string{"si": q.SI, "author": q.Author} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Before > 0 {
		query.Set("before", strconv.FormatUint(q.Before, 10))
	}
	if q.Commits {
		query.Set("commits", "true")
	}
	if len(q.Languages) > 0 {
		query.Set("lang", q.Languages.String())
	}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	all := &history.List{Changes: []history.Change{}}
	for {
		if q.Limit > 0 {
			query.Set("limit", strconv.Itoa(min(1000, q.Limit-len(all.Changes)-len(all.Commits))))
		}
		var page history.List
		if _, err := c.ask(ctx,
			request{method: http.MethodGet, path: mapPath(name) + "/history", query: query}, &page); err != nil {
			return nil, err
		}
		page.Changes, page.Commits = append(all.Changes, page.Changes...), append(all.Commits, page.Commits...)
		all = &page
		if all.Before == 0 || q.Limit > 0 && len(all.Changes)+len(all.Commits) >= q.Limit {
			return all, nil
		}
		query.Set("before", strconv.FormatUint(all.Before, 10))
	}
}

// Differences returns the topics that differ between the states at two times; a zero time is now. They are called in
// some languages, the best first.
func (c *Client) Differences(ctx context.Context, name string, from, to time.Time,
	languages titles.Languages) (*server.Differences, error) {
	query := url.Values{}
	if len(languages) > 0 {
		query.Set("lang", languages.String())
	}
	for _, t := range []time.Time{from, to} {
		if !t.IsZero() {
			query.Add("at", t.Format(time.RFC3339Nano))
		}
	}
	var d server.Differences
	_, err := c.ask(ctx,
		request{method: http.MethodGet, path: mapPath(name) + "/differences", query: query}, &d)
	return &d, err
}

// Export writes a collection as it is now, or as it was at a time that is not zero. extension is that of the
// form in which it is wanted, such as ".xtm21".
func (c *Client) Export(ctx context.Context, name, extension string, at time.Time, w io.Writer) error {
	return c.copy(ctx, request{method: http.MethodGet, path: mapPath(name) + "/snapshots/current" + extension,
		query: atQuery(nil, at), accept: "*/*"}, w)
}

// copy writes the body of an answer.
func (c *Client) copy(ctx context.Context, r request, w io.Writer) error {
	res, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body := &noticed{Reader: res.Body}
	if _, err = io.Copy(w, body); body.err != nil {
		return c.unanswered(&r, err)
	}
	return err
}

// atQuery adds a time in the past to a query, unless that is zero.
func atQuery(query url.Values, at time.Time) url.Values {
	if !at.IsZero() {
		if query == nil {
			query = url.Values{}
		}
		query.Set("at", at.Format(time.RFC3339Nano))
	}
	return query
}

// RevertTopic restores a topic to its version at a time.
func (c *Client) RevertTopic(ctx context.Context, name, si string, to time.Time, w Write) (*publish.Published, error) {
	return c.revert(ctx, name, url.Values{"si": {si}, "to": {to.Format(time.RFC3339Nano)}}, w)
}

// RevertCommit undoes the changes of a commit; with force even if some of them must remain.
func (c *Client) RevertCommit(ctx context.Context, name string, commit uint64, force bool,
	w Write) (*publish.Published, error) {
	query := url.Values{"commit": {strconv.FormatUint(commit, 10)}}
	if force {
		query.Set("force", "true")
	}
	return c.revert(ctx, name, query, w)
}

func (c *Client) revert(ctx context.Context, name string, query url.Values, w Write) (*publish.Published, error) {
	return c.publish(ctx,
		request{method: http.MethodPost, path: mapPath(name) + "/revert", query: query, Write: w})
}
