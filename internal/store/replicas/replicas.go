// Package replicas makes the log of a replica from the feed of its origin.
package replicas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// ErrNotReplicable is the error for a source whose server is not TMShare in Go, so that its log cannot be served.
var ErrNotReplicable = errors.New(
	"the source cannot be replicated, as its entries do not name their places in a log: follow it by \"subscribe\", " +
		"and \"derive\" a collection of it")

// EpochOf returns the epoch that the id of a feed names.
func EpochOf(feedID string) (uuid.UUID, error) {
	epoch, err := uuid.Parse(feedID)
	if err != nil {
		return epoch, ErrNotReplicable
	}
	return epoch, nil
}

// Begin sets the properties of a log before its first entry. It has a time, because the feeds of an empty collection
// state one, too.
func Begin(c *collections.Collection, s *sources.Subscription) {
	c.SP, c.Created, c.Updated = s.SP, time.Unix(0, 0), s.Staging.Mark.Updated
	if c.Updated.IsZero() { // there is no snapshot
		c.Updated = c.Created
	}
}

// Staged returns the collection whose log is being made for a staged generation, nil for none.
func Staged(t *txn.Tx, s *sources.Subscription) (*collections.Collection, error) {
	var c collections.Collection
	ok, err := t.GetJSON(stagedKey(s.Number), &c)
	if !ok {
		return nil, err
	}
	return &c, err
}

// PutStaged writes the row of such a collection.
func PutStaged(t *txn.Tx, c *collections.Collection) error {
	return t.PutJSON(stagedKey(c.Number), c)
}

// DeleteStaged removes it.
func DeleteStaged(t *txn.Tx, s *sources.Subscription) error { return t.Delete(stagedKey(s.Number)) }

func stagedKey(number uint32) []byte { return keys.Own(number).Key(keys.TableStagedLog) }

// SourceOf returns the records of a fragment.
func SourceOf(f *fragment.Fragment) (fragment.Source, error) {
	source := &merge.Memory{}
	return source, merge.Apply(source, f)
}

// Keep keeps the fragment of an entry where the records show another one, and sets Kept. A large fragment is not kept:
// it sets Late.
func Keep(t *txn.Tx, c *collections.Collection, state, applied fragment.Source, e *collections.Entry) error {
	kept, err := differing(c, state, applied, e)
	if err == nil && e.Kept {
		err = t.Put(c.Log().Numbered(keys.TableFragment, e.Seq), kept)
	}
	return err
}

