package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/store"
)

// downloadFolder is where in the data folder snapshots are fetched to.
const downloadFolder = "downloads"

// download is a file with a snapshot as it came over the wire, or its beginning.
// An interrupted download goes on where it ended, in another process too. What is
// known of it stands in a file beside it.
type download struct {
	aboutDownload
	path string
	file *os.File // while it is written
	size int64    // bytes that are there
	told func(before int64)
	room func() error
}

// aboutDownload says what the file is, so that it is not taken for another.
type aboutDownload struct {
	Entry    string    // of the feed of snapshots: its id
	Updated  time.Time // of the entry
	Link     string    // to the data
	URL      string    // after redirects
	ETag     string    // strong, or "": then it cannot be gone on with
	Coding   string    // how the content is packed
	Total    int64     // bytes of all of it, -1 if not known
	Complete bool
}

// fetchSnapshot fetches the data of a snapshot, or the rest of them. What an
// error leaves is gone on with by the next call, if that is for the same snapshot.
func (c *Client) fetchSnapshot(ctx context.Context, s *store.Subscription, e *feeds.Entry, link string, request request) (*download, error) {
	d := &download{path: c.downloadPath(s), room: c.Store.Room}
	d.told = func(before int64) {
		c.Progress(Progress{s.Name, "fetching the snapshot", d.size, max(d.Total, 0), Bytes})
		if d.size/progressStep > before/progressStep {
			c.Report(fmt.Sprintf("%s: %d MB of the snapshot read", s.Name, d.size>>20))
		}
	}
	if err := c.tidyDownloads(); err != nil {
		return nil, err
	}
	if err := d.resume(aboutDownload{Entry: e.ID, Updated: e.Updated, Link: link}); err != nil {
		return nil, err
	}
	request.packed = true
	request.prepare, request.also = d.ask, []int{http.StatusPartialContent, http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable}
	request.max = c.MaxSnapshot
	for farthest := d.size; ; farthest = d.size { // as long as all tries together get farther
		_, _, err := fetch(ctx, c, request, func(a *answer) (struct{}, error) { return struct{}{}, d.receive(a, c.MaxSnapshot) })
		var failed *FetchError
		if err == nil {
			return d, nil
		}
		if ctx.Err() != nil || !errors.As(err, &failed) || !failed.transient() || d.size <= farthest {
			return d, err
		}
	}
}

func (c *Client) downloadPath(s *store.Subscription) string {
	return filepath.Join(c.Store.Dir(), downloadFolder, strconv.FormatUint(uint64(s.Number), 10))
}

