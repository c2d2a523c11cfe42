package status

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// Node is the state of a node.
type Node struct {
	Publishes []Published `json:"publishes"`
	Follows   []Status    `json:"follows"`
	Size      Size        `json:"size"`

	Dependents []store.Dependent `json:"dependents,omitempty"` // all

	Serving map[string][]string `json:"serving,omitzero"` // settings of the server that runs; nil: none does
}

// Published is a collection that the node publishes.
type Published struct {
	Name       string     `json:"name"`
	Former     []string   `json:"former,omitempty"` // the names that it had and that lead to it
	SP         string     `json:"sourceLocatorPrefix"`
	Entries    uint64     `json:"entries"` // of the log, those that were pruned as well
	Topics     int        `json:"topics"`
	LastChange *time.Time `json:"lastChange,omitempty"`
	Signed     bool       `json:"signed"` // checkpoints of its log are
	// Origin is the fragments feed of which the collection is a replica, "" for none. DerivedFrom names the inputs of a
	// derived collection.
	Origin      string   `json:"origin,omitempty"`
	DerivedFrom []string `json:"derivedFrom,omitempty"`
	// Filter selects the content of inputs; nil: all.
	Filter *store.Filter `json:"filter,omitempty"`
	// BeingFilled states that it was not completely derived yet, and is not served until then.
	BeingFilled bool `json:"beingFilled,omitempty"`
	// MissingInputs are the missing ones of DerivedFrom. Advice is the remedy. Nothing is derived until then.
	MissingInputs []MissingInput `json:"missingInputs,omitempty"`
	Advice        string         `json:"advice,omitempty"`
}

// MissingInput is a source that a collection is derived from and that the node does not have.
type MissingInput struct {
	Name   string `json:"name"`
	Reason string `json:"reason"` // in a few words
}

// Size is the disk space of a node, in bytes.
type Size struct {
	Records   int64 `json:"recordBytes"` // all rows of the database
	Snapshots int64 `json:"snapshotBytes"`
	Free      int64 `json:"freeBytes"` // on the disk of the data folder
}

// OfNode returns the picture of a node at the time now. serving are the settings of its server.
func OfNode(ctx context.Context, db *store.DB, now time.Time, serving map[string][]string) (*Node, error) {
	n := &Node{Publishes: []Published{}, Serving: serving}
	listing, err := db.Listing(ctx)
	if err != nil {
		return nil, err
	}
	all := listing.Collections
	for i := range all {
		c := &all[i]
		p := Published{
			Name: c.Name, SP: c.SP, Entries: c.Head, Topics: c.Topics, LastChange: known(c.Updated), Signed: c.Sign != "",
			Former: c.Former, DerivedFrom: c.DerivedFrom, Filter: c.Filter, BeingFilled: c.Hidden,
		}
		inputs := listing.States(c)
		for _, in := range inputs {
			if in.Missing != "" {
				p.MissingInputs = append(p.MissingInputs, MissingInput{in.Name, string(in.Missing)})
			}
		}
		p.Advice = store.AdviceOnInputs(c, inputs)
		if c.Replica != nil {
			p.Origin, p.Signed = c.Replica.Origin, c.Replica.Checkpoint != ""
		}
		n.Publishes = append(n.Publishes, p)
	}
	if n.Follows, err = Named(ctx, db, now); err != nil {
		return nil, err
	}
	if n.Dependents, err = db.Dependents(ctx); err != nil {
		return nil, err
	}
	size, err := db.Sizes()
	n.Size = Size(size)
	return n, err
}
