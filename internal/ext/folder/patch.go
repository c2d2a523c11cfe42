package folder

import (
	"bytes"
	"context"
	"io"

	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/xml/patch"
)

// patched makes a representation of a record by applying its patch to the held one. It returns false if the result
// differs from the source's statement, or no patch can be applied: the caller then fetches the whole representation.
func (r *round) patched(ctx context.Context, record follow.Record, from follow.Representation,
	before Held) (taken, bool) {
	p := from.Patch
	if p == nil || !r.Mirror || r.anew || from.Open != nil || before.File == "" || before.Missing != nil || before.Stale ||
		before.Length > follow.MaxPatched {
		return taken{}, false
	}
	changes, err := r.fetchPatch(ctx, p)
	if err != nil {
		return taken{}, false
	}
	old, err := r.readHeld(before.File)
	if err != nil {
		return taken{}, false
	}
	content, err := patch.Apply(old, changes)
	if err != nil {
		return taken{}, false
	}
	t := taken{record: record, from: from, temp: r.temp()}
	if t.held, err = r.receive(t.temp, from, bytes.NewReader(content), from.Type); err != nil {
		_ = r.root.Remove(t.temp)
		return taken{}, false
	}
	t.describe()
	return t, true
}

// fetchPatch fetches a patch and checks it against the source's statement.
func (r *round) fetchPatch(ctx context.Context, p *follow.Patch) ([]byte, error) {
	done, err := r.hosts.begin(ctx, p.URL)
	if err != nil {
		return nil, err
	}
	q := fetch.Request{URL: p.URL, Accept: patch.MediaType, Max: p.Fixity.Length,
		Within: r.Fetcher.MaxTime}
	changes, _, err := fetch.Do(ctx, r.Fetcher, q, func(a *fetch.Answer) ([]byte, error) {
		b, err := io.ReadAll(p.Fixity.Verify(p.URL, a.Body))
		if follow.OutOfDate(err) {
			err = fetch.Permanent(err)
		}
		return b, err
	})
	done(err)
	return changes, err
}

// readHeld reads a file of a record with a limit, because others may have made it larger.
func (r *round) readHeld(name string) ([]byte, error) {
	file, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, follow.MaxPatched))
}
