package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Round is the result of one round of a subscription.
type Round struct {
	Name       string `json:"name"`
	CleanStart bool   `json:"cleanStart"`       // the map was loaded
	Snapshot   bool   `json:"snapshot"`         // from a snapshot; else from all that the source has published
	Reason     string `json:"reason,omitempty"` // why it was loaded anew
	// the new entries up to the mark, and those applied late
	Entries int       `json:"entries"`
	Applied int       `json:"applied"` // fragments applied for them
	Mark    time.Time `json:"mark"`    // the server's time up to which all is applied, or in quarantine

	Removed int `json:"removed,omitempty"` // topics that a replacement has taken away, where a doubt was confirmed

	// Ahead states that all entries of the source are later than now, so that there is no mark.
	Ahead bool `json:"ahead,omitempty"`

	// Unusable is the number of new records in the round without a readable or requested format: earlier statements
	// from them are removed.
	Unusable int `json:"unusable,omitempty"`

	// Quarantined is the number of topics in quarantine after the round.
	Quarantined int `json:"quarantined"`

	// Proven states that the state digest of the held records equals the source's. Unproven is the reason why it is not
	// proven. Both are zero if the source states none.
	Proven   bool   `json:"proven,omitempty"`
	Unproven string `json:"unproven,omitempty"`
	// Differs states an unintended difference from the source's digest
	Differs  bool `json:"differs,omitempty"`
	Repaired int  `json:"repaired,omitempty"` // topics that were not as the source states, and were fetched anew

	// Doubt is an unconfirmed loss in a reading of the source: the copy is unchanged. Nil: none.
	Doubt *follow.Doubt `json:"doubt,omitempty"`

	// Moved is the address at which the source is for good, by its own word; "": where it is followed.
	Moved string `json:"moved,omitempty"`

	// Every is the source's stated time between changes; zero: not stated.
	Every time.Duration `json:"-"`

	Error string `json:"error,omitempty"` // for programs: why the round failed
}

// Sync does one round of the named subscription: a clean start where there is no
// state yet, then a partial update. Where partial updates cannot go on from the
// mark, it replaces the source by a clean start of its own, with the reason in the
// result. An error leaves what was committed before it; nothing is skipped.
func (c *Client) Sync(ctx context.Context, name string) (*Round, error) {
	return c.syncUntil(ctx, name, time.Time{})
}

// Confirm is [Client.Sync] after a person has confirmed the losses of the shown doubt. A reading with other losses
// opens a new doubt.
func (c *Client) Confirm(ctx context.Context, name string) (*Round, error) {
	own := *c
	own.confirm = true
	return own.Sync(ctx, name)
}

// AskedFor is the Reason of a round of Replace.
const AskedFor = "asked for"

// Replace does a clean replacement of the named subscription.
func (c *Client) Replace(ctx context.Context, name string) (*Round, error) {
	return c.round(ctx, name, func(c *Client, s *store.Subscription, r *Round) error {
		r.Reason = AskedFor
		if len(s.Addresses) > 0 {
			if err := c.use(ctx, s, s.Addresses[0]); err != nil {
				return err
			}
		}
		return c.replace(ctx, s, r, nil, time.Time{})
	})
}

// Retry does a round of the named subscription that first tries again to get
// the entries in quarantine: those of the given topics, or all. Rounds of Sync
// try all of them, too.
func (c *Client) Retry(ctx context.Context, name string, topics ...string) (*Round, error) {
	return c.round(ctx, name, func(c *Client, s *store.Subscription, r *Round) error {
		if err := c.choose(ctx, s); err != nil {
			return err
		}
		if err := c.revisit(ctx, s, topics...); err != nil {
			return err
		}
		return c.advance(ctx, s, r, time.Time{})
	})
}

// Forget removes topics from quarantine, or all if none is named, without applying their entries: the held statements
// about them stay until the next entry. It returns their number.
func (c *Client) Forget(ctx context.Context, name string, topics ...string) (int, error) {
	_, unlock, err := c.lock(ctx, name)
	if err != nil {
		return 0, err
	}
	defer unlock()
	gone, err := c.Store.Forget(ctx, name, topics...)
	return len(gone), err
}

// Unsubscribe ends a subscription and removes the statements of its source. Those of other sources and local ones are
// kept.
func (c *Client) Unsubscribe(ctx context.Context, name string) error {
	_, unlock, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.Store.RemoveSubscription(ctx, name)
}

