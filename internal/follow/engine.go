package follow

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// Sink applies changes of a source to its records. T is the fetched content of a record. Only Fetch is called
// concurrently.
type Sink[T any] interface {
	Inventory

	// Mark returns the position up to which the source was followed.
	Mark() Mark
	// Memory returns the data about earlier readings, which the engine changes. The sink stores it when the round ends,
	// also with an error.
	Memory() *Memory
	// Missing returns the versions of the records whose fetch failed in earlier rounds, by id. Each round retries them
	// once.
	Missing(ctx context.Context) (map[string]time.Time, error)
	// Retry returns the records to retry after the plan. first reports whether it is the first look of the round.
	Retry(ctx context.Context, p *Plan, first bool) ([]Record, error)

	// Begin receives the result of a look, and the mark to store from now on, before the plan is executed. The mark of
	// a log moves with each commit.
	Begin(ctx context.Context, n *Delta, mark Mark) error
	// Fetch fetches an existing record, or a change. Unless last is set, an error that shows that the source's
	// statement is out of date makes the engine retry the record later.
	Fetch(ctx context.Context, r *Record, last bool) (content T, size int64, err error)
	// Commit applies some results. It returns the records that have to wait for others: none for which waited returns
	// true, and no changes of a log.
	Commit(ctx context.Context, some []Result[T], waited func(*Record) bool) (waiting []*Record, err error)
	// End receives the position of the next round, when all is done.
	End(ctx context.Context, n *Delta) error
}

// HistoryError is the reason why a source does not continue from the mark. It is confirmed: only a replacement brings
// the held state in step.
type HistoryError struct{ Reason string }

func (e *HistoryError) Error() string { return e.Reason }

// NoRecords is the [Inventory] of a [Sink] of the changes of a [Log], which holds no records.
type NoRecords struct{}

// Versions implements [Inventory].
func (NoRecords) Versions(context.Context, []string) (map[string]time.Time, error) { return nil, nil }

// Each implements [Inventory].
func (NoRecords) Each(context.Context, func(string) error) error { return nil }

// Missing implements [Sink].
func (NoRecords) Missing(context.Context) (map[string]time.Time, error) { return nil, nil }

// Result is the result of fetching a record.
type Result[T any] struct {
	*Record
	Content T
	Size    int64 // bytes of memory that it takes, about
	Err     error // the reason why the fetch failed
}

// Engine updates a sink from a source: it reads the changes, plans the work, prefetches records, and passes them to the
// sink in order.
//
// A record may be missing, differ from the source's statement, or conflict with another record. A deletion or a later
// version that resolves this may follow. So such a record waits until all others are done and the source was read
// again. If the problem remains, it is an error of that record alone.
//
// The changes of a [Log] are applied in order, and the mark moves with them. So a change that has to wait ends the
// look, and the next look continues with it.
type Engine[T any] struct {
	Source Source
	URL    string
	Sink   Sink[T]

	Parallel   int   // records fetched at a time
	Batch      int   // records of one commit
	BatchBytes int64 // approximate size of a batch
	MaxWaiting int   // records that may wait

	Health   Health
	Progress func(done, total int) // called with the records of a look; may be nil

	Judging

	waited      map[string]time.Time // by id, the versions that have waited
	waiting     map[string]Record    // by id, the records that wait for the next look
	last        bool                 // this is the last look of the round
	inOrder     bool                 // the look has brought a log
	done, total int
}

// maxLooks is the number of looks in a round. A source that changes all the time never equals its statements.
const maxLooks = 10

// Run does a round from the mark of the sink on. With an error all that was done stays, and the next
// round does the rest.
func (e *Engine[T]) Run(ctx context.Context) error {
	e.waited = map[string]time.Time{}
	for look := 1; ; look++ {
		e.last = look == maxLooks
		if err := e.look(ctx, look == 1); err != nil || len(e.waiting) == 0 {
			return err
		}
	}
}

