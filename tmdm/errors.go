package tmdm

import (
	"errors"
	"fmt"
)

// Errors for topics that cannot be part of a statement. Methods with an error result return one of these; all others
// panic with it before any change, because such a topic is a mistake of the program, not of its input. A nil type of a
// name is the default name type, and a nil reifier is none.
var (
	ErrOtherMap = errors.New("the topic belongs to another topic map")
	ErrRemoved  = errors.New("the topic was removed")
	ErrNoTopic  = errors.New("a topic is missing")
)

// usable returns why t cannot be part of a statement of tm, or nil.
func (tm *TopicMap) usable(t *Topic) error {
	switch {
	case t == nil:
		return ErrNoTopic
	case t.tm != tm:
		return ErrOtherMap
	case t.removed:
		return ErrRemoved
	}
	return nil
}

// mustUse returns the topic that t was merged into, or t, and panics if it is not usable.
func (tm *TopicMap) mustUse(t *Topic) *Topic {
	t = t.live()
	if err := tm.usable(t); err != nil {
		panic(err)
	}
	return t
}

// IdentityError is the error for a locator that would identify Construct, but already identifies Existing (ISO 13250-2
// §5.1, General; §5.3.5, Properties). Construct is nil if it would have been a new topic. Nothing was changed. If both
// are topics, the caller can merge them.
type IdentityError struct {
	Construct Construct
	Existing  Construct
	Locator   Locator
}

func (e *IdentityError) Error() string {
	construct := "a new topic"
	if e.Construct != nil {
		construct = Describe(e.Construct)
	}
	return fmt.Sprintf("%s cannot have the identifier %s: it identifies %s", construct, e.Locator, Describe(e.Existing))
}

// ReifierError is the error for a Topic that cannot reify Construct because it reifies Existing, an unequal item (ISO
// 13250-2 §5.3.4, Reification: a topic reifies at most one information item). Nothing was changed.
type ReifierError struct {
	Topic     *Topic
	Construct Reifiable
	Existing  Reifiable
}

func (e *ReifierError) Error() string {
	return fmt.Sprintf("%s cannot reify %s: it reifies %s", Describe(e.Topic), Describe(e.Construct), Describe(e.Existing))
}

// Conflicts are the reifiers that [TopicMap.Normalize] could not merge.
type Conflicts []*ReifierError

func (c Conflicts) Error() string {
	if len(c) == 1 {
		return c[0].Error()
	}
	return fmt.Sprintf("%s, and %d more such conflicts", c[0], len(c)-1)
}

// InUseError is the error for removing Topic while User refers to it.
type InUseError struct {
	Topic *Topic
	User  Construct
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s cannot be removed: %s refers to it", Describe(e.Topic), Describe(e.User))
}

// Describe describes c for an error message: its kind and its identity.
func Describe(c Construct) string {
	switch c := c.(type) {
	case *TopicMap:
		return "the topic map"
	case *Topic:
		for _, set := range [][]Locator{c.SubjectIdentifiers(), c.SubjectLocators(), c.ItemIdentifiers()} {
			if len(set) > 0 {
				return fmt.Sprintf("topic %s", set[0])
			}
		}
		return "a topic without identifiers"
	case *TopicName:
		return fmt.Sprintf("name %q of %s", c.Value(), Describe(c.Topic()))
	case *Variant:
		return fmt.Sprintf("variant %q of %s", c.Value(), Describe(c.Name()))
	case *Occurrence:
		return fmt.Sprintf("occurrence %q of %s", c.Value(), Describe(c.Topic()))
	case *Association:
		return fmt.Sprintf("an association of type %s", Describe(c.Type()))
	case *AssociationRole:
		return fmt.Sprintf("the role of %s in %s", Describe(c.Player()), Describe(c.Association()))
	default:
		return "nothing"
	}
}