func (c *Client) syncUntil(ctx context.Context, name string, until time.Time) (*Round, error) {
	r, err := c.syncOnce(ctx, name, until)
	if r == nil || r.Moved == "" || ctx.Err() != nil {
		return r, err
	}
	switch unfit := c.acceptMove(ctx, name, r.Moved); {
	case unfit == nil && err != nil:
		return c.syncOnce(ctx, name, until)
	case unfit != nil && err == nil:
		c.Report(fmt.Sprintf("%s: %s", name, unfit))
	case unfit != nil && !strings.Contains(err.Error(), unfit.Error()): // the round's error does not contain it
		err = fmt.Errorf("%w; %w", err, unfit)
	}
	return r, err
}

func (c *Client) syncOnce(ctx context.Context, name string, until time.Time) (*Round, error) {
	return c.round(ctx, name, func(c *Client, s *store.Subscription, r *Round) error {
		if err := c.choose(ctx, s); err != nil {
			return err
		}
		if s.State != nil && s.Staging == nil {
			if err := c.revisit(ctx, s); err != nil {
				return err
			}
		}
		return c.advance(ctx, s, r, until)
	})
}

// advance brings the source in step: by a partial update where that is possible.
func (c *Client) advance(ctx context.Context, s *store.Subscription, r *Round, until time.Time) error {
	if s.State != nil && s.Staging != nil && c.memory.Doubt != nil { // a replacement was interrupted: confirm it again
		if err := c.unstage(ctx, s); err != nil {
			return err
		}
		if err := c.remember(ctx, s); err != nil {
			return err
		}
	}
	if s.State == nil || s.Staging != nil {
		return c.unmended(ctx, s, r, "what is held is not what the source states", c.replace(ctx, s, r, nil, until))
	}
	err := c.partialUpdate(ctx, s, r, until)
	if err == nil {
		err = c.checkKept(ctx, s)
	}
	return c.orReplace(ctx, s, r, until, err)
}

// unstage drops the staged generation. The round continues with the visible one.
func (c *Client) unstage(ctx context.Context, s *store.Subscription) error {
	err := c.Store.UpdateSubscription(ctx, s.Name, func(kept *store.Subscription) { kept.Staging = nil })
	if err == nil {
		s.Staging = nil
		c.Store = newRoundStore(c.Store, s)
	}
	return err
}

// unmendableError is the reason why only a clean replacement repairs the copy.
type unmendableError struct{ reason string }

func (e *unmendableError) Error() string { return e.reason }

// orReplace does a clean replacement if err requires it. It returns any other error.
func (c *Client) orReplace(ctx context.Context, s *store.Subscription, r *Round, until time.Time, err error) error {
	if history, ok := errors.AsType[*follow.HistoryError](err); ok {
		return c.believed(ctx, s, r, history, until)
	}
	if !errors.As(err, new(*unmendableError)) {
		return err
	}
	goesOn := &follow.Doubt{Feed: s.FeedID}
	if m := s.State.Mark; len(m.Handled) > 0 {
		goesOn.Head, goesOn.HeadAt = follow.Key(m.Handled[0], m.Updated), m.Updated
	}
	return c.unmended(ctx, s, r, err.Error(), c.replaceBecause(ctx, s, r, err.Error(), goesOn, until))
}

// unmended keeps a copy that a clean replacement would not repair either, as its error says: the source may state wrong
// digests, or the connection alters its documents.
func (c *Client) unmended(ctx context.Context, s *store.Subscription, r *Round, reason string, err error) error {
	if d, ok := errors.AsType[*follow.DoubtError](err); !ok || s.State == nil || d.Loss != follow.LossDigest {
		return err
	}
	current, err := c.Subscription(ctx, s.Name)
	if err != nil {
		return err
	}
	*s, c.memory.Doubt = *current, nil
	c.Store = newRoundStore(c.Store, s)
	r.CleanStart, r.Snapshot, r.Reason, r.Removed = false, false, "", 0
	s.State.Proof = &store.Proof{At: c.Now().UTC(), Differs: true,
		Reason: reason + ", and its newest snapshot is not what it states either: tell the owner of the server"}
	return c.Store.ApplyEntries(ctx, s.Name, func(a *store.Applying) error {
		a.RepairFailed = true
		return nil
	})
}

