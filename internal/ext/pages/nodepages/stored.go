package nodepages

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/store"
)

// DB is what a store has to tell.
type DB interface {
	status.NodeStore
	Activity(ctx context.Context, f func(store.Activity) bool) error
}

// Stored is a [Source] that reads a store.
type Stored struct {
	DB  DB
	Now func() time.Time
	// Watched returns what was seen of a subscription and when its last good round ended; nil: nobody does rounds here.
	Watched func(name string) (*status.Seen, time.Time)
}

// Node implements [Source].
func (s *Stored) Node(ctx context.Context) (*status.Node, error) {
	n, err := status.OfNode(ctx, s.DB, s.Now())
	if err != nil {
		return nil, err
	}
	for i := range n.Follows {
		s.advance(&n.Follows[i])
	}
	return n, status.AddHistory(ctx, s.DB, n.Follows[:min(len(n.Follows), mostPlots)])
}

// Subscription implements [Source].
func (s *Stored) Subscription(ctx context.Context, name string) (*status.Status, error) {
	list, err := status.Named(ctx, s.DB, s.Now(), name)
	if len(list) == 0 || err != nil {
		return nil, err
	}
	s.advance(&list[0])
	return &list[0], status.AddHistory(ctx, s.DB, list)
}

// Log implements [Source].
func (s *Stored) Log(ctx context.Context, name string, most int) (all []store.Activity, err error) {
	err = s.DB.Activity(ctx, func(a store.Activity) bool {
		if a.Source == name {
			all = append(all, a)
		}
		return len(all) < most
	})
	return all, err
}

// Seen implements [Source].
func (s *Stored) Seen(name string) *status.Seen {
	if s.Watched == nil {
		return nil
	}
	seen, _ := s.Watched(name)
	return seen
}

func (s *Stored) advance(st *status.Status) {
	if s.Watched != nil {
		_, inStep := s.Watched(st.Name)
		st.AdvanceInStep(inStep, s.Now())
	}
}