// tidyDownloads removes what was fetched for subscriptions that are no more.
func (c *Client) tidyDownloads() error {
	folder := filepath.Join(c.Store.Dir(), downloadFolder)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	subscriptions, err := c.Store.Subscriptions()
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
			if err := os.Remove(filepath.Join(folder, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// resume takes on what is there of the snapshot, and removes what is there of
// another one.
func (d *download) resume(wanted aboutDownload) error {
	b, err := os.ReadFile(d.path + ".json")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info, missing := os.Stat(d.path)
	_ = json.Unmarshal(b, &d.aboutDownload) // what cannot be read is another one
	if missing == nil && d.ETag != "" && d.Entry == wanted.Entry && d.Updated.Equal(wanted.Updated) && d.Link == wanted.Link {
		d.size = info.Size()
		return nil
	}
	err = d.remove()
	d.aboutDownload = wanted
	return err
}

// remove removes the files.
func (d *download) remove() error {
	d.size, d.Complete, d.ETag = 0, false, ""
	var errs []error
	for _, path := range []string{d.path, d.path + ".json"} {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ask asks for what is missing, packed as a server keeps it.
func (d *download) ask(h http.Header) {
	switch {
	case d.Complete:
		h.Set("If-None-Match", d.ETag)
	case d.size > 0 && d.ETag != "":
		h.Set("Range", fmt.Sprintf("bytes=%d-", d.size))
		h.Set("If-Range", d.ETag)
	}
}

// receive writes what comes to the file (RFC 9110 §14, Range Requests).
func (d *download) receive(a *answer, limit int64) error {
	switch a.status {
	case http.StatusNotModified:
		if d.Complete {
			return nil
		}
		return d.startOver(a, "it answered 304 to a request without a condition")
	case http.StatusRequestedRangeNotSatisfiable:
		return d.startOver(a, "it has less than was fetched")
	case http.StatusPartialContent:
		if why := d.fits(a); why != "" {
			return d.startOver(a, why)
		}
	default:
		if err := d.begin(a); err != nil {
			return err
		}
	}
	return d.write(a, limit)
}

// startOver removes what is there, and asks for another try.
func (d *download) startOver(a *answer, why string) error {
	return errors.Join(&FetchError{URL: a.url, Err: errors.New("the snapshot cannot be gone on with, it is fetched from its beginning: " + why)}, d.remove())
}

// fits returns why the answer is not the rest of the file, "" if it is.
func (d *download) fits(a *answer) string {
	var first, last, total int64
	said := a.header.Get("Content-Range")
	if _, err := fmt.Sscanf(said, "bytes %d-%d/%d", &first, &last, &total); err != nil {
		total = -1
		if _, err := fmt.Sscanf(said, "bytes %d-%d/*", &first, &last); err != nil {
			return fmt.Sprintf("its Content-Range is %q", said)
		}
	}
	switch {
	case d.size == 0 || d.ETag == "":
		return "it sent a part without being asked for it"
	case first != d.size:
		return fmt.Sprintf("it sent bytes from %d on, not %d", first, d.size)
	case total >= 0 && d.Total >= 0 && total != d.Total:
		return fmt.Sprintf("it has %d bytes now, not %d", total, d.Total)
	case a.etag != "" && a.etag != d.ETag:
		return "it sent a part of another version"
	case contentCoding(a.header) != d.Coding:
		return "it sent a part in another coding"
	}
	if total >= 0 {
		d.Total = total
	}
	return ""
}

// begin makes the file that of the answer, from its beginning.
func (d *download) begin(a *answer) error {
	if c := contentCoding(a.header); c != "" && c != "gzip" && c != "zstd" { // rather now than when all is there
		return &FetchError{URL: a.url, Err: fmt.Errorf("the content coding %q is not known, nor was it asked for", c)}
	}
	if err := d.remove(); err != nil {
		return err
	}
	d.URL, d.Coding, d.Total = a.url, contentCoding(a.header), a.length
	if !strings.HasPrefix(a.etag, "W/") {
		d.ETag = a.etag
	}
	return d.note()
}

// note keeps what is known of the file.
func (d *download) note() error {
	b, err := json.Marshal(&d.aboutDownload)
	if err == nil {
		err = os.WriteFile(d.path+".json.new", b, 0o640)
	}
	if err == nil {
		err = os.Rename(d.path+".json.new", d.path+".json")
	}
	return err
}

func (d *download) write(a *answer, limit int64) (err error) {
	if d.file, err = os.OpenFile(d.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640); err != nil {
		return err
	}
	_, err = io.Copy(d, io.LimitReader(a.body, limit-d.size+1))
	err = errors.Join(err, d.file.Close())
	switch {
	case d.size > limit:
		return errors.Join(&FetchError{URL: a.url, Err: fmt.Errorf("%w of %d bytes", errTooLong, limit)}, d.remove())
	case err != nil:
		return err
	case d.Total >= 0 && d.size < d.Total:
		return &FetchError{URL: a.url, Err: io.ErrUnexpectedEOF}
	case d.Total >= 0 && d.size > d.Total:
		return d.startOver(a, "it sent more than it said it would")
	}
	d.Complete = true
	return d.note()
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	if d.size/progressStep != (d.size+int64(len(p)))/progressStep {
		if err := d.room(); err != nil {
			return 0, err
		}
	}
	n, err := d.file.Write(p)
	before := d.size
	d.size += int64(n)
	d.told(before)
	return n, err
}
