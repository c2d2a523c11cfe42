package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/client/discover"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/replicas"
)

// CheckpointError is the error for a source that does not prove that its log continues the last accepted checkpoint.
// Nothing was changed.
type CheckpointError struct {
	Name string // of the subscription
	Err  error  // often a [*checkpoint.ForkError]

	older bool // the checkpoint has fewer entries: a cache may have kept it
}

// whereOlder returns nil for the error of a checkpoint that is older than the last accepted one. Like other older
// states it is in doubt first, and refused once that is confirmed.
func whereOlder(err error) error {
	if refused, ok := errors.AsType[*CheckpointError](err); ok && refused.older {
		return nil
	}
	return err
}

// CheckpointRefused begins the message of a [CheckpointError].
const CheckpointRefused = "the checkpoint of the source is refused"

func (e *CheckpointError) Error() string {
	return fmt.Sprintf(CheckpointRefused+
		", and nothing was changed: %v\nAsk the owner of the source what has happened, by another way than this server. "+
		"If it has a new key: \"tmshare-client trust %[2]s --key KEY\"; if what it states now is right in any case: "+
		"\"tmshare-client trust %[2]s --accept\"", e.Err, e.Name)
}

func (e *CheckpointError) Unwrap() error { return e.Err }

// maxProof is the largest length in bytes of a consistency proof.
const maxProof = 64 << 10

// checkpointOf returns the key and the checkpoint of a recent document of the fragments feed, if they continue the
// pinned ones; else the error is a [CheckpointError]. Both are "" for a source that was never signed.
func (c *Client) checkpointOf(ctx context.Context, s *store.Subscription,
	f *feeds.Feed) (key, signed string, err error) {
	if s.Key == "" && f.Checkpoint == "" {
		return "", "", nil
	}
	refuse := func(reason string, args ...any) *CheckpointError {
		return &CheckpointError{Name: s.Name,
			Err: &checkpoint.ForkError{Reason: fmt.Sprintf(reason, args...), Known: s.Checkpoint, Stated: f.Checkpoint}}
	}
	if key = s.Key; key == "" {
		key = f.Key
	}
	if f.Checkpoint == "" {
		return "", "", refuse("the source states none: it is not signed, or not any more")
	}
	stated, err := checkpoint.Open(f.Checkpoint, key)
	if err != nil {
		return "", "", refuse("%v", err)
	}
	if stated.Origin != s.SP {
		return "", "", refuse("it is of another collection (%s, not %s)", stated.Origin, s.SP)
	}
	if s.Checkpoint == "" || s.Checkpoint == f.Checkpoint {
		return key, f.Checkpoint, nil
	}
	known, err := checkpoint.Open(s.Checkpoint, key)
	if err != nil {
		return "", "", refuse("the last accepted one cannot be read: %v", err)
	}
	var proof tlog.TreeProof
	if stated.Size > known.Size && known.Size > 0 {
		if proof, err = c.consistency(ctx, f, known.Size, stated.Size); err != nil {
			return "", "", err
		}
	}
	var fork *checkpoint.ForkError
	if err := stated.Follows(known, proof); errors.As(err, &fork) {
		refused := refuse("%s", fork.Reason)
		refused.older = stated.Size < known.Size
		return "", "", refused
	}
	return key, f.Checkpoint, nil
}

// consistency fetches the proof that the log of from entries is the beginning of the log of to entries (RFC 6962
// §2.1.2). It is empty if the source has none.
func (c *Client) consistency(ctx context.Context, f *feeds.Feed, from, to int64) (tlog.TreeProof, error) {
	link, ok := f.Link(feeds.RelCheckpoint)
	if !ok {
		return nil, nil
	}
	r := fetch.Request{
		URL: fmt.Sprintf("%s/consistency?from=%d&to=%d", link.Href, from, to), Accept: "application/json", Max: maxProof,
		Within: c.MaxTime,
	}
	proof, _, err := fetch.Do(ctx, c.fetcher().Uncached(), r, func(a *fetch.Answer) (tlog.TreeProof, error) {
		var answer struct{ Proof tlog.TreeProof }
		if err := json.NewDecoder(a.Body).Decode(&answer); err != nil {
			return nil, fmt.Errorf("%s: %w", a.URL, err)
		}
		return answer.Proof, nil
	})
	if follow.Gone(err) && !follow.IsServerFault(err) {
		return nil, nil
	}
	return proof, err
}

// begin pins the key and the checkpoint of a new subscription's source. key is the required key, "" for any.
func (c *Client) begin(ctx context.Context, s *store.Subscription, key string) error {
	stated := &feeds.Feed{Key: s.Key, Checkpoint: s.Checkpoint}
	s.Key, s.Checkpoint = key, "" // no checkpoint was accepted before, so no proof is fetched
	if s.Protocol != store.TMShare {
		if key != "" {
			return fmt.Errorf("sources that are followed by %s state no checkpoints: leave out --key", ProtocolOf(s))
		}
		return nil
	}
	var err error
	s.Key, s.Checkpoint, err = c.checkpointOf(ctx, s, stated)
	if refused, ok := errors.AsType[*CheckpointError](err); ok {
		return fmt.Errorf(
			"%s: not subscribed, as its checkpoint is refused: %w\nAsk the owner of the source for the right key, and "+
				"whether it is signed at all, by another way than this server", s.FragmentsFeed, refused.Err)
	}
	return err
}

