package store

import (
	"context"
	"encoding/json"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/titles"
)

// What a store keeps of the sources that are followed: see package sources.
type (
	// Subscription is a source that follows a collection of another server.
	Subscription = sources.Subscription
	// Asked holds the options of a subscription.
	Asked = sources.Asked
	// Protocol is a protocol to follow a source.
	Protocol = sources.Protocol
	// Proof is the result of comparing a state with its source's digest.
	Proof = sources.Proof
	// Logged is an entry of the log of a source, as its feed states it.
	Logged = sources.Logged
	// Mark is the point in a feed up to which everything is applied.
	Mark = sources.Mark
	// Applying is a running change of a subscription's source.
	Applying = sources.Applying
	// Held is the state of a record of a source.
	Held = sources.Held
	// Quarantined is an entry that could not be applied.
	Quarantined = sources.Quarantined
	// Activity is an activity of a source.
	Activity = sources.Activity
	// Rejected is a claim of a source that does not show in the merged view.
	Rejected = sources.Rejected
)

// ErrOvertaken is the error for a subscription that another process works on.
var ErrOvertaken = sources.ErrOvertaken

// TMShare is the protocol of fragments feeds.
const TMShare = sources.TMShare

// The kinds of activities.
const (
	ActivityApplied      = sources.ActivityApplied
	ActivityQuarantined  = sources.ActivityQuarantined
	ActivityReleased     = sources.ActivityReleased
	ActivityReplaced     = sources.ActivityReplaced
	ActivityRepaired     = sources.ActivityRepaired
	ActivityMended       = sources.ActivityMended
	ActivityEdited       = sources.ActivityEdited
	ActivitySubscribed   = sources.ActivitySubscribed
	ActivityUnsubscribed = sources.ActivityUnsubscribed
)

// Part is a source of a node's merged view.
type Part struct {
	Name    string // of the subscription, or of the collection
	SP      string
	Own     bool             // a collection of this node
	Derived bool             // its source is derived
	Called  titles.Languages // in which topics are called
	Source  fragment.Source  // without rejected claims: a [*rejections.Source] if there are any
	All     records.State    // with rejected claims
	Filter  json.RawMessage  // selects the visible part: see [Subscription]

	input derived.Input // as an input of derived collections
	inRDF bool          // it is offered in RDF, too
}

// ReadParts calls f with the sources of the merged view, all as of one moment: those subscriptions that have a state,
// by name, and the node's own collections, by name. The sources are valid until f returns.
func (db *DB) ReadParts(ctx context.Context, f func([]Part) error) error {
	return db.rows.View(ctx, func(t *txn.Tx) error {
		parts, err := parts(t)
		if err != nil {
			return err
		}
		return f(parts)
	})
}

// parts returns the sources of the merged view. It omits derived collections, which only repeat their inputs.
func parts(t *txn.Tx) (all []Part, err error) {
	own, err := collections.All(t)
	if err != nil {
		return nil, err
	}
	replicas := map[string]*Collection{}
	for i := range own {
		if own[i].Replica != nil {
			replicas[own[i].Name] = &own[i]
		}
	}
	followed, err := sources.All(t)
	if err != nil {
		return nil, err
	}
	for _, s := range followed {
		if s.State == nil {
			continue
		}
		id := s.Source(s.State)
		src, err := rejections.Apply(t, s.Number, records.Read(t, id))
		if err != nil {
			return nil, err
		}
		p := Part{Name: s.Name, SP: s.SP, Derived: len(s.DerivedFrom) > 0, Called: s.Languages(), Source: src,
			All: records.In(t, id), Filter: s.Filter,
			input: derived.Input{ID: id, Since: s.State.Forgotten}}
		p.input.Via = func(after, upTo uint64, f func(fragment.Ref, string)) error {
			return sources.Via(t, id, after, upTo, f)
		}
		p.inRDF = s.State.RDF
		if c := replicas[s.Name]; c != nil {
			p.input, p.inRDF = inputOf(t, c), c.InRDF()
		}
		p.input.Anew = s.Anew
		all = append(all, p)
	}
	for i := range own {
		if len(own[i].DerivedFrom) == 0 && own[i].Replica == nil { // a replica equals its subscription
			id := own[i].SourceKey()
			all = append(all, Part{
				Name: own[i].Name, SP: own[i].SP, Own: true, Called: own[i].Languages(), Source: records.Read(t, id),
				All: records.In(t, id), input: inputOf(t, &own[i]), inRDF: own[i].InRDF(),
			})
		}
	}
	return all, nil
}

// inputOf returns a collection as an input of derived collections.
func inputOf(t *txn.Tx, c *Collection) derived.Input {
	in := derived.Input{ID: c.SourceKey(), Since: max(c.Remembered, c.Horizon-min(c.Horizon, 1))}
	in.Via = func(after, upTo uint64, f func(fragment.Ref, string)) error {
		for e, err := range collections.Kept(t, c, after+1) {
			if err != nil || e.Seq > upTo {
				return err
			}
			f(e.TopicSI, c.Path(e.Run, e.Seq))
		}
		return nil
	}
	return in
}