// replaceBecause does a clean replacement for a reason. The replacement must contain the reading want.
func (c *Client) replaceBecause(ctx context.Context, s *store.Subscription, r *Round, reason string, want *follow.Doubt,
	until time.Time) error {
	r.Reason = reason
	c.Report(fmt.Sprintf("%s: %s; replacing the source from a snapshot", s.Name, r.Reason))
	c.Logger.Warn("clean replacement", "subscription", s.Name, "reason", r.Reason)
	c.asking = c.memory.Proves
	return c.replace(ctx, s, r, want, until)
}

// round runs f and keeps in the store how it went.
func (c *Client) round(ctx context.Context, name string,
	f func(*Client, *store.Subscription, *Round) error) (*Round, error) {
	s, unlock, err := c.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &Round{Name: name}
	own, failed := c.forSubscription(s)
	if failed == nil {
		own.Store = newRoundStore(c.Store, s)
		failed = own.remember(ctx, s)
	}
	if failed == nil {
		failed = f(own, s, r)
		if errors.Is(failed, fragment.ErrCorrupt) {
			failed = fmt.Errorf("%w: \"verify --full %s\" mends the copy", failed, name)
		}
		own.reportTolerated(name)
	}
	if own != nil && own.memory != nil {
		if r.Doubt = own.memory.Doubt; failed == nil && r.Doubt != nil {
			failed = &follow.DoubtError{Doubt: r.Doubt}
		}
		if s.Memory, err = json.Marshal(own.memory); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed == nil {
		failed = own.learnLanguage(ctx, s, r)
	}
	var proof *store.Proof
	if p := s.Applied(); p != nil && p.Proof != nil && failed == nil {
		proof = p.Proof
		r.Proven, r.Unproven = proof.Equal, proof.Reason
	}
	now := c.Now().UTC()
	if own != nil {
		if r.Moved = own.moved.to(); own.reading != nil {
			r.Every = own.reading.Every
		}
	}
	if failed != nil && r.Moved != "" {
		if unfit := own.mayMove(s, r.Moved); unfit != nil {
			failed = fmt.Errorf("%w; %w", failed, unfit)
		}
	}
	why := ""
	if failed != nil {
		why = failed.Error()
	}
	if ctx.Err() != nil && errors.Is(failed, ctx.Err()) {
		why = "the round was interrupted; the next one goes on from there"
	}
	ctx = context.WithoutCancel(ctx) // interrupted rounds report it, too
	err = c.Store.UpdateSubscription(ctx, name, func(kept *store.Subscription) {
		kept.LastCheck = now
		if kept.LastError = why; failed != nil {
			kept.LastErrorAt = now
		}
		if r.Applied > 0 || r.CleanStart && failed == nil {
			kept.LastChange = now
		}
		kept.ETag, kept.Checked, kept.Openings, kept.Memory = s.ETag, s.Checked, s.Openings, s.Memory
		kept.Language = s.Language
		if own != nil && own.memory != nil {
			kept.AsOf = own.memory.InStep
		}
		if kept.State != nil {
			r.Mark = kept.State.Mark.Updated
			r.Ahead = r.Mark.IsZero() && own != nil && own.memory != nil && len(own.memory.Held) > 0
			if failed == nil {
				kept.State.Proof = proof
				r.Differs = proof != nil && proof.Differs && !kept.State.NoRepair
				kept.State.NoRepair = kept.State.NoRepair && !r.Proven
				kept.State.RepairFailed = kept.State.RepairFailed && !r.Proven
			}
		}
	})
	quarantined, counted := c.Store.Quarantine(ctx, name)
	r.Quarantined = len(quarantined)
	return r, cmp.Or(failed, err, counted)
}

// learnLanguage stores in s the language of its source's titles: the one that the feed states, or else that of most
// names, which it determines when a map is loaded, and again after as many applied entries as before.
func (c *Client) learnLanguage(ctx context.Context, s *store.Subscription, r *Round) error {
	if c.reading == nil || s.Language != nil && (c.reading.Same ||
		c.reading.Language == "" && *s.Language != "" && !s.Replica) {
		return nil
	}
	language := c.reading.Language
	if language == "" && !s.Replica {
		err := c.Store.ReadSources(ctx, func(all []store.Subscription, sources []fragment.Source) error {
			i := slices.IndexFunc(all, func(other store.Subscription) bool { return other.Name == s.Name })
			if i < 0 || s.Language != nil && (r.Applied == 0 || 2*r.Applied < all[i].State.Applied) {
				return nil
			}
			count := titles.Count{}
			for t, err := range sources[i].Topics() {
				if err != nil {
					return err
				}
				t.CountLanguages(count)
			}
			language = count.Most()
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.Language = &language
	return nil
}

// replace makes a new generation of the source from the newest snapshot, brings
// it up to date and then switches to it. A staged generation that an earlier
// round has left is taken on.
func (c *Client) replace(ctx context.Context, s *store.Subscription, r *Round, want *follow.Doubt,
	until time.Time) error {
	r.CleanStart = true
	staged := s.Staging != nil && r.Reason == "" && provable(s.Staging.Mark) && (!s.Replica || s.Staging.Log)
	for {
		if !staged {
			if err := c.stage(ctx, s); err != nil {
				return err
			}
		}
		current, err := c.Subscription(ctx, s.Name)
		if err != nil {
			return err
		}
		if *s = *current; s.Staging == nil { // another node has switched to it
			return fmt.Errorf("%s: %w", s.Name, store.ErrOvertaken)
		}
		c.Store = newRoundStore(c.Store, s)
		s.ETag, r.Snapshot = "", s.Staging.Snapshot
		if c.staged = (&follow.Memory{}); want != nil {
			c.staged.Doubt = &follow.Doubt{Feed: want.Feed, Head: want.Head, HeadAt: want.HeadAt}
		}
		err = c.partialUpdate(ctx, s, r, until)
		var history *follow.HistoryError
		switch {
		case errors.As(err, &history) && staged: // the staged data is too old now
			staged = false
			continue
		case errors.As(err, &history):
			return fmt.Errorf(
				"the newest snapshot does not fit the feed: %w. One of them may come from a cache: try again later, and if it "+
					"stays so, tell the owner of the server", err)
		case err != nil:
			return err
		}
		if err := c.confirms(ctx, s, r, want); err != nil { // the next round must not continue with unconfirmed data
			return errors.Join(err, c.unstage(ctx, s))
		}
		if err := c.Store.SwitchSource(ctx, s.Name, s.Staging.Generation, r.Reason); err != nil {
			return err
		}
		c.memory = c.staged
		return (&fetch.Download{Path: c.downloadPath(s)}).Remove() // the rest of a crash
	}
}

// stage loads the newest snapshot, or nothing if there is none.
func (c *Client) stage(ctx context.Context, s *store.Subscription) error {
	switch p, err := c.finding(s); {
	case err != nil:
		return err
	case p != nil: // its content is checked when it is read
		return c.Store.StageSource(ctx, s.Name, fragment.Records(&merge.Memory{}), store.Mark{}, nil)
	}
	recent, _, err := c.getFeed(ctx, s.FragmentsFeed, "")
	if err != nil {
		return err
	}
	if err := checkPrefix(s, recent.ServerSrcLocatorPrefix, s.FragmentsFeed, s.Protocol == store.TMShare); err != nil {
		return err
	}
	if err := c.acceptRecent(ctx, s, recent); err != nil {
		return err
	}
	if err := c.stageSnapshot(ctx, s, recent); err != nil {
		return err
	}
	if s.Replica {
		if err := c.stageLog(ctx, s, recent.ID); err != nil {
			return err
		}
	}
	// Last, because the visible state belongs to the feed that it came from: otherwise a staged generation is not
	// continued, but made again.
	return c.Store.UpdateSubscription(ctx, s.Name, func(kept *store.Subscription) { kept.FeedID = recent.ID })
}

func (c *Client) xtmOptions(sp, uri, contentType string) xtm.Options {
	o := xtm.Options{Base: tmdm.Locator(sp), URI: uri, ContentType: contentType, Lenient: c.Lenient, Limits: c.Document,
		DropClashes: true}
	if c.tolerated != nil {
		o.Tolerated = c.tolerated.add
	}
	return o
}

// partialUpdate applies the changes of the source after the mark.
func (c *Client) partialUpdate(ctx context.Context, s *store.Subscription, r *Round, until time.Time) error {
	if s.Protocol == store.TMShare {
		return c.followFragments(ctx, s, r, until)
	}
	return c.harvest(ctx, s, r)
}
