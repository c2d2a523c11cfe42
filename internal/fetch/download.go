package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// Download is a file with a document as received, or its beginning. An interrupted download continues at its end, also
// in another process. A second file has its description. The folder must exist.
type Download struct {
	Path string // of the file; next to it Path.json and, for a moment, Path.json.new

	// Key identifies the document. A file with another key, or without a strong ETag, is removed instead of continued.
	Key string

	Progress   func(done, total int64) // called for each write, in received bytes; total is 0 if unknown
	CheckSpace func() error            // called from time to time to check the free space of the disk

	known knownDownload
	file  *os.File // while it is written
	size  int64    // bytes that are there
}

// knownDownload describes the file, to identify its document.
type knownDownload struct {
	Key      string
	URL      string // after redirects
	ETag     string // strong, or "": then it cannot be continued
	Coding   string // how the content is packed
	Type     string // its Content-Type
	Total    int64  // bytes of all of it, -1 if not known
	Complete bool
}

// spaceStep is the number of bytes between two looks at the free space on the disk.
const spaceStep = 16 << 20

// Fetch fetches the document to the file, or the rest of it, r.Max bytes at most. After an error, the next call for the
// same Key continues. It sets ETag, Packed, Prepare and Also of r itself.
func (d *Download) Fetch(ctx context.Context, f *Fetcher, r Request) error {
	if err := d.resume(); err != nil {
		return err
	}
	r.ETag, r.Packed = "", true
	r.Prepare, r.Also = d.ask,
		[]int{http.StatusPartialContent, http.StatusNotModified, http.StatusRequestedRangeNotSatisfiable}
	for farthest := d.size; ; farthest = d.size { // as long as all tries together get farther
		_, _, err := Do(ctx, f, r, func(a *Answer) (struct{}, error) { return struct{}{}, d.receive(a, r.Max) })
		var failed *Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) || !failed.Transient() || errors.Is(err, errTooSlow) ||
			d.size <= farthest {
			return err
		}
	}
}

// URL returns where the document came from, after redirects.
func (d *Download) URL() string { return d.known.URL }

// ContentType returns the Content-Type with which the document came.
func (d *Download) ContentType() string { return d.known.Type }

// resume uses the existing part of the document, and removes that of another one.
func (d *Download) resume() error {
	b, err := os.ReadFile(d.Path + ".json")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info, missing := os.Stat(d.Path)
	_ = json.Unmarshal(b, &d.known) // an unreadable description is of another document
	if missing == nil && d.known.ETag != "" && d.known.Key == d.Key {
		d.size = info.Size()
		return nil
	}
	return d.Remove()
}

// Remove removes the files.
func (d *Download) Remove() error {
	d.size, d.known = 0, knownDownload{}
	var errs []error
	for _, path := range []string{d.Path, d.Path + ".json"} {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ask requests the missing part, in the server's content coding.
func (d *Download) ask(h http.Header) {
	switch {
	case d.known.Complete:
		h.Set("If-None-Match", d.known.ETag)
	case d.size > 0 && d.known.ETag != "":
		h.Set("Range", fmt.Sprintf("bytes=%d-", d.size))
		h.Set("If-Range", d.known.ETag)
	}
}

// receive writes the received bytes to the file (RFC 9110 §14, Range Requests).
func (d *Download) receive(a *Answer, limit int64) error {
	switch a.Status {
	case http.StatusNotModified:
		if d.known.Complete {
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

// startOver removes the file, and requests another try.
func (d *Download) startOver(a *Answer, why string) error {
	return errors.Join(&Error{URL: a.URL,
		Err: errors.New("the download cannot be gone on with, it is fetched from its beginning: " + why)}, d.Remove())
}

// fits returns why the answer is not the rest of the file, "" if it is.
func (d *Download) fits(a *Answer) string {
	var first, last, total int64
	stated := a.Header.Get("Content-Range")
	if _, err := fmt.Sscanf(stated, "bytes %d-%d/%d", &first, &last, &total); err != nil {
		total = -1
		if _, err := fmt.Sscanf(stated, "bytes %d-%d/*", &first, &last); err != nil {
			return fmt.Sprintf("its Content-Range is %q", stated)
		}
	}
	switch {
	case d.size == 0 || d.known.ETag == "":
		return "it sent a part without being asked for it"
	case first != d.size:
		return fmt.Sprintf("it sent bytes from %d on, not %d", first, d.size)
	case total >= 0 && d.known.Total >= 0 && total != d.known.Total:
		return fmt.Sprintf("it has %d bytes now, not %d", total, d.known.Total)
	case a.ETag != "" && a.ETag != d.known.ETag:
		return "it sent a part of another version"
	case contentCoding(a.Header) != d.known.Coding:
		return "it sent a part in another coding"
	}
	if total >= 0 {
		d.known.Total = total
	}
	return ""
}

// begin makes the file that of the answer, from its beginning.
func (d *Download) begin(a *Answer) error {
	if c := contentCoding(a.Header); c != "" && c != "gzip" && c != "zstd" { // rather now than when all is there
		return &Error{URL: a.URL, Err: fmt.Errorf("the content coding %q is not known, nor was it asked for", c)}
	}
	if err := d.Remove(); err != nil {
		return err
	}
	d.known = knownDownload{Key: d.Key, URL: a.URL, Coding: contentCoding(a.Header), Type: a.ContentType, Total: a.Length}
	if !strings.HasPrefix(a.ETag, "W/") {
		d.known.ETag = a.ETag
	}
	return d.note()
}

// note stores the description of the file.
func (d *Download) note() error {
	b, err := json.Marshal(&d.known)
	if err == nil {
		err = os.WriteFile(d.Path+".json.new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(d.Path+".json.new", d.Path+".json")
	}
	return err
}

func (d *Download) write(a *Answer, limit int64) (err error) {
	if d.file, err = os.OpenFile(d.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	_, err = io.Copy(toFile{d}, io.LimitReader(a.Body, limit-d.size+1))
	err = errors.Join(err, d.file.Close())
	switch {
	case d.size > limit || errors.Is(err, errTooLong): // the continued file may be of another version
		return errors.Join(&Error{URL: a.URL, Err: fmt.Errorf("%w of %d bytes", errTooLong, limit)}, d.Remove())
	case err != nil:
		return err
	case d.known.Total >= 0 && d.size < d.known.Total:
		return &Error{URL: a.URL, Err: io.ErrUnexpectedEOF}
	case d.known.Total >= 0 && d.size > d.known.Total:
		return d.startOver(a, "it sent more than it said it would")
	}
	d.known.Complete = true
	return d.note()
}

// toFile writes to the file of a download.
type toFile struct{ *Download }

func (d toFile) Write(p []byte) (int, error) {
	if d.CheckSpace != nil && d.size/spaceStep != (d.size+int64(len(p)))/spaceStep {
		if err := d.CheckSpace(); err != nil {
			return 0, err
		}
	}
	n, err := d.file.Write(p)
	d.size += int64(n)
	if d.Progress != nil {
		d.Progress(d.size, max(d.known.Total, 0))
	}
	return n, err
}