// look reads the source once, and applies its changes.
func (e *Engine[T]) look(ctx context.Context, first bool) (err error) {
	mark := e.Sink.Mark()
	n, verdict, err := e.read(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if n.Log != nil || n.Unchanged {
		if err := e.refuse(verdict, n); err != nil {
			return err
		}
	}
	missing, err := e.Sink.Missing(ctx)
	if err != nil {
		return err
	}
	if first {
		maps.Copy(e.waited, missing)
	}
	asked := maps.Clone(missing)
	if len(e.waiting) > 0 && asked == nil {
		asked = map[string]time.Time{}
	}
	for id, r := range e.waiting {
		asked[id] = r.Updated
	}
	p, err := n.Plan(ctx, e.Sink, asked)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	pending, err := e.confirm(n, p, verdict)
	if err != nil {
		return err
	}
	if err := e.Sink.Begin(ctx, n, mark.Begin(n)); err != nil {
		return err
	}
	if err := e.follow(ctx, n, p, first); err != nil || len(e.waiting) > 0 {
		return err
	}
	e.accept(e.Sink.Memory(), n, verdict, pending)
	return e.Sink.End(ctx, n)
}

func (e *Engine[T]) follow(ctx context.Context, n *Delta, p *Plan, first bool) error {
	e.done, e.total, e.inOrder = 0, p.Total, n.Log != nil
	var again []Record
	for id, r := range e.waiting {
		if e.inOrder {
			break // it is in the log still, or a later change is
		}
		if now := p.About(id); (now == nil || !now.News) && !n.Whole { // the source no longer states it
			again = append(again, p.Again(r))
		}
	}
	e.waiting = map[string]Record{}
	for chunk, err := range p.Chunks() {
		if err == nil {
			err = e.do(ctx, chunk)
		}
		if err != nil || e.stopped() {
			return err
		}
	}
	missing, err := e.Sink.Retry(ctx, p, first)
	if err != nil {
		return err
	}
	again = append(again, missing...)
	e.total += len(again)
	err = e.do(ctx, again)
	if errors.As(err, new(*outOfOrderError)) { // they delay no other record
		return nil
	}
	return err
}

// do applies some statements about records.
func (e *Engine[T]) do(ctx context.Context, some []Record) error {
	for len(some) > 0 && !e.stopped() {
		n, suspect, err := e.doAhead(ctx, some)
		some, e.done = some[n:], e.done+n
		if err != nil {
			return err
		}
		if suspect == nil {
			continue
		}
		if err := e.Health.EndsRound(ctx, suspect.Err, n > 0); err != nil {
			return err
		}
		if err := e.commit(ctx, []Result[T]{*suspect}); err != nil { // this record is at fault
			return err
		}
		some, e.done = some[1:], e.done+1
	}
	return nil
}

// doAhead applies statements about records until one suggests that the server is out of order. It returns the number
// that it has applied, and the record of that one.
func (e *Engine[T]) doAhead(ctx context.Context, some []Record) (done int, suspect *Result[T], err error) {
	var batch []Result[T]
	var size int64
	passed, fetches := 0, 0
	flush := func() error {
		if err := e.commit(ctx, batch); err != nil {
			return err
		}
		done = passed
		if e.Progress != nil {
			e.Progress(e.done+done, e.total)
		}
		batch, size, fetches = nil, 0, 0
		return nil
	}
	last := make([]bool, len(some))
	for i := range some {
		last[i] = some[i].Unsure || e.hasWaited(&some[i])
	}
	fetched := fetch.Ahead(ctx, e.Parallel, len(some), func(ctx context.Context, i int) (Result[T], int64) {
		r := Result[T]{Record: &some[i]}
		if !r.Deleted && !r.passed() {
			r.Content, r.Size, r.Err = e.Sink.Fetch(ctx, r.Record, last[i])
		}
		return r, r.Size
	})
	for r := range fetched {
		if ctx.Err() != nil {
			return done, nil, context.Cause(ctx)
		}
		switch {
		case OutOfDate(r.Err) && r.Unsure:
			r.Err, r.Record = nil, &Record{ID: r.ID, Title: r.Title, Updated: r.Updated, Deleted: true}
		case e.outOfDate(r.Err) && !e.hasWaited(r.Record):
			e.wait(r.Record)
			if e.inOrder {
				return passed, nil, flush()
			}
			passed++
			continue
		case e.outOfDate(r.Err):
		case IsServerFault(r.Err) || WantsPause(r.Err):
			err := flush()
			return done, &r, err
		}
		passed++
		batch = append(batch, r)
		if !r.passed() {
			fetches++
		}
		if size += r.Size; fetches >= e.Batch || size > e.BatchBytes {
			if err := flush(); err != nil {
				return done, nil, err
			}
		}
	}
	if ctx.Err() != nil { // then not all was fetched
		return done, nil, context.Cause(ctx)
	}
	err = flush()
	return done, nil, err
}

func (e *Engine[T]) commit(ctx context.Context, batch []Result[T]) error {
	if len(batch) == 0 {
		return nil
	}
	waiting, err := e.Sink.Commit(ctx, batch, e.hasWaited)
	for _, r := range waiting {
		e.wait(r)
	}
	return err
}

// outOfDate reports whether an error requires that the source is read again. A server drops the fragment of a change
// when a later change of its topic follows.
func (e *Engine[T]) outOfDate(err error) bool {
	if !e.inOrder {
		return OutOfDate(err)
	}
	failed, ok := errors.AsType[*fetch.Error](err)
	return ok && failed.Gone()
}

// stopped reports whether the remaining changes wait for the next look.
func (e *Engine[T]) stopped() bool { return e.inOrder && len(e.waiting) > 0 }

func (e *Engine[T]) wait(r *Record) {
	e.waited[r.ID], e.waiting[r.ID] = r.Updated, *r
}

// hasWaited reports whether a record no longer waits: its next fault is its error.
func (e *Engine[T]) hasWaited(r *Record) bool {
	at, ok := e.waited[r.ID]
	return e.last || ok && at.Equal(r.Updated) || !ok && len(e.waited) >= e.MaxWaiting
}
