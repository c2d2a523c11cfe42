package client

import (
	"context"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// Covered entries are passed over: other entries of the same commit have all that is new in them
// ([fragment.Change.Cover]). What those have is missing while one of them is in quarantine.

// findSuspects finds out which topics have something in quarantine, and whether something is owed.
func (u *fragments) findSuspects(ctx context.Context) error {
	missing, owed, err := u.Store.Missing(ctx, u.s.Name)
	u.suspect, u.owes = map[string]bool{}, len(owed) > 0
	for _, q := range missing {
		u.suspect[q.TopicSI] = true
	}
	return err
}

// fetchCovered fetches the fragment of a covered change of a topic in quarantine, which it replaces there. It also
// notes the effect of a change on topics in quarantine.
func (u *fragments) fetchCovered(ctx context.Context, o *follow.Result[received]) {
	topic := o.Topic()
	if o.Change.Covered && o.Change.Passed && u.suspect[topic] {
		o.Content, o.Size, o.Err = u.Fetch(ctx, o.Record, true)
	}
	switch {
	case o.Err != nil:
		u.suspect[topic] = true
	case o.Content.fragment != nil:
		delete(u.suspect, topic)
	}
}

// forgive drops the owed changes if the quarantine is empty, because the entries that cover them were applied.
func (u *fragments) forgive(a *store.Applying) error {
	left, err := a.Quarantined()
	if err != nil || len(left) > 0 {
		return err
	}
	owed, err := a.Owed()
	for _, q := range owed {
		if err == nil {
			err = a.Pay(q.TopicSI)
		}
	}
	u.owes = u.owes && err != nil
	return err
}

// owed returns the owed changes, to be applied late, and drops them if the quarantine is empty.
func (u *fragments) owed(ctx context.Context) (late []follow.Record, err error) {
	if !u.owes {
		return nil, nil
	}
	err = u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		late = nil
		if err := u.forgive(a); err != nil {
			return err
		}
		all, err := a.Owed()
		for i := range all {
			r := changeOf(&all[i])
			r.Change.Late = true
			late = append(late, *r)
		}
		return err
	})
	return late, err
}