// acceptCheckpoint refuses a recent document of the fragments feed whose checkpoint does not continue the last one.
// Otherwise it pins the key and the checkpoint.
func (c *Client) acceptCheckpoint(ctx context.Context, s *store.Subscription, f *feeds.Feed) error {
	key, signed, err := c.checkpointOf(ctx, s, f)
	if err != nil || key == s.Key && signed == s.Checkpoint {
		return err
	}
	if s.Key == "" {
		c.Report(fmt.Sprintf("%s: the source is signed, and is followed from now on only while it is, by the key %s",
			s.Name, key))
	}
	return c.pin(ctx, s, key, signed)
}

// acceptRecent is [Client.acceptCheckpoint]. It also stores from which feeds the source is derived.
func (c *Client) acceptRecent(ctx context.Context, s *store.Subscription, f *feeds.Feed) error {
	if err := c.acceptCheckpoint(ctx, s, f); err != nil {
		return err
	}
	from := discover.DerivedFrom(f)
	if slices.Equal(from, s.DerivedFrom) {
		return nil
	}
	if s.DerivedFrom = from; from != nil {
		c.Report(fmt.Sprintf(
			"%s: the source is derived from %s; nothing is derived from it here: \"expand %[1]s\" follows these instead", s.Name,
			strings.Join(from, ", ")))
	}
	return c.Store.UpdateSubscription(ctx, s.Name, func(kept *store.Subscription) { kept.DerivedFrom = from })
}

func (c *Client) pin(ctx context.Context, s *store.Subscription, key, signed string) error {
	s.Key, s.Checkpoint = key, signed
	return c.Store.UpdateSubscription(ctx, s.Name, func(kept *store.Subscription) {
		kept.Key, kept.Checkpoint = key, signed
	})
}

// signedDigest returns the state digest of the last accepted checkpoint, "" for none.
func signedDigest(s *store.Subscription) string {
	if s.Checkpoint == "" {
		return ""
	}
	c, err := checkpoint.Open(s.Checkpoint, s.Key)
	if err != nil { // damaged: it equals nothing
		return "the last accepted checkpoint cannot be read"
	}
	return c.Digest
}

// unsigned returns why the last accepted checkpoint does not include the entries that were read, "" if it does. Even
// then its digest may be that of the copy: not all entries change the state.
func (u *fragments) unsigned() string {
	if u.s.Checkpoint == "" {
		return ""
	}
	signed, err := checkpoint.Open(u.s.Checkpoint, u.s.Key)
	if err != nil {
		return fmt.Sprintf("the last accepted checkpoint cannot be read: %v", err)
	}
	epoch, _ := replicas.EpochOf(u.mark.Feed)
	log := store.Collection{Epoch: epoch}
	for _, entry := range u.mark.At {
		id, err := uuid.Parse(entry)
		_, seq, ok := log.SequenceOf(id)
		switch {
		case err != nil || !ok:
			return fmt.Sprintf(
				"the source is signed, and its entry %s does not name its place in the log: tell the owner of the server", entry)
		case seq > uint64(signed.Size):
			return fmt.Sprintf(
				"the source has signed %d entries of its log, and shows entry %d, which is not among them: tell the owner of "+
					"the server (\"tmshare-server check\")", signed.Size, seq)
		}
	}
	return ""
}

// Trust has the pinned and the stated checkpoint of a subscription's source.
type Trust struct {
	Name       string `json:"name"`
	Key        string `json:"key,omitempty"`        // the public key that is pinned
	Checkpoint string `json:"checkpoint,omitempty"` // that was accepted last

	StatedKey        string `json:"statedKey,omitempty"`
	StatedCheckpoint string `json:"statedCheckpoint,omitempty"`

	Refused  string `json:"refused,omitempty"` // the reason why the stated checkpoint is refused
	Accepted bool   `json:"accepted"`          // the stated checkpoint is pinned now
}

// Trust compares a source's checkpoint with the last accepted one. accept pins the source's statement, also that it is
// not signed. A key is pinned if it has signed the checkpoint.
func (c *Client) Trust(ctx context.Context, name, key string, accept bool) (*Trust, error) {
	s, unlock, err := c.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.Protocol != store.TMShare {
		return nil, fmt.Errorf("%s: sources that are followed by %s state no checkpoints", name, ProtocolOf(s))
	}
	own, err := c.forSubscription(s)
	if err != nil {
		return nil, err
	}
	f, _, err := own.getFeed(ctx, s.FragmentsFeed, "")
	if err != nil {
		return nil, err
	}
	t := &Trust{Name: name, Key: s.Key, Checkpoint: s.Checkpoint, StatedKey: f.Key, StatedCheckpoint: f.Checkpoint}
	var refused *CheckpointError
	if _, _, err := own.checkpointOf(ctx, s, f); errors.As(err, &refused) {
		t.Refused = refused.Err.(*checkpoint.ForkError).Reason
	} else if err != nil {
		return nil, err
	}
	if key == "" && !accept {
		return t, nil
	}
	begin := &store.Subscription{Name: name, SP: s.SP, Key: key} // without the checkpoint that is pinned
	key, signed, err := own.checkpointOf(ctx, begin, f)
	if err == nil {
		err = own.pin(ctx, s, key, signed)
	}
	t.Accepted = err == nil
	return t, err
}
