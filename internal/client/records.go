package client

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/store"
)

// A source may publish records rather than fragments: the present state of each topic, under a permanent identifier, or
// its deletion. The map consists of all records. A fetched record has its present state, which may be newer than its
// entry; then it comes again with a later entry. Deletions are applied before other records, because an identifier may
// have moved.

// records is a source of records in the store, as a [follow.Sink].
type records struct {
	*Client
	s      *store.Subscription
	r      *Round
	format *formats.Format // of records; nil: XTM

	mark       follow.Mark         // position up to which the source was followed
	begun      json.RawMessage     // the mark to keep with each commit
	whole      bool                // the look has the state of all records
	quarantine []store.Quarantined // records to retry in this look

	inQuarantine quarantineCount

	large chan struct{} // as in fragments
	load  *load         // nil: records are applied one by one
}

// harvest applies the changes of the source after its mark. The mark moves when all are done; until then, the next
// round finds the remaining work by the held records.
func (c *Client) harvest(ctx context.Context, s *store.Subscription, r *Round) error {
	h := &records{Client: c, s: s, r: r, large: make(chan struct{}, 1)}
	if err := c.tidyDownloads(ctx); err != nil {
		return err
	}
	p, err := c.protocolOf(s)
	if err != nil {
		return err
	}
	if p.Format != "" {
		if h.format, err = c.Formats.Served().Named(p.Format); err != nil {
			return fmt.Errorf("%s: its records are followed by %s: %w", s.Name, p.Name, err)
		}
	}
	defer h.abandon()
	access := h.access()
	if err := p.Use(access, func(source follow.Source) error { return h.sync(ctx, source) }); err != nil {
		return err
	}
	return os.RemoveAll(access.Temp) // it stays for the next round where this one has failed
}

// protocolOf returns the protocol of a source of records.
func (c *Client) protocolOf(s *store.Subscription) (*follow.Protocol, error) {
	p := follow.ProtocolNamed(c.Protocols, string(s.Protocol))
	if p == nil {
		return nil, fmt.Errorf(
			"%s is followed by the protocol %s, which this program does not have: use one that has it, or unsubscribe. What "+
				"is here stays", s.Name, s.Protocol)
	}
	return p, nil
}

func (h *records) sync(ctx context.Context, source follow.Source) error {
	var err error
	if h.mark, err = markOfRecords(h.s); err != nil {
		return err
	}
	if h.s.Language == nil { // it is in the document that has not changed
		h.mark.ETag = ""
	}
	e := follow.Engine[obtained]{
		Source: source, URL: h.s.FragmentsFeed, Sink: h,
		Parallel: h.Parallel, Batch: h.Batch, BatchBytes: maxCommit, MaxWaiting: 2 * h.MaxQuarantine,
		Health: h.healthOf(h.s),
		Progress: func(done, total int) {
			h.Client.Progress(Progress{h.s.Name, "applying changes", int64(done), int64(total), Fragments})
		},
	}
	if h.s.Staging != nil { // the generation is not visible
		e.Batch *= 5
	}
	h.judged(&e.Judging, h.s)
	return e.Run(ctx)
}

// markOfRecords returns the position up to which a source of records was followed.
func markOfRecords(s *store.Subscription) (mark follow.Mark, err error) {
	if p := s.Applied(); p != nil && p.Records != nil {
		err = json.Unmarshal(p.Records, &mark)
	}
	return mark, err
}

// Mark implements [follow.Sink].
func (h *records) Mark() follow.Mark { return h.mark }

// Memory implements [follow.Sink].
func (h *records) Memory() *follow.Memory { return h.memoryOf(h.s) }

// access returns the means by which the protocol reads the source.
func (h *records) access() *follow.Access {
	return &follow.Access{
		Fetcher: h.fetcher(), URL: h.s.FragmentsFeed, Feed: h.Feed, MaxDocs: h.MaxDocs, Scratch: h.scratch(h.s),
		Temp: h.downloadPath(h.s) + ".packages", MaxResource: h.MaxFragment, MaxPackage: h.MaxSnapshot,
		Subjects: !h.s.OwnSP, Prefix: h.s.SP,
		Check: func(sp, at string) error { return checkPrefix(h.s, sp, at, true) },
		Documents: func(n int) {
			h.Client.Progress(Progress{h.s.Name, "reading what has changed", int64(n), 0, Documents})
		},
		Downloading: func(done, total int64) {
			h.Client.Progress(Progress{h.s.Name, "fetching a package", done, total, Bytes})
		},
		Report:    func(line string) { h.Client.Report(h.s.Name + ": " + line) },
		Tolerated: h.xtmOptions(h.s.SP, "", "").Tolerated,
	}
}

