package history

import (
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
)

// change returns the change to write and publish.
func (u *undo) change(limit losses.Limit) (*fragment.Change, error) {
	var targets, topics []*fragment.Topic
	for _, t := range u.topics {
		if t.is != nil {
			targets = append(targets, t.is)
		}
		if t.was != nil {
			topics = append(topics, t.was)
		}
	}
	var removed, added []*fragment.Association
	for _, a := range u.associations {
		if a.is != nil {
			removed = append(removed, a.is)
		}
		if a.was == nil {
			continue
		}
		there, err := u.now.Stored(a.was) // by its references it may be one that stays
		if err != nil {
			return nil, err
		}
		if there == nil || u.goes(a.was.Key()) {
			added = append(added, a.was)
		}
	}
	lost, err := u.losses(removed, added)
	if err != nil {
		return nil, err
	}
	change, err := fragment.Exchange(u.now, targets, topics, removed, added)
	if err == nil && !limit.Allows(lost) {
		return nil, &losses.TooManyError{Measure: *lost, Added: change.Added, Updated: change.Updated, Limit: limit}
	}
	return change, err
}

// losses measures the losses. It leaves out the statements about topics outside of the change on both sides.
func (u *undo) losses(removed, added []*fragment.Association) (*losses.Measure, error) {
	m := &losses.Measure{Topics: u.v.Topics}
	was, is := map[fragment.Ref]*fragment.StatementCounts{}, map[fragment.Ref]*fragment.StatementCounts{}
	counts := func(side map[fragment.Ref]*fragment.StatementCounts, ref fragment.Ref) *fragment.StatementCounts {
		if side[ref] == nil {
			side[ref] = &fragment.StatementCounts{}
		}
		return side[ref]
	}
	play := func(side map[fragment.Ref]*fragment.StatementCounts, all []*fragment.Association) {
		for _, a := range all {
			for _, p := range a.Players() {
				if part := a.Part(p); part != fragment.AsType {
					counts(side, p).Play(part)
				}
			}
		}
	}
	play(is, removed)
	play(was, added)
	for ref, t := range u.topics {
		if t.is != nil {
			counts(is, ref).Statements = len(t.is.Names) + len(t.is.Occurrences)
		}
		if t.was != nil {
			counts(was, ref).Statements = len(t.was.Names) + len(t.was.Occurrences)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(is)) {
		t, err := topicOf(u.now, ref)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		next := counts(was, ref)
		if turned := u.topics[ref]; turned != nil && turned.was == nil {
			next = nil
		} else if is[ref].Types > next.Types { // others may stay
			for a, err := range u.now.AssociationsOf(ref, fragment.AsInstance) {
				if err != nil {
					return nil, err
				}
				if !u.goes(a.Key()) {
					is[ref].Types++
					next.Types++
				}
			}
		}
		m.Lose(*is[ref], next, func() *fragment.Topic { return t })
	}
	return m, nil
}
