package sources

import (
	"context"

	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Rejected is a rejection, and whether it has an effect now.
type Rejected struct {
	rejections.Rejection
	Stated bool `json:"stated"` // the source asserts the claim
}

// Reject hides claims of a subscription in the merged view. A claim that was rejected before gets the new reason, if
// there is one.
func (st *Store) Reject(ctx context.Context, name, reason string, claims ...rejections.Claim) error {
	return st.changeRejections(ctx, name, ActivityRejected, reason, claims,
		func(t *txn.Tx, source uint32, c *rejections.Claim) error {
			return rejections.Add(t, source, rejections.Rejection{Claim: *c, Reason: reason, Time: st.now().UTC()})
		})
}

// Unreject shows claims of a subscription again. One that is not rejected is txn.ErrNotFound.
func (st *Store) Unreject(ctx context.Context, name string, claims ...rejections.Claim) error {
	return st.changeRejections(ctx, name, ActivityUnrejected, "", claims,
		func(t *txn.Tx, source uint32, c *rejections.Claim) error {
			was, err := rejections.Remove(t, source, c)
			if err == nil && !was {
				err = txn.ErrNotFound
			}
			return err
		})
}

// changeRejections changes the rejections of claims, all or none, with an activity.
func (st *Store) changeRejections(ctx context.Context, name string, kind ActivityKind, reason string,
	claims []rejections.Claim,
	change func(t *txn.Tx, source uint32, c *rejections.Claim) error) error {
	return st.rows.Update(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		s.Anew++
		if err := Put(t, s); err != nil {
			return err
		}
		note := Activity{Source: name, Kind: kind, Note: reason}
		for i := range claims {
			if err := change(t, s.Number, &claims[i]); err != nil {
				return err
			}
			for _, topic := range claims[i].Topics() {
				note.Entries = append(note.Entries, ActivityEntry{TopicSI: string(topic), Title: claims[i].String()})
			}
		}
		return st.Note(t, note)
	}))
}

// Rejections returns the rejections of a subscription, by key of the claim.
func (st *Store) Rejections(ctx context.Context, name string) (all []Rejected, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		rejected, err := rejections.Read(t, s.Number)
		for _, r := range rejected {
			stated := false
			if s.State != nil && err == nil {
				stated, err = r.StatedBy(records.In(t, s.Source(s.State)))
			}
			all = append(all, Rejected{r, stated})
		}
		return err
	}))
	return all, err
}
