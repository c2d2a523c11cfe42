package losses

import (
	"context"

	"github.com/tmshare/tmshare/fragment"
)

// Diff is [fragment.Diff] of a new version, unless that loses more than it may (a [*TooManyError]). It reads no topic
// twice: the statements of topics that do not change are counted during the comparison.
func Diff(ctx context.Context, prior fragment.Source, next *fragment.Map, limit Limit) (*fragment.Change, error) {
	d := differ{next: next, joined: map[fragment.Ref]fragment.StatementCounts{}, ids: newRenumbering(next.Assigned())}
	change, err := fragment.Diff(ctx, prior, next, d.lose, d.ids.see)
	switch {
	case err != nil:
		return nil, err
	case d.err != nil:
		return nil, d.err
	}
	change.Renumbered = d.ids.moved()
	if !limit.Allows(&d.lost) {
		return nil, &TooManyError{Measure: d.lost, Added: change.Added, Updated: change.Updated,
			Renumbered: change.Renumbered, Limit: limit}
	}
	return change, nil
}

type differ struct {
	next   *fragment.Map
	lost   Measure
	joined map[fragment.Ref]fragment.StatementCounts // the statements about topics that others were joined with
	err    error                                     // the first one
	ids    *renumbering
}

// lose measures one topic.
func (d *differ) lose(c *fragment.Compared) {
	switch {
	case d.err != nil, c.Old == nil && c.New != nil: // it is new
		return
	case c.Old != nil && c.New == nil:
		d.close(c)
		return
	}
	d.lost.Add(c.Before, &c.After, func() *fragment.Topic {
		if c.Old != nil {
			return c.Old
		}
		var same *fragment.Topic
		same, d.err = d.next.Topic(c.TopicSI)
		return same
	})
}

// close measures a TopicSI that no topic has any more. A topic that was joined with another is not lost: the other has
// its statements.
func (d *differ) close(c *fragment.Compared) {
	was := func() *fragment.Topic { return c.Old }
	owner, err := d.next.Topic(c.TopicSI)
	if owner == nil || err != nil {
		d.err = err
		d.lost.Add(c.Before, nil, was)
		return
	}
	joined, ok := d.joined[owner.TopicSI()]
	if !ok {
		joined, d.err = StatementsOf(d.next, owner)
		d.joined[owner.TopicSI()] = joined
	}
	d.lost.Add(c.Before, &joined, was)
}
