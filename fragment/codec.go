package fragment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/tmshare/tmshare/tmdm"
)

// Records are stored as canonical bytes: strings and lists with their lengths before them, content first, then the item
// identifiers from documents. Item identifiers are provenance: records with the same content are equal, whatever their
// identifiers. The layout is part of the on-disk format.

// ErrCorrupt is the error for stored bytes that are no valid record.
var ErrCorrupt = errors.New("corrupt record")

var base32lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Key returns the short name under which a publisher's URLs speak of the topic with the given TopicSI: 128 bits of its
// SHA-256.
func Key(topicSI Ref) string { return KeyHash(topicSI).String() }

// Hash is the 128 bits that a [Key] writes.
type Hash [16]byte

// KeyHash returns the hash whose text is the key of a topic.
func KeyHash(topicSI Ref) Hash {
	sum := sha256.Sum256([]byte(topicSI))
	return Hash(sum[:len(Hash{})])
}

// String returns the key.
func (h Hash) String() string { return base32lower.EncodeToString(h[:]) }

// ParseKey is the inverse of [Hash.String]. ok reports whether the text is a valid key.
func ParseKey(key string) (h Hash, ok bool) {
	b, err := base32lower.DecodeString(key)
	if err != nil || len(b) != len(h) {
		return h, false
	}
	h = Hash(b)
	return h, h.String() == key // the last character has bits to spare, and line breaks are passed over
}

// AssociationKey identifies an association: the SHA-256 of type, scope and roles, the properties that determine
// equality by ISO 13250-2 §5.7.
type AssociationKey [sha256.Size]byte

// Key returns the key of a, which must be canonical.
func (a *Association) Key() AssociationKey {
	var buffer [512]byte // on the stack: keys are made very often
	b := appendText(binary.AppendUvarint(buffer[:0], 1), string(a.Type))
	b = binary.AppendUvarint(b, uint64(len(a.Scope)))
	for _, theme := range a.Scope {
		b = appendText(b, string(theme))
	}
	for i := range a.Roles {
		b = appendText(appendText(b, string(a.Roles[i].Type)), string(a.Roles[i].Player))
	}
	return sha256.Sum256(b)
}

// MarshalTopic returns the stored form of t, which must be canonical.
func MarshalTopic(t *Topic) []byte {
	scratch := scratches.Get().(*encoder)
	defer scratch.release()
	*scratch = appendTopicContent(*scratch, t)
	return appendTopic(make(encoder, 0, len(*scratch)+16), t, *scratch)
}

// scratches are kept for reuse: stored forms and claims are made very often.
var scratches = sync.Pool{New: func() any { return new(encoder) }}

func (e *encoder) release() {
	if *e = (*e)[:0]; cap(*e) <= 64<<10 {
		scratches.Put(e)
	}
}

// appendTopic appends the stored form of t. content is the content of t.
func appendTopic(e encoder, t *Topic, content encoder) encoder {
	flags := byte(0)
	if t.Provisional {
		flags = 1
	}
	e = append(e, flags)
	e.bytes(content)
	for i := range t.Names {
		e.locators(t.Names[i].ItemIdentifiers)
		for j := range t.Names[i].Variants {
			e.locators(t.Names[i].Variants[j].ItemIdentifiers)
		}
	}
	for i := range t.Occurrences {
		e.locators(t.Occurrences[i].ItemIdentifiers)
	}
	return e
}

// TopicContent returns the content in the stored form of a topic: all but the item identifiers that
// documents gave, in canonical form. It is nil where the bytes are no such form.
func TopicContent(record []byte) []byte {
	if len(record) == 0 {
		return nil
	}
	return AssociationContent(record[1:])
}

// AssociationContent is TopicContent of an association.
func AssociationContent(record []byte) []byte {
	n, size := binary.Uvarint(record)
	if size <= 0 || n > uint64(len(record)-size) {
		return nil
	}
	return record[size : size+int(n)]
}

// SameTopic reports whether a and b, both canonical, have the same content.
func SameTopic(a, b *Topic) bool { return bytes.Equal(topicContent(a), topicContent(b)) }

// SameAssociation reports whether a and b, both canonical, have the same content.
func SameAssociation(a, b *Association) bool {
	return bytes.Equal(associationContent(a), associationContent(b))
}

func topicContent(t *Topic) encoder { return appendTopicContent(make(encoder, 0, 256), t) }

func appendTopicContent(e encoder, t *Topic) encoder {
	e.locators(t.SubjectIdentifiers)
	e.locators(t.SubjectLocators)
	e.count(len(t.Names))
	for i := range t.Names {
		n := &t.Names[i]
		e.text(n.Value)
		e.text(string(n.Type))
		e.locators(n.Scope)
		e.text(string(n.Reifier))
		e.count(len(n.Variants))
		for j := range n.Variants {
			v := &n.Variants[j]
			e.text(v.Value)
			e.text(v.Datatype)
			e.locators(v.Scope)
			e.text(string(v.Reifier))
		}
	}
	e.count(len(t.Occurrences))
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		e.text(o.Value)
		e.text(o.Datatype)
		e.text(string(o.Type))
		e.locators(o.Scope)
		e.text(string(o.Reifier))
	}
	return e
}

// UnmarshalTopic reads the stored form of a topic.
func UnmarshalTopic(b []byte) (*Topic, error) { return new(Decoder).topic(b, &Topic{}) }

// MarshalAssociation returns the stored form of a, which must be canonical.
func MarshalAssociation(a *Association) []byte {
	scratch := scratches.Get().(*encoder)
	defer scratch.release()
	*scratch = appendAssociationContent(*scratch, a)
	return appendAssociation(make(encoder, 0, len(*scratch)+8), a, *scratch)
}

// appendAssociation appends the stored form of a. content is the content of a.
func appendAssociation(e encoder, a *Association, content encoder) encoder {
	e.bytes(content)
	e.locators(a.ItemIdentifiers)
	for i := range a.Roles {
		e.locators(a.Roles[i].ItemIdentifiers)
	}
	return e
}

func associationContent(a *Association) encoder {
	return appendAssociationContent(make(encoder, 0, 256), a)
}

func appendAssociationContent(e encoder, a *Association) encoder {
	e.text(string(a.Type))
	e.locators(a.Scope)
	e.text(string(a.Reifier))
	e.count(len(a.Roles))
	for i := range a.Roles {
		r := &a.Roles[i]
		e.text(string(r.Type))
		e.text(string(r.Player))
		e.text(string(r.Reifier))
	}
	return e
}

// UnmarshalAssociation reads the stored form of an association.
func UnmarshalAssociation(b []byte) (*Association, error) {
	return new(Decoder).association(b, &Association{})
}

type encoder []byte

func (e *encoder) count(n int) { *e = binary.AppendUvarint(*e, uint64(n)) }

func (e *encoder) text(s string) { *e = appendText(*e, s) }

func (e *encoder) bytes(b []byte) {
	e.count(len(b))
	*e = append(*e, b...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (e *encoder) locators(list []tmdm.Locator) {
	e.count(len(list))
	for _, l := range list {
		e.text(string(l))
	}
}
