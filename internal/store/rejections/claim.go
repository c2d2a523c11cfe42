// Package rejections hides single claims of sources in the merged view of a node. A rejection is a separate row: the
// source's records, and their proofs, are unchanged.
//
// A claim is identified by the properties that determine the equality of its statement, in the source's own references.
// So a rejection also applies to later versions and generations of the source. It has no effect while the source does
// not state the claim.
package rejections

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Kind is the kind of a claim.
type Kind string

// The kinds of claims.
const (
	Name        Kind = "name" // with its variants
	Variant     Kind = "variant"
	Occurrence  Kind = "occurrence"
	Association Kind = "association"
	Identifier  Kind = "identifier" // that a subject identifier is of the same topic as the TopicSI
	Locator     Kind = "locator"    // that a topic has a subject locator
)

// Claim is something that one source asserts. References are the source's own.
type Claim struct {
	Kind     Kind           `json:"kind"`
	Topic    fragment.Ref   `json:"topic,omitempty"` // that it is about; none of an association
	Value    string         `json:"value,omitempty"` // of a name, variant or occurrence; the identifier or locator
	Datatype string         `json:"datatype,omitempty"`
	Type     fragment.Ref   `json:"type,omitempty"`
	Scope    []fragment.Ref `json:"scope,omitempty"`
	Of       *Claim         `json:"of,omitempty"` // the name that a variant is of
	Roles    []Role         `json:"roles,omitempty"`
}

// Role is a role of an association.
type Role struct {
	Type   fragment.Ref `json:"type"`
	Player fragment.Ref `json:"player"`
}

// OfName returns the claim of a name of a topic.
func OfName(topic fragment.Ref, n *fragment.Name) Claim {
	return Claim{Kind: Name, Topic: topic, Value: n.Value, Type: n.Type, Scope: n.Scope}
}

// OfVariant returns the claim of a variant of a name of a topic.
func OfVariant(topic fragment.Ref, n *fragment.Name, v *fragment.Variant) Claim {
	claim := OfName(topic, n)
	return Claim{Kind: Variant, Topic: topic, Value: v.Value, Datatype: v.Datatype, Scope: v.Scope, Of: &claim}
}

// OfOccurrence returns the claim of an occurrence of a topic.
func OfOccurrence(topic fragment.Ref, o *fragment.Occurrence) Claim {
	return Claim{Kind: Occurrence, Topic: topic, Value: o.Value, Datatype: o.Datatype, Type: o.Type, Scope: o.Scope}
}

// OfAssociation returns the claim of an association.
func OfAssociation(a *fragment.Association) Claim {
	c := Claim{Kind: Association, Type: a.Type, Scope: a.Scope}
	for i := range a.Roles {
		c.Roles = append(c.Roles, Role{a.Roles[i].Type, a.Roles[i].Player})
	}
	return c
}

// OfIdentifier returns the claim that the topic with a TopicSI has another subject identifier.
func OfIdentifier(topic fragment.Ref, si tmdm.Locator) Claim {
	return Claim{Kind: Identifier, Topic: topic, Value: string(si)}
}

// OfLocator returns the claim that a topic has a subject locator.
func OfLocator(topic fragment.Ref, sl tmdm.Locator) Claim {
	return Claim{Kind: Locator, Topic: topic, Value: string(sl)}
}

// Key returns the identity of the claim within its source. The claim that two identifiers are of one topic has the same
// key whichever of them is the TopicSI.
func (c *Claim) Key() string {
	switch c.Kind {
	case Name:
		return string(fragment.NameClaim("", c.Topic, c.name()))
	case Variant:
		return string(fragment.VariantClaim("", c.Topic, c.Of.name(),
			&fragment.Variant{Value: c.Value, Datatype: c.Datatype, Scope: c.Scope}))
	case Occurrence:
		return string(fragment.OccurrenceClaim("", c.Topic,
			&fragment.Occurrence{Value: c.Value, Datatype: c.Datatype, Type: c.Type, Scope: c.Scope}))
	case Association:
		return string(fragment.AssociationClaim("", c.Association()))
	case Identifier:
		both := []string{string(c.Topic), c.Value}
		slices.Sort(both)
		return hashed(c.Kind, both[0], both[1])
	}
	return hashed(c.Kind, string(c.Topic), c.Value)
}

