package folder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// taken is the result of fetching a record.
type taken struct {
	record follow.Record
	from   follow.Representation // the representation
	err    error                 // Gone: none of the wanted ones exists

	unwanted bool   // it is in no format that is wanted
	same     bool   // equal to the held one
	temp     string // the file with the fetched content
	held     Held   // the new state of the record
}

// diskError is a failure to write a record that was fetched.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// take fetches a record in the best of the forms that are wanted, and is there. Of copies,
// any that can be had will do. What is held already is not fetched.
func (r *round) take(ctx context.Context, record follow.Record, before Held) taken {
	wanted := choose(record.Representations, r.Formats)
	if len(wanted) == 0 {
		return taken{record: record, unwanted: true}
	}
	if before.File != "" && follow.Compare(before.fixity(), wanted[0].Fixity) == follow.Same {
		t := taken{record: record, from: wanted[0], same: true, held: before}
		t.held.Stale = false
		t.describe()
		return t
	}
	if t, ok := r.patched(ctx, record, wanted[0], before); ok {
		return t
	}
	var t taken
	for i, from := range wanted {
		if i < len(wanted)-1 && r.hosts.isDown(from.URL) {
			continue
		}
		t = r.takeFrom(ctx, record, from, before)
		if t.err == nil || !follow.Gone(t.err) && !r.Mirror || ctx.Err() != nil || errors.As(t.err, new(*diskError)) {
			return t
		}
	}
	return t
}

// takeFrom takes one of the representations of a record.
func (r *round) takeFrom(ctx context.Context, record follow.Record, from follow.Representation, before Held) taken {
	t := taken{record: record, from: from}
	temp := r.temp()
	if from.Open != nil {
		t.held, t.err = r.unpack(temp, from)
	} else {
		done, err := r.hosts.begin(ctx, from.URL)
		if err != nil {
			t.err = err
			return t
		}
		t.held, t.same, t.err = r.download(ctx, temp, &record, from, before)
		done(t.err)
	}
	if t.err != nil || t.same {
		_ = r.root.Remove(temp) // it may be missing, or from an interrupted attempt
	} else {
		t.temp = temp
	}
	if t.err == nil {
		t.describe()
	}
	return t
}

// describe notes the source's statements about the record.
func (t *taken) describe() {
	t.held.Title, t.held.Updated, t.held.Missing, t.held.Unwanted = t.record.Title, t.record.Updated, nil, false
}

// unpack takes a representation from its package.
func (r *round) unpack(temp string, from follow.Representation) (Held, error) {
	content, err := from.Open()
	if err != nil {
		return Held{}, err
	}
	defer content.Close()
	return r.receive(temp, from, content, from.Type)
}

// download fetches a representation, unless the server answers that the held one is current.
func (r *round) download(ctx context.Context, temp string, record *follow.Record, from follow.Representation,
	before Held) (held Held, same bool, err error) {
	q := fetch.Request{URL: from.URL, Accept: accept(from.Type), Max: r.MaxSize,
		Within: r.Fetcher.MaxTime}
	mayBeSame := before.File != "" && before.URL == from.URL && (before.Type == from.Type || r.Mirror && from.Type == "")
	if mayBeSame && !r.anew && !strings.HasPrefix(before.ETag, "W/") &&
		follow.Compare(before.fixity(), from.Fixity) != follow.Different {
		q.ETag = before.ETag
	}
	coded := from.Fixity.Encoding != ""
	receive := func(a *fetch.Answer) (Held, error) {
		coded = coded || a.Header.Get("Content-Encoding") != ""
		return r.receive(temp, from, a.Body, a.ContentType)
	}
	held, answer, err := fetch.Do(ctx, r.Fetcher, q, receive)
	if coded && errors.As(err, new(*resourcesync.MismatchError)) { // they may be those of the bytes as they are coded
		q.Packed, q.Prepare = true, func(h http.Header) { h.Set("Accept-Encoding", cmp.Or(from.Fixity.Encoding, "identity")) }
		held, answer, err = fetch.Do(ctx, r.Fetcher, q, receive)
	}
	switch {
	case err != nil:
		return Held{}, false, err
	case answer.NotModified:
		before.Stale, _ = record.Later(answer) // the answer settles it
		return before, true, nil
	}
	held.ETag = answer.ETag
	held.Stale, err = record.Later(answer)
	return held, false, err
}

// receive writes content to a file, and checks it against the source's statements.
func (r *round) receive(temp string, from follow.Representation, content io.Reader, mediaType string) (Held, error) {
	file, err := r.root.Create(temp)
	if err != nil {
		return Held{}, fetch.Permanent(&diskError{err})
	}
	sum := sha256.New()
	to := &toDisk{to: file}
	n, err := io.Copy(to, io.TeeReader(from.Fixity.Verify(from.URL, content), sum))
	if closed := file.Close(); closed != nil || to.err != nil {
		return Held{}, fetch.Permanent(&diskError{errors.Join(to.err, closed)})
	}
	if errors.As(err, new(*resourcesync.MismatchError)) { // the source may have changed: read its present statement
		err = fetch.Permanent(err)
	}
	return Held{
		URL: from.URL, Type: cmp.Or(from.Type, mediaType), Length: n, SHA256: hex.EncodeToString(sum.Sum(nil)),
		Stated: from.Fixity.Digests(),
	}, err
}

// toDisk remembers that it was not the source that failed.
type toDisk struct {
	to  *os.File
	err error
}

func (d *toDisk) Write(p []byte) (int, error) {
	n, err := d.to.Write(p)
	d.err = errors.Join(d.err, err)
	return n, err
}
