package client

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// downloadFolder is where in the data folder snapshots are fetched to.
const downloadFolder = "downloads"

// fetchSnapshot fetches the data of a snapshot, or the rest. After an error, the next call for the same snapshot
// continues.
func (c *Client) fetchSnapshot(ctx context.Context, s *store.Subscription, e *feeds.Entry,
	data feeds.Link) (*fetch.Download, error) {
	if err := c.tidyDownloads(ctx); err != nil {
		return nil, err
	}
	steps := int64(-1) // that were reported; those of a former round are not
	d := &fetch.Download{Path: c.downloadPath(s), Key: follow.Key(e.ID, e.Updated) + "\x00" + data.Href,
		CheckSpace: c.Store.MayWrite, Progress: func(done, total int64) {
			c.Progress(Progress{s.Name, "fetching the snapshot", done, total, Bytes})
			if n := done / progressStep; n != steps {
				if steps >= 0 && n > steps {
					c.Report(fmt.Sprintf("%s: %d MB of the snapshot read", s.Name, done>>20))
				}
				steps = n
			}
		}}
	return d, d.Fetch(ctx, c.fetcher(),
		fetch.Request{URL: data.Href, Accept: c.links().AcceptFor(data.Type), Max: c.MaxSnapshot})
}

func (c *Client) downloadPath(s *store.Subscription) string {
	return filepath.Join(c.Store.Dir(), downloadFolder, strconv.FormatUint(uint64(s.Number), 10))
}

// tidyDownloads removes the downloads of subscriptions that have ended.
func (c *Client) tidyDownloads(ctx context.Context) error {
	folder := filepath.Join(c.Store.Dir(), downloadFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	subscriptions, err := c.Store.Subscriptions(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range subscriptions {
		known[strconv.FormatUint(uint64(subscriptions[i].Number), 10)] = true
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range files {
		if number, _, _ := strings.Cut(f.Name(), "."); !known[number] {
			if err := os.RemoveAll(filepath.Join(folder, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