// IsValue reports whether a value is the one that a person gave: unchanged, or as printed, with escapes for invisible
// characters, such as no-break spaces.
func IsValue(value, given string) bool {
	printed := strconv.Quote(value)
	return value == given || given == printed || given == printed[1:len(printed)-1]
}

// hashed returns a key of locators, which have no control characters.
func hashed(k Kind, locators ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(locators, "\x00")))
	return string(k) + "-" + hex.EncodeToString(sum[:16])
}

func (c *Claim) name() *fragment.Name {
	return &fragment.Name{Value: c.Value, Type: c.Type, Scope: c.Scope}
}

// Association returns the association of a claim of one, without reifiers.
func (c *Claim) Association() *fragment.Association {
	a := fragment.NewAssociation(len(c.Roles))
	a.Type, a.Scope = c.Type, c.Scope
	for i, r := range c.Roles {
		a.Roles[i].Type, a.Roles[i].Player = r.Type, r.Player
	}
	return a
}

// Topics returns the topics that the claim is about, by the source's references.
func (c *Claim) Topics() []fragment.Ref {
	switch c.Kind {
	case Association:
		return c.Association().Players()
	case Identifier:
		return []fragment.Ref{c.Topic, fragment.Ref(c.Value)}
	}
	return []fragment.Ref{c.Topic}
}

// StatedBy reports whether a source asserts the claim.
func (c *Claim) StatedBy(src fragment.Source) (bool, error) {
	if c.Kind == Association {
		return c.associationStatedBy(src)
	}
	t, err := src.Topic(c.Topic)
	if t == nil || err != nil {
		return false, err
	}
	key := c.Key()
	for claim := range OfTopic(t) {
		if claim.Kind == c.Kind && claim.Key() == key {
			return true, nil
		}
	}
	return false, nil
}

// directory may be implemented by a source that finds an association by its key.
type directory interface {
	HasAssociation(a *fragment.Association) (bool, error)
}

func (c *Claim) associationStatedBy(src fragment.Source) (bool, error) {
	a := c.Association()
	if d, ok := src.(directory); ok {
		return d.HasAssociation(a)
	}
	player := a.Players()[0]
	for _, part := range fragment.Parts {
		for other, err := range src.AssociationsOf(player, part) {
			if err != nil {
				return false, err
			}
			if other.Key() == a.Key() {
				return true, nil
			}
		}
	}
	return false, nil
}

// OfTopic iterates over the claims of a topic's record.
func OfTopic(t *fragment.Topic) iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		ref := t.TopicSI()
		for _, si := range t.SubjectIdentifiers[1:] {
			if !yield(OfIdentifier(ref, si)) {
				return
			}
		}
		for _, sl := range t.SubjectLocators {
			if !yield(OfLocator(ref, sl)) {
				return
			}
		}
		for i := range t.Names {
			n := &t.Names[i]
			if !yield(OfName(ref, n)) {
				return
			}
			for j := range n.Variants {
				if !yield(OfVariant(ref, n, &n.Variants[j])) {
					return
				}
			}
		}
		for i := range t.Occurrences {
			if !yield(OfOccurrence(ref, &t.Occurrences[i])) {
				return
			}
		}
	}
}

// String describes the claim for people.
func (c *Claim) String() string {
	scope := ""
	for _, theme := range c.Scope {
		scope += " @ " + theme.String()
	}
	switch c.Kind {
	case Name:
		typ := ""
		if c.Type != tmdm.PSIDefaultNameType {
			typ = " : " + c.Type.String()
		}
		return fmt.Sprintf("name %q%s%s", short(c.Value), typ, scope)
	case Variant:
		return fmt.Sprintf("variant %q%s of the %s", short(c.Value), scope, c.Of)
	case Occurrence:
		return fmt.Sprintf("occurrence %q : %s%s", short(c.Value), c.Type, scope)
	case Association:
		if class, instance, ok := c.Association().TypeInstance(); ok {
			return fmt.Sprintf("type %s of %s", class, instance)
		}
		roles := make([]string, len(c.Roles))
		for i, r := range c.Roles {
			roles[i] = r.Type.String() + "=" + r.Player.String()
		}
		return fmt.Sprintf("association %s%s (%s)", c.Type, scope, strings.Join(roles, ", "))
	}
	return fmt.Sprintf("%s %s of %s", c.Kind, tmdm.Locator(c.Value), c.Topic)
}

// maxShown is the number of characters of a value that are shown to people.
const maxShown = 200

func short(value string) string {
	if runes := []rune(value); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return value
}
