package records

import (
	"bytes"
	"errors"

	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The state digest of a generation of a source is kept up to date in each commit. What a commit changes is
// collected first, since most commits change several records of a topic.

// nodeKey returns the key of the row of a node of the tree.
func nodeKey(id keys.Source, path []byte) []byte { return append(id.Key(keys.TableDigest), path...) }

// digesting holds the changes of an update to the tree of a source.
type digesting struct {
	State
	changes map[statedigest.Item]*digestChange
	topics  int // increase of the number of topics
}

type digestChange struct {
	owner string
	step  int // 1: added, -1: removed
}

// digest returns the changes of the update to the tree so far.
func (s State) digest() *digesting {
	return s.tx.Attached(s.id, func() txn.Finisher {
		return &digesting{State: s, changes: map[statedigest.Item]*digestChange{}}
	}).(*digesting)
}

// KeepDigests enables the update of trees. Benchmarks disable it to measure its cost.
var KeepDigests = true

// change records that an item is added or removed.
func (d *digesting) change(e statedigest.Entry, step int) {
	if !KeepDigests {
		return
	}
	c := d.changes[e.Item]
	if c == nil {
		c = &digestChange{owner: e.Owner}
		d.changes[e.Item] = c
	}
	c.step += step
}

// AddedTopics returns the increase of the number of topics by the update.
func (s State) AddedTopics() int { return s.digest().topics }

// collected returns the added and removed items.
func (d *digesting) collected() []statedigest.Change {
	changes := make([]statedigest.Change, 0, len(d.changes))
	for item, c := range d.changes {
		if c.step != 0 {
			changes = append(changes, statedigest.Change{Entry: statedigest.Entry{Owner: c.owner, Item: item}, Gone: c.step < 0})
		}
	}
	return changes
}

// Finish implements [txn.Finisher]: it brings the tree up to date.
func (d *digesting) Finish() error {
	changes := d.collected()
	clear(d.changes)
	if len(changes) == 0 {
		return nil
	}
	if d.tx.Distant() {
		if err := statedigest.Expect(d.Get, changes, d.expect); err != nil {
			return err
		}
	}
	return statedigest.Update(d, changes)
}

// errEnough ends the search for nodes.
var errEnough = errors.New("enough nodes are known")

// Expects implements [txn.Expecting]: it returns the nodes that will probably be read, judging by the root.
func (d *digesting) Expects() (all [][]byte) {
	changes := d.collected()
	if len(changes) == 0 {
		return nil
	}
	_ = statedigest.Expect(d.Get, changes, func(paths [][]byte) error { // Finish reports errors
		if all == nil {
			all = d.nodeKeys(paths) // the root
			return nil
		}
		all = append(all, d.nodeKeys(paths)...)
		return errEnough
	})
	return all
}

func (d *digesting) nodeKeys(paths [][]byte) [][]byte {
	all := make([][]byte, len(paths))
	for i, path := range paths {
		all[i] = nodeKey(d.id, path)
	}
	return all
}

func (d *digesting) expect(paths [][]byte) error { return d.tx.Expect(d.nodeKeys(paths), nil) }

// Get implements [statedigest.Rows].
func (d *digesting) Get(path []byte) ([]byte, error) { return d.tx.Get(nodeKey(d.id, path)) }

// Put implements [statedigest.Rows].
func (d *digesting) Put(path, row []byte) error { return d.tx.Put(nodeKey(d.id, path), row) }

// Delete implements [statedigest.Rows].
func (d *digesting) Delete(path []byte) error { return d.tx.Delete(nodeKey(d.id, path)) }

// DigestNode returns the node at a path of the tree of the state digest, with the changes of an update so far. The node
// at the empty path has the digest of the state.
func (s State) DigestNode(path []byte) (*statedigest.Node, error) {
	if s.tx.Changing() {
		if err := errors.Join(s.tx.ExpectEnd(), s.digest().Finish()); err != nil {
			return nil, err
		}
	}
	return statedigest.Read((&digesting{State: s}).Get, path)
}

// Digest returns the digest of the state.
func (s State) Digest() (statedigest.Digest, error) {
	root, err := s.DigestNode(nil)
	if err != nil {
		return statedigest.Digest{}, err
	}
	return root.Digest(), nil
}

// RootDigest is the state digest that the row of a root has.
type RootDigest struct {
	key, row []byte
	err      error
}

// StoredDigest returns the state digest of a source as it is stored.
func StoredDigest(t *txn.Tx, id keys.Source) RootDigest {
	d := RootDigest{key: nodeKey(id, nil)}
	d.row, d.err = t.Get(d.key)
	return d
}

// Follows has the digest follow from the records, where the row of the root is another one.
func (d *RootDigest) Follows(row *agree.Difference) {
	if bytes.Equal(row.Key, d.key) {
		d.row = bytes.Clone(row.Want)
	}
}

// Read returns the text of the digest.
func (d *RootDigest) Read() (string, error) {
	if d.err != nil {
		return "", d.err
	}
	root, err := statedigest.Read(func([]byte) ([]byte, error) { return d.row, nil }, nil)
	if err != nil {
		return "", err
	}
	return root.Digest().String(), nil
}
