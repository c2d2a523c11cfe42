package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
)

// Collection is a line of the list of collections.
type Collection struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Updated string `json:"updated"` // the time of its last change
	Address string `json:"address"` // the public one
	// Condition names a problem of the collection in two words; the summary then has the remedy. "": no problem.
	Condition string `json:"condition,omitempty"`
	// Former are the names that it had and that lead to it.
	Former []string `json:"former,omitempty"`
}

// Collections lists the collections of the server, as its Topic Maps Feed has
// them.
func (c *Client) Collections(ctx context.Context) ([]Collection, error) {
	feed, _, err := c.feed(ctx, "/topicmaps")
	if err != nil {
		return nil, err
	}
	all := []Collection{}
	for i := range feed.Entries {
		e := &feed.Entries[i]
		links := e.Find(feeds.RelTopicMapFeed)
		if len(links) == 0 {
			return nil, fmt.Errorf("the entry %q of the overview at %s leads to no topic map feed", e.Title, c.addr)
		}
		u, err := url.Parse(links[0].Href)
		if err != nil {
			return nil, fmt.Errorf("the overview at %s: %w", c.addr, err)
		}
		var former []string
		for _, link := range e.Find(feeds.RelFormer) {
			former = append(former, path.Base(link.Href))
		}
		all = append(all, Collection{
			Former: former,
			Name:   path.Base(u.Path), Title: e.Title, Summary: e.Summary,
			Updated: feeds.FormatTime(e.Updated), Address: links[0].Href, Condition: e.Condition,
		})
	}
	return all, nil
}

// ETag returns the ETag of the collection's Topic Map Feed, which If-Match takes.
func (c *Client) ETag(ctx context.Context, name string) (string, error) {
	_, tag, err := c.feed(ctx, mapPath(name))
	return tag, err
}

func (c *Client) feed(ctx context.Context, path string) (f *feeds.Feed, etag string, err error) {
	r := request{method: http.MethodGet, path: path, accept: feeds.MediaTypeAtom}
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	err = c.read(&r, res, func(body io.Reader) (err error) {
		f, err = feeds.Decode(io.LimitReader(body, 64<<20), c.base+path,
			feeds.Limits{ContentType: res.Header.Get("Content-Type")})
		return err
	})
	return f, res.Header.Get("ETag"), err
}

// Settings returns the settings of a collection.
func (c *Client) Settings(ctx context.Context, name string) (s server.CollectionSettings, err error) {
	_, err = c.ask(ctx, request{method: http.MethodGet, path: mapPath(name) + "/settings"}, &s)
	return s, err
}

// Change is a change of settings: members of [server.CollectionSettings]. What is not in it stays as it is.
type Change map[string]any

// settingsType is the media type of settings.
const settingsType = "application/json"

// Put changes the settings of a collection, or creates an empty one if it does not exist.
func (c *Client) Put(ctx context.Context, name string, change Change,
	ifMatch string) (s server.CollectionSettings, created bool, err error) {
	if change == nil {
		change = Change{}
	}
	b, err := json.Marshal(change)
	if err != nil {
		return nil, false, err
	}
	body := &Document{Reader: bytes.NewReader(b), Size: int64(len(b)), mediaType: settingsType}
	status, err := c.ask(ctx,
		request{method: http.MethodPut, path: mapPath(name), body: body, Write: Write{IfMatch: ifMatch}}, &s)
	return s, status == http.StatusCreated, err
}

// Delete removes a collection and its history. The message of w is the reason.
func (c *Client) Delete(ctx context.Context, name string, w Write) (*publish.Published, error) {
	var p publish.Published
	_, err := c.ask(ctx, request{method: http.MethodDelete, path: mapPath(name), Write: w}, &p)
	return &p, err
}

// Rename gives a collection another name. The one that it had leads to it until Forget.
func (c *Client) Rename(ctx context.Context, name, to, ifMatch string) (r server.Renamed, err error) {
	b, err := json.Marshal(map[string]string{"to": to})
	if err != nil {
		return r, err
	}
	body := &Document{Reader: bytes.NewReader(b), Size: int64(len(b)), mediaType: settingsType}
	to = mapPath(name) + "/rename"
	_, err = c.ask(ctx, request{method: http.MethodPost, path: to, body: body, Write: Write{IfMatch: ifMatch}}, &r)
	return r, err
}

// Forget frees a name that a collection had.
func (c *Client) Forget(ctx context.Context, name string) (r server.Renamed, err error) {
	_, err = c.ask(ctx, request{method: http.MethodDelete, path: mapPath(name) + "/former"}, &r)
	return r, err
}

// TakeSnapshot has the server take a snapshot now. Where the newest one is up to
// date, it is that one, and taken is false.
func (c *Client) TakeSnapshot(ctx context.Context, name string) (snap *server.TakenSnapshot, taken bool, err error) {
	snap = &server.TakenSnapshot{}
	status, err := c.ask(ctx, request{method: http.MethodPost, path: mapPath(name) + "/snapshots"}, snap)
	return snap, status == http.StatusCreated, err
}

// Prune removes the history that need not be kept, or, in a dry run, counts it.
func (c *Client) Prune(ctx context.Context, name string, dryRun bool) (*server.Pruned, error) {
	var p server.Pruned
	_, err := c.ask(ctx, request{method: http.MethodPost, path: mapPath(name) + "/gc", Write: Write{DryRun: dryRun}}, &p)
	return &p, err
}
