package follow

import (
	"context"
	"errors"
	"time"
)

// How the engine uses a [Judge].

// Judging holds the parameters by which an [Engine] judges readings.
type Judging struct {
	Now     func() time.Time // the clock here; default [time.Now]
	After   time.Duration    // see [Judge]
	Confirm bool
	Longest time.Duration
	Ask     bool // the round bypasses caches
	// Fresh states that the round makes a replacement that is not visible yet: a loss is an error of the round.
	Fresh bool
	// Nothing reports whether nothing is held that a reading could remove. It may be nil: something is held.
	Nothing func(context.Context) (bool, error)
	// MaxLoss returns an error where so many of the records that are held are not to be lost without a word. It may be
	// nil.
	MaxLoss func(lost, held int) error
}

func (g *Judging) judge() Judge {
	now := g.Now
	if now == nil {
		now = time.Now
	}
	return Judge{Now: now().UTC(), After: g.After, Confirm: g.Confirm, Longest: g.Longest, Ask: g.Ask}
}

// read reads the source, and judges the reading. If it would remove data, it reads once more, bypassing all caches.
func (e *Engine[T]) read(ctx context.Context) (*Delta, Verdict, error) {
	m, j := e.Sink.Memory(), e.judge()
	look := Look{Mark: e.Sink.Mark(), Memory: m}
	if e.Fresh {
		n, err := e.Source.Delta(ctx, e.URL, look, e.Sink)
		if err == nil && n.Loss != LossNone {
			err = errors.Join(&HistoryError{n.Why}, n.Close())
		}
		return n, GoesOn, err
	}
	look.Asked = m.Doubt != nil || e.Ask
	due := m.Doubt != nil || j.isDue(m)
	look.Whole, look.IfChanged = !m.Proves && (due || j.isLower(m)), !due
	n, err := e.Source.Delta(ctx, e.URL, look, e.Sink)
	if err == nil && !look.Asked && (n.Loss != LossNone || m.stale(&n.Reading, false) || j.stuck(m, &n.Reading)) {
		look.Asked = true
		if err = n.Close(); err == nil {
			n, err = e.Source.Delta(ctx, e.URL, look, e.Sink)
		}
	}
	if err != nil {
		return nil, Doubtful, err
	}
	if n.Loss != LossNone && e.Nothing != nil {
		if j.Nothing, err = e.Nothing(ctx); err != nil {
			return nil, Doubtful, errors.Join(err, n.Close())
		}
	}
	v := j.Verdict(m, &n.Reading)
	// the document is unchanged, but the next step needs all of it
	if n.Unchanged && n.Log == nil && (v == Believed || j.due(m)) {
		if err = n.Close(); err == nil {
			look.Memory = m.withoutETag()
			n, err = e.Source.Delta(ctx, e.URL, look, e.Sink)
		}
		if err == nil && n.Loss == LossNone { // the lost entries are in an older document
			v = GoesOn
		}
	}
	return n, v, err
}

// withoutETag returns m for a look that is to read the doubtful document.
func (m *Memory) withoutETag() *Memory {
	own := *m
	if m.Doubt != nil {
		d := *m.Doubt
		d.ETag, own.Doubt = "", &d
	}
	return &own
}

// refuse returns the error that ends the round if the reading is not applied, or is to replace the held state.
func (e *Engine[T]) refuse(v Verdict, n *Delta) error {
	m := e.Sink.Memory()
	switch {
	case v == Doubtful:
		if n.Unchanged {
			e.judge().again(m)
		}
		return &DoubtError{m.Doubt}
	case v == Believed && n.Log != nil:
		return &HistoryError{m.Doubt.Reason}
	}
	return nil
}

// confirm decides which of the records that the source lacks are removed, and returns the number of the others.
func (e *Engine[T]) confirm(n *Delta, p *Plan, v Verdict) (pending int, err error) {
	m, j := e.Sink.Memory(), e.judge()
	if e.Fresh || n.Log != nil || n.Unchanged {
		if n.Log == nil && !n.Unchanged {
			err = p.Settle(func(string) bool { return true })
		}
		return 0, err
	}
	lost := len(p.lacking)
	believed := map[string]bool{}
	if n.Whole && (v != Doubtful || m.Doubt.Counted) { // a reading that is too old does not count
		believed = j.Lack(m, &n.Reading, p.lacking)
	}
	all := believed == nil
	count := len(believed)
	if all {
		count = lost
	}
	if v == Doubtful {
		m.Doubt.Lost = lost
		return 0, &DoubtError{m.Doubt}
	}
	if count > 0 && e.MaxLoss != nil && !e.Confirm {
		if err := e.MaxLoss(count, p.held); err != nil {
			m.Doubt = j.doubtOf(m.Doubt, &n.Reading, LossMany, count, err.Error())
			return lost, p.Settle(func(string) bool { return false })
		}
	}
	if count > 0 {
		m.Lowered = j.Now
	}
	if d := m.Doubt; d != nil && d.Loss == LossMany { // the loss is smaller now, or is confirmed
		m.Doubt = j.doubtOf(d, &n.Reading, LossRecords, lost-count, absentReason(lost-count))
	}
	return lost - count, p.Settle(func(id string) bool { return all || believed[id] })
}

// accept notes that the reading was applied, except the records that are not removed yet.
func (e *Engine[T]) accept(m *Memory, n *Delta, v Verdict, pending int) {
	j, before := e.judge(), m.Doubt
	if v == Believed {
		absent := m.Absent
		j.Replace(m, &n.Reading)
		m.Absent = absent
	} else {
		j.Accept(m, &n.Reading)
	}
	if n.Span != nil {
		m.Span = n.Span
	}
	if pending == 0 {
		if n.Whole {
			m.Absent = nil
		}
		return
	}
	n.Mark.ETag = "" // the list is read again, though it does not change
	switch {
	case before != nil && before.Loss == LossMany:
		m.Doubt = before
	default:
		m.Doubt = j.doubtOf(before, &n.Reading, LossRecords, pending, absentReason(pending))
		m.expectAbsent(j.After)
	}
}
