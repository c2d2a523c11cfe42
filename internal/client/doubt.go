package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// What a round does if a reading would remove data: see package follow and docs/follow.md.

// DoubtOf returns the doubt of a subscription, nil for none.
func DoubtOf(s *store.Subscription) *follow.Doubt {
	m, err := memoryOf(s)
	if err != nil {
		return nil
	}
	return m.Doubt
}

func memoryOf(s *store.Subscription) (*follow.Memory, error) {
	m := &follow.Memory{}
	if s.Memory != nil {
		if err := json.Unmarshal(s.Memory, m); err != nil {
			return nil, fmt.Errorf("what is remembered of the source %s: %w", s.Name, err)
		}
	}
	return m, nil
}

// remember reads the memory about the source.
func (c *Client) remember(ctx context.Context, s *store.Subscription) (err error) {
	if c.memory, err = memoryOf(s); err != nil {
		return err
	}
	c.staged = &follow.Memory{}
	b, err := c.Store.Span(ctx, s.Name)
	if err != nil || b == nil {
		return err
	}
	m := c.memoryOf(s)
	m.Span = &follow.Span{}
	return m.Span.UnmarshalBinary(b)
}

// memoryOf returns the memory of the generation to which changes are applied.
func (c *Client) memoryOf(s *store.Subscription) *follow.Memory {
	if s.Staging != nil {
		return c.staged
	}
	return c.memory
}

// judged sets the parameters for judging the readings of a round.
func (c *Client) judged(g *follow.Judging, s *store.Subscription) {
	*g = follow.Judging{
		Now: c.Now, After: c.ConfirmAfter, Confirm: c.confirm, Longest: c.longest, Fresh: s.Staging != nil,
		Ask:     c.ask,
		Nothing: func(ctx context.Context) (bool, error) { return c.holdsNothing(ctx, s.Name) },
		MaxLoss: func(lost, held int) error { return c.maxLoss(&losses.Measure{Topics: held, Deleted: lost}) },
	}
}

// holdsNothing reports whether the source has no records here, so that no reading can remove any.
func (c *Client) holdsNothing(ctx context.Context, name string) (bool, error) {
	root, err := c.Store.DigestNode(ctx, name, nil)
	if err != nil || root.Children != nil || len(root.Items) > 0 {
		return false, err
	}
	nothing := true
	err = c.Store.HeldRecords(ctx, name, nil, func(store.Held) error {
		nothing = false
		return nil
	})
	return nothing, err
}

// maxLoss returns an error if a loss exceeds the limit for unconfirmed losses.
func (c *Client) maxLoss(m *losses.Measure) error {
	if c.MaxDelete.Allows(m) {
		return nil
	}
	text := fmt.Sprintf("%d of %d topics would be lost", m.Lost(), m.Topics)
	if len(m.First) > 0 {
		text += ": " + strings.Join(m.Named(), "; ")
	}
	return errors.New(text)
}

// doubted returns the error for a replacement that is not to be done, for the doubt that it was to settle.
func (c *Client) doubted(loss follow.Loss, reason string) error {
	d := c.memory.Doubt
	if d == nil {
		c.memory.Missed(c.Now(), loss, reason)
		return &follow.DoubtError{Doubt: c.memory.Doubt}
	}
	d.Loss, d.Reason = loss, reason
	return &follow.DoubtError{Doubt: d}
}

// confirms returns an error if a loaded state must not replace the held one. It must contain the believed reading. If
// the source proves its states, it must not come from a cache, and must have the stated digest; otherwise its losses
// are limited. Without a doubt, it must not differ from a stated digest, unless a person asked for it.
func (c *Client) confirms(ctx context.Context, s *store.Subscription, r *Round, believed *follow.Doubt) error {
	if p := s.Staging.Proof; s.State == nil || believed == nil && (r.Reason != "" || p == nil || !p.Differs) {
		return nil
	}
	if believed == nil { // it was interrupted
		return c.doubted(follow.LossDigest, notStated)
	}
	lost, err := c.Store.Losses(ctx, s.Name)
	if err != nil {
		return err
	}
	r.Removed = lost.Deleted
	return c.contains(s, believed, &lost)
}

