package sources

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Logged is an entry of the log of a source, as its feed states it.
type Logged struct {
	ID           string // of the entry
	Updated      time.Time
	TopicSI      fragment.Ref
	Title        string
	Author, Note string
	Via          []string // URLs of its source entries in other feeds
	Deleted      bool
	Link         string // to the fragment
	Superseded   bool   // a later entry is of the same TopicSI
	Digest       string // the state digest that it states, "" for none

	Covered           bool   // see package collections
	Commit, Rendering uint64 // as the feed states them; 0: it does not
	Omits             bool   // likewise: see [feeds.Entry]
	RDF               bool   // the source offers the fragment in RDF too

	// Applied is the fragment if it was applied in the same commit, so that the records have its content.
	Applied *fragment.Fragment

	// Lasting states that the source never changes the fragment. Otherwise it is the present topic, maybe a later one.
	Lasting bool
}

// Server serves on the sources of those subscriptions that are replicas. What it does is part of the transaction that
// it is called in.
type Server interface {
	// Logged receives the entries applied to a generation, staged or not, in order; none after a repair of topics.
	Logged(ctx context.Context, t *txn.Tx, a *Applying, entries []Logged) error
	// Stated is called when another checkpoint of the source was accepted, or the source states another language.
	Stated(t *txn.Tx, s *Subscription) error
	// Counted receives the number of topics of a generation, staged or not, after a repair.
	Counted(t *txn.Tx, s *Subscription, p *Progress, topics int) error
	// Switched is called when the generation of a progress becomes visible. after is called after the commit.
	Switched(t *txn.Tx, s *Subscription) (after func() error, err error)
	// Removed is called when a subscription ends.
	Removed(t *txn.Tx, s *Subscription) (after func() error, err error)
}

// Address is where a source can be read: the URLs of its feeds.
type Address struct {
	FragmentsFeed string
	SnapshotsFeed string `json:",omitempty"` // "" if the server has none
}

// Feeds returns the URLs of the fragments feeds of all addresses of the source, the authority first.
func (s *Subscription) Feeds() []string {
	if len(s.Addresses) == 0 {
		return []string{s.FragmentsFeed}
	}
	feeds := make([]string, len(s.Addresses))
	for i, a := range s.Addresses {
		feeds[i] = a.FragmentsFeed
	}
	return feeds
}

// Authority returns the URL of the fragments feed whose word counts where the source has two histories.
func (s *Subscription) Authority() string { return s.Feeds()[0] }
