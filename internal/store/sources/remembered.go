package sources

import (
	"context"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// KeepSpan stores the span of entries of the feed that were read last.
func (a *Applying) KeepSpan(b []byte) error {
	return a.tx.Put(a.subscription.Source(a.Progress).Key(keys.TableSpan), b)
}

// Span returns the stored span of the generation to which changes are applied, nil if none.
func (st *Store) Span(ctx context.Context, name string) (b []byte, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		if s.Applied() == nil {
			return nil
		}
		b, err = t.Get(s.Source(s.Applied()).Key(keys.TableSpan))
		return err
	}))
	return b, err
}

// Losses measures the losses of a subscription if its staged generation became visible.
func (st *Store) Losses(ctx context.Context, name string) (m losses.Measure, err error) {
	err = st.rows.View(ctx, withNamed(name, func(t *txn.Tx, s *Subscription) error {
		m = losses.Measure{}
		if s.State == nil || s.Staging == nil {
			return nil
		}
		before, after := records.In(t, s.Source(s.State)), records.In(t, s.Source(s.Staging))
		for topic, err := range before.Topics() {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			if err := lose(&m, before, after, topic); err != nil {
				return err
			}
		}
		return nil
	}))
	return m, err
}

func lose(m *losses.Measure, before, after records.State, topic *fragment.Topic) error {
	had, err := losses.StatementsOf(before, topic)
	if err != nil {
		return err
	}
	still, err := after.Topic(topic.TopicSI())
	if err != nil {
		return err
	}
	var has *fragment.StatementCounts
	if still != nil {
		counts, err := losses.StatementsOf(after, still)
		if err != nil {
			return err
		}
		has = &counts
	}
	m.Add(had, has, func() *fragment.Topic { return topic })
	return nil
}