const notStated = "the newest snapshot and the feed are not the state whose digest the source states"

func (c *Client) contains(s *store.Subscription, believed *follow.Doubt, lost *losses.Measure) error {
	r, p := c.reading, s.Staging.Proof
	proves := c.memory.Proves && r != nil && !r.Checked.IsZero()
	contains := r != nil && (believed.Feed == "" || r.Feed == believed.Feed) &&
		(r.Head == believed.Head || believed.Head == "" || r.Holds != nil && r.Holds(believed.Head))
	switch {
	case !contains:
		return c.doubted(follow.LossDiverged,
			"the newest snapshot and the feed do not have what the feed had before: one of them may come from a cache")
	case proves && !r.Asked:
		return c.doubted(follow.LossStale, "a cache on the way answers in the server's place")
	case r.Head != "" && (proves && p == nil || p != nil && p.Differs && (proves || c.memory.Doubt == nil)):
		return c.doubted(follow.LossDigest, notStated)
	case proves && r.Head != "", c.confirm: // of an empty feed no digest proves anything
		return nil
	}
	if r.Head == "" && lost.Lost() < lost.Topics {
		return c.doubted(follow.LossEmpty, "the feed has no entries, though its snapshot has topics")
	}
	if err := c.maxLoss(lost); err != nil {
		if d := c.memory.Doubt; d != nil {
			d.Lost, d.Held = lost.Lost(), lost.Topics
		}
		return c.doubted(follow.LossMany, err.Error())
	}
	return nil
}

// believed does a clean replacement after another history of the source is confirmed, which only the authority can
// state.
func (c *Client) believed(ctx context.Context, s *store.Subscription, r *Round, history *follow.HistoryError,
	until time.Time) error {
	d := c.memory.Doubt
	if s.Protocol == store.TMShare && s.FragmentsFeed != s.Authority() {
		c.memory.Doubt = nil
		return &UnusableError{s.Name, []string{fmt.Sprintf("%s: %v", s.FragmentsFeed, history)}}
	}
	if d != nil && d.Loss == follow.LossMany && !c.confirm {
		if err := c.maxLoss(&losses.Measure{Topics: d.Held, Deleted: d.Lost}); err != nil { // it was loaded, and is held back
			return &follow.DoubtError{Doubt: d}
		}
	}
	return c.replaceBecause(ctx, s, r, history.Reason, d, until)
}

// contradicted makes the next round read the feed again if a source that states digests stated a wrong one, or none, so
// that a mangled document has no effect after the next right one.
func (u *fragments) contradicted() error {
	p, m := u.s.Applied().Proof, u.Memory()
	m.Stated = m.Stated || u.mark.Digest != ""
	if !m.Proves || p != nil && !p.Differs {
		return nil
	}
	u.s.ETag = ""
	if p == nil && m.Stated && u.source.Until.IsZero() && !u.mark.Updated.IsZero() && u.s.Staging == nil {
		m.Missed(u.Now(), follow.LossDigest, "the source states no digest of its state, as it does else")
	}
	return nil
}

// keepSpan stores the mark, and the entries read of a source that proves nothing.
func (u *fragments) keepSpan(ctx context.Context, span *follow.Span) error {
	return u.Store.ApplyEntries(ctx, u.s.Name, func(a *store.Applying) error {
		a.Mark = storedMark(u.mark)
		return keepSpan(a, span)
	})
}

func keepSpan(a *store.Applying, span *follow.Span) error {
	if span == nil {
		return nil
	}
	b, err := span.MarshalBinary()
	if err == nil {
		err = a.KeepSpan(b)
	}
	return err
}