// differing returns that fragment, and sets Kept or Late.
func differing(c *collections.Collection, state, applied fragment.Source, e *collections.Entry) ([]byte, error) {
	form := c.Form(e, xtm.V21)
	own, err := state.Topic(e.TopicSI)
	if err != nil {
		return nil, err
	}
	writeOwn := func(w io.Writer) error {
		if own == nil {
			return nil
		}
		return fragment.Write(w, state, own.TopicSI(), form)
	}
	var here, there rendered.Small
	err = fragment.Write(&there, applied, e.Describes(), form)
	if errors.Is(err, rendered.ErrLarge) {
		here, there := rendered.NewDigester(), rendered.NewDigester()
		err := errors.Join(fragment.Write(there, applied, e.Describes(), form), writeOwn(here))
		e.Late = here.Digest() != there.Digest()
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if err := writeOwn(&here); err != nil && !errors.Is(err, rendered.ErrLarge) {
		return nil, err
	}
	if e.Kept = !bytes.Equal(here.Bytes(), there.Bytes()); !e.Kept {
		return nil, nil
	}
	return there.Bytes(), nil
}

// Shown returns the records of a fragment that is stored with an entry.
func Shown(ctx context.Context, c *collections.Collection, e *collections.Entry, kept []byte) (fragment.Source, error) {
	var applied fragment.Source
	f, err := fragment.Read(ctx, bytes.NewReader(kept), xtm.Options{Base: tmdm.Locator(c.SP)}, e.TopicSI)
	if err == nil {
		applied, err = SourceOf(f)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a fragment that is kept cannot be read: %w. %s", kv.ErrDamaged, err, txn.DamageRemedy)
	}
	return applied, nil
}

// Next returns the next entry of the log, nil for one that it has already.
func Next(t *txn.Tx, c *collections.Collection, state records.State, l *sources.Logged) (*collections.Entry, error) {
	id, err := uuid.Parse(l.ID)
	run, seq, ok := c.SequenceOf(id)
	if err != nil || !ok || l.TopicSI == "" {
		return nil, fmt.Errorf("%w (entry %s)", ErrNotReplicable, l.ID)
	}
	if c.Head == 0 {
		c.Created = l.Updated.Add(-time.Microsecond)
	}
	switch {
	case seq <= c.Head:
		return nil, nil
	case c.Head == 0 && seq > 1: // the origin keeps no earlier history
		c.Horizon, c.HorizonTime, c.Replica.Partial = seq-1, l.Updated.Add(-time.Microsecond), true
	case seq != c.Head+1:
		return nil, fmt.Errorf("the feed of %s lacks the entries %d to %d of its log: \"replace %s\" starts afresh", c.Name,
			c.Head+1, seq-1, c.Name)
	}
	if l.Commit > 0 && l.Commit < seq {
		return nil, fmt.Errorf(
			"the feed of %s says that its entry %d belongs to commit %d, which ends before: tell its owner", c.Name,
			seq, l.Commit)
	}
	e := &collections.Entry{Late: l.Applied == nil || !l.Lasting, Seq: seq, Run: run, Updated: l.Updated,
		TopicSI: l.TopicSI, Title: l.Title, Author: l.Author, Note: l.Note, Via: l.Via, Deleted: l.Deleted,
		Covered: l.Covered, Commit: l.Commit, Omits: l.Omits, Digest: l.Digest}
	if l.Title == (&collections.Entry{TopicSI: l.TopicSI}).Label() {
		e.Title = string(l.TopicSI) // the topic has no name: the feed's title follows from the identifier
	}
	if l.Rendering != rendered.First {
		e.Rendering = l.Rendering
	}
	switch {
	case l.Deleted && l.Applied != nil:
		e.Bury(l.Applied.Topic.Identity)
	case l.Deleted:
	case l.Applied != nil:
		if about := l.Applied.Topic.TopicSI(); about != e.TopicSI {
			e.Topic = about
		}
	default: // whether the TopicSI has become another one is known of the topics as they are now
		if about, err := state.Topic(e.TopicSI); err != nil {
			return nil, err
		} else if about != nil && about.TopicSI() != e.TopicSI {
			e.Topic = about.TopicSI()
		}
	}
	c.OfferRDF(&l.RDF)
	c.Head, c.Run, c.Updated = seq, run, l.Updated
	return e, nil
}

// PassOn notes the checkpoint of the origin that was accepted last, if it is of the log as it is.
func PassOn(t *txn.Tx, c *collections.Collection, s *sources.Subscription) error {
	if s.Key == "" || s.Checkpoint == "" || c.Hashed == 0 || c.Hashed != c.Head {
		return nil
	}
	stated, err := checkpoint.Open(s.Checkpoint, s.Key)
	if err != nil || stated.Size != int64(c.Hashed) {
		return nil // it is of a later state
	}
	root, err := tlog.TreeHash(stated.Size, collections.LogTree{Tx: t, Log: c.Log()})
	if err != nil {
		return err
	}
	if root == stated.Root { // otherwise some leaves are unknown: the origin has pruned its log
		c.Replica.Checkpoint, c.Replica.Key = checkpoint.Note(s.Checkpoint), s.Key
	}
	return nil
}

// Unresolved returns the live entries whose TopicSI no topic has any more, and that no later entry supersedes.
func Unresolved(t *txn.Tx, c *collections.Collection,
	entries []sources.Logged) (unresolved []*sources.Logged, err error) {
	state := records.In(t, c.SourceKey())
	for i := range entries {
		if entries[i].Deleted || entries[i].Superseded {
			continue
		}
		about, err := state.Topic(entries[i].TopicSI)
		if err != nil {
			return nil, err
		}
		if about == nil {
			unresolved = append(unresolved, &entries[i])
		}
	}
	return unresolved, nil
}