// scratch returns the temporary storage of a round.
func (c *Client) scratch(s *store.Subscription) follow.Scratch {
	return follow.Scratch{
		Path: filepath.Join(c.Store.Scratch(), "source-"+strconv.FormatUint(uint64(s.Number), 10)), Memory: c.limits.Memory,
		Chunk:      c.limits.Chunk,
		CheckSpace: c.Store.MayWrite, MaxEntries: c.MaxEntries,
	}
}

// Versions implements [follow.Inventory].
func (h *records) Versions(ctx context.Context, ids []string) (map[string]time.Time, error) {
	versions := map[string]time.Time{}
	return versions, h.Store.HeldRecords(ctx, h.s.Name, ids, func(held store.Held) error {
		if versions[held.ID] = held.Updated; held.Later {
			versions[held.ID] = time.Time{}
		}
		return nil
	})
}

// Each implements [follow.Inventory].
func (h *records) Each(ctx context.Context, f func(id string) error) error {
	return h.Store.HeldRecords(ctx, h.s.Name, nil, func(held store.Held) error { return f(held.ID) })
}

// Missing implements [follow.Sink].
func (h *records) Missing(ctx context.Context) (versions map[string]time.Time, err error) {
	h.quarantine = nil
	if h.s.Staging != nil { // the quarantine belongs to the visible generation
		return nil, nil
	}
	h.quarantine, err = h.Store.Quarantine(ctx, h.s.Name)
	versions = map[string]time.Time{}
	for i := range h.quarantine {
		versions[h.quarantine[i].Entry] = h.quarantine[i].Updated
	}
	return versions, err
}

// Retry implements [follow.Sink].
func (h *records) Retry(ctx context.Context, p *follow.Plan, first bool) ([]follow.Record, error) {
	if err := h.endLoad(ctx); err != nil {
		return nil, err
	}
	var again []follow.Record
	for i := range h.quarantine {
		q := &h.quarantine[i]
		if now := p.About(q.Entry); !first || now != nil && now.Planned {
			continue
		}
		r := follow.Record{ID: q.Entry, Title: q.Title, Updated: q.Updated, TopicSI: q.Names, TopicSL: q.Located}
		r.Representations = []follow.Representation{{URL: q.Link}} // of a version that kept no more
		if len(q.Forms) > 0 {
			if err := json.Unmarshal(q.Forms, &r.Representations); err != nil {
				return nil, err
			}
		}
		if r = p.Again(r); r.Deleted || len(r.Representations) > 0 { // otherwise unchanged so far
			again = append(again, r)
		}
	}
	return again, nil
}

// Begin implements [follow.Sink]: it starts the commits of a look.
func (h *records) Begin(ctx context.Context, n *follow.Delta, mark follow.Mark) (err error) {
	if n.Reason != "" {
		h.Report(fmt.Sprintf("%s: %s; all of it was read", h.s.Name, n.Reason))
		h.r.Reason = n.Reason
	}
	h.whole, h.mark = n.Whole, mark
	if h.begun = nil; !n.Unchanged {
		if h.begun, err = json.Marshal(mark); err == nil {
			err = h.beginLoad(ctx)
		}
	}
	return err
}

// End implements [follow.Sink]: it stores the position up to which the source was followed.
func (h *records) End(ctx context.Context, n *follow.Delta) error {
	if h.reading = &n.Reading; n.Unchanged {
		return nil
	}
	mark, err := json.Marshal(n.Mark)
	if err != nil {
		return err
	}
	return h.Store.ApplyEntries(ctx, h.s.Name, func(a *store.Applying) error {
		a.Records = mark
		a.Mark = store.Mark{Updated: n.Mark.Updated}
		return keepSpan(a, n.Span)
	})
}
