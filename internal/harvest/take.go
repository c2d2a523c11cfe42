package harvest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// taken is what has become of fetching a record.
type taken struct {
	record Record
	from   Representation // in what form
	err    error          // Gone: in none of the wanted ones

	unwanted bool   // it is in no format that is wanted
	same     bool   // it is what the folder holds
	temp     string // the file with what was fetched
	held     Held   // what is to be known of it
}

// diskError says that a record could be fetched but not be written.
type diskError struct{ error }

func (e *diskError) Unwrap() error { return e.error }

// takeAll fetches records, several at a time, and calls done with each, one at a time, in
// the order in which they are there. It ends where done fails.
func (r *round) takeAll(ctx context.Context, records []Record, done func(taken) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work := make(chan Record)
	results := make(chan taken)
	var workers sync.WaitGroup
	for range min(r.Parallel, len(records)) {
		workers.Go(func() {
			for record := range work {
				results <- r.take(ctx, record, r.before[record.ID])
			}
		})
	}
	go func() {
		defer close(work)
		for _, record := range records {
			select {
			case work <- record:
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { workers.Wait(); close(results) }()

	var failed error
	for t := range results {
		if failed == nil {
			failed = done(t)
		} else if t.err == nil && t.temp != "" { // it was under way
			_ = r.root.Remove(t.temp)
		}
		if failed != nil {
			stop()
		}
	}
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

// take fetches a record in the best of the forms that are wanted, and is there.
func (r *round) take(ctx context.Context, record Record, before Held) taken {
	wanted := choose(record.Representations, r.Formats)
	if len(wanted) == 0 {
		return taken{record: record, unwanted: true}
	}
	var t taken
	for _, from := range wanted {
		if t = r.takeFrom(ctx, record, from, before); t.err == nil || !Gone(t.err) {
			return t
		}
	}
	return t
}

func (r *round) takeFrom(ctx context.Context, record Record, from Representation, before Held) taken {
	t := taken{record: record, from: from}
	q := fetch.Request{URL: from.URL, Accept: accept(from.Type), Max: r.MaxSize, Home: r.home, Within: r.Fetcher.MaxTime}
	if before.File != "" && before.URL == from.URL && before.Type == from.Type && !r.anew && !strings.HasPrefix(before.ETag, "W/") {
		q.ETag = before.ETag
	}
	temp := r.temp()
	var answer *fetch.Answer
	t.held, answer, t.err = fetch.Do(ctx, r.Fetcher, q, func(a *fetch.Answer) (Held, error) { return r.receive(temp, a) })
	if t.err != nil {
		_ = r.root.Remove(temp) // there may be none
		return t
	}
	if answer.NotModified {
		_ = r.root.Remove(temp) // that of a try before that was cut off
		t.held, t.same = before, true
	} else {
		t.temp = temp
		t.held.URL, t.held.Type, t.held.ETag = from.URL, from.Type, answer.ETag
		if t.held.Type == "" {
			t.held.Type = answer.ContentType
		}
	}
	t.held.Title, t.held.Updated, t.held.Stale, t.held.Missing, t.held.Unwanted = record.Title, record.Updated, record.Later(answer), nil, false
	return t
}

// receive writes what comes to a file.
func (r *round) receive(temp string, a *fetch.Answer) (Held, error) {
	file, err := r.root.Create(temp)
	if err != nil {
		return Held{}, fetch.Permanent(&diskError{err})
	}
	sum := sha256.New()
	to := &toDisk{to: file}
	n, err := io.Copy(to, io.TeeReader(a.Body, sum))
	if closed := file.Close(); closed != nil || to.err != nil {
		return Held{}, fetch.Permanent(&diskError{errors.Join(to.err, closed)})
	}
	return Held{Length: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
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

// enough is how many records in a row may fail before it is the server that has failed.
const enough = 5

// serverError says that the server does not work, or wants to be left alone.
type serverError struct{ error }

func (e *serverError) Unwrap() error { return e.error }

// outOfOrder finds out from what becomes of records whether it is the server that does
// not work, rather than one of its records.
type outOfOrder struct{ row int }

// add adds a result. It returns why nothing more is to be asked for.
func (o *outOfOrder) add(err error) error {
	var failed *fetch.Error
	if !errors.As(err, &failed) {
		o.row = 0
		return nil
	}
	switch failed.Status {
	case http.StatusTooManyRequests:
		return &serverError{err}
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
	default:
		if !failed.Transient() {
			o.row = 0
			return nil
		}
	}
	if o.row++; o.row < enough && failed.RetryAfter == 0 {
		return nil
	}
	if failed.RetryAfter > 0 {
		return &serverError{fmt.Errorf("the server asks to come back in %s: %w", failed.RetryAfter.Round(time.Second), err)}
	}
	return &serverError{fmt.Errorf("%d records in a row could not be had, the last one: %w", o.row, err)}
}
