// Package statedigest computes the state digest of a source: a digest of the set of its records only. docs/digest.md
// specifies it to the byte.
//
// The records are the items of a hash tree. A change of one record changes one leaf and the inner nodes above it, so
// that the cost depends on the change, not on the number of records. Comparing the trees of two states finds the
// different records.
package statedigest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/fragment"
)

// Version is the version of the digest. It begins the text of each digest.
const Version = "1"

// Digest is the digest of a state, or of the items below a node of its tree.
type Digest [sha256.Size]byte

// String returns the text of the digest: the version, a colon, and hexadecimal digits in lower case.
func (d Digest) String() string { return Version + ":" + hex.EncodeToString(d[:]) }

// Parse reads the text of a digest. ok is false for digests of other versions, and for invalid text.
func Parse(text string) (d Digest, ok bool) {
	digits, ok := strings.CutPrefix(text, Version+":")
	if !ok || len(digits) != 2*len(d) || strings.ToLower(digits) != digits {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(digits))
	return d, err == nil
}

// placeSize is the number of bytes of the owner's hash at the beginning of an item.
const placeSize = 4

// Item represents a record: the place of its owner, and the hash of the record. Items are in the order of their bytes.
type Item [placeSize + sha256.Size]byte

// Kind distinguishes the records of topics from those of associations.
type Kind byte

// The kinds of records.
const (
	Topic       Kind = 't'
	Association Kind = 'a'
)

// Owner returns the TopicSI of the topic to which an association belongs, which must be canonical: that of the instance
// in a type-instance association, else the least of the players.
func Owner(a *fragment.Association) fragment.Ref {
	if _, instance, ok := a.TypeInstance(); ok {
		return instance
	}
	least := a.Roles[0].Player
	for i := range a.Roles {
		least = min(least, a.Roles[i].Player)
	}
	return least
}

// Entry is an item and its owner: the TopicSI of the topic to which the record belongs.
type Entry struct {
	Owner string
	Item  Item
}

// EntryOf returns the entry for a record, of which content is the canonical form without provenance.
func EntryOf(kind Kind, owner string, content []byte) Entry {
	e := Entry{Owner: owner}
	place := sha256.Sum256([]byte(owner))
	copy(e.Item[:], place[:placeSize])
	var buffer [1024]byte // on the stack: entries are made very often
	sum := sha256.Sum256(append(append(buffer[:0], byte(kind)), content...))
	copy(e.Item[placeSize:], sum[:])
	return e
}

// OfTopic returns the entry for a topic, which must be canonical.
func OfTopic(t *fragment.Topic) Entry {
	return EntryOf(Topic, string(t.TopicSI()), fragment.TopicContent(fragment.MarshalTopic(t)))
}

// OfAssociation returns the entry for an association, which must be canonical.
func OfAssociation(a *fragment.Association) Entry {
	return EntryOf(Association, string(Owner(a)), fragment.AssociationContent(fragment.MarshalAssociation(a)))
}

func (e *Entry) compare(other *Entry) int { return bytes.Compare(e.Item[:], other.Item[:]) }

// nibble returns the digit of the item that decides at a depth of the tree.
func (e *Entry) nibble(depth int) byte {
	b := e.Item[depth/2]
	if depth%2 == 0 {
		return b >> 4
	}
	return b & 15
}

// A leaf has so many items at most. An inner node has as many children at most.
const (
	MaxItems = 16
	Fanout   = 16
)

// The first byte of hashed data, and of the rows of nodes.
const (
	leafNode  = 0
	innerNode = 1
)

// Node is a node of the tree: a leaf, or an inner node if Children is not nil.
type Node struct {
	Items    []Entry
	Children *[Fanout]Child
}

// Child is the data of a child in an inner node. A child without items does not exist.
type Child struct {
	Digest Digest
	Items  uint32 // below it
}

// Digest returns the digest of the node.
func (n *Node) Digest() Digest {
	if n.Children == nil {
		var buffer [1 + MaxItems*len(Item{})]byte
		b := append(buffer[:0], leafNode)
		for i := range n.Items {
			b = append(b, n.Items[i].Item[:]...)
		}
		return sha256.Sum256(b)
	}
	var b [1 + Fanout*sha256.Size]byte
	b[0] = innerNode
	for i := range n.Children {
		copy(b[1+i*sha256.Size:], n.Children[i].Digest[:])
	}
	return sha256.Sum256(b[:])
}

// count returns the number of items below the node.
func (n *Node) count() (total int) {
	if n.Children == nil {
		return len(n.Items)
	}
	for i := range n.Children {
		total += int(n.Children[i].Items)
	}
	return total
}

// errRow is the error for an invalid row of a node.
func errRow(path []byte) error {
	return fmt.Errorf("the row of the node %q of the state digest cannot be read: \"check --repair\" makes it again",
		Path(path))
}

// Path returns the text of the path to a node: a hexadecimal digit for each step.
func Path(path []byte) string {
	b := make([]byte, len(path))
	for i, nibble := range path {
		b[i] = "0123456789abcdef"[nibble&15]
	}
	return string(b)
}

// ParsePath reads the text of a path.
func ParsePath(text string) (path []byte, ok bool) {
	for _, c := range []byte(text) {
		nibble := strings.IndexByte("0123456789abcdef", c)
		if nibble < 0 {
			return nil, false
		}
		path = append(path, byte(nibble))
	}
	return path, len(path) <= 2*len(Item{})
}
