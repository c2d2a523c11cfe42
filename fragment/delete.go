package fragment

import (
	"fmt"
	"slices"
	"strings"
)

// InUseError is the error for deleting a topic that types, scopes or reifies something.
type InUseError struct {
	Topic Ref
	Users []string // some of its uses, in words
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("topic %s is in use: %s", e.Topic, strings.Join(e.Users, "; "))
}

// maxUsers is the number of uses that an InUseError names.
const maxUsers = 20

// Delete returns the change that deletes the topic with the TopicSI ref and its associations. If the topic types,
// scopes or reifies something else, the error is an [*InUseError]. mentions is the number of references to ref in prior
// other than as a player; only if it is inconclusive, Delete reads the whole state.
func Delete(prior Source, ref Ref, mentions int) (*Change, error) {
	topic, err := prior.Topic(ref)
	if err != nil {
		return nil, err
	}
	if topic == nil {
		return nil, fmt.Errorf("no topic has the subject identifier %s", ref)
	}
	if topic.TopicSI() != ref { // mentions counts another reference then
		return nil, fmt.Errorf("%s is an identifier of the topic %s, not its TopicSI", ref, topic.TopicSI())
	}
	c := &Change{DeleteTopics: []Ref{ref}, Deleted: 1}
	own := 0
	count := func(r Ref) {
		if r == ref {
			own++
		}
	}
	topic.Mentions(count)
	players := map[Ref]bool{}
	for _, part := range Parts {
		for a, err := range prior.AssociationsOf(ref, part) {
			if err != nil {
				return nil, err
			}
			if part == AsType {
				return nil, inUse(prior, ref)
			}
			a.Mentions(count)
			c.DeleteAssociations = append(c.DeleteAssociations, a)
			for _, p := range a.Players() {
				if p != ref && a.Part(p) != AsType {
					players[p] = true
				}
			}
		}
	}
	if mentions > own {
		return nil, inUse(prior, ref)
	}
	c.Entries = append(c.Entries, Entry{TopicSI: ref, Deleted: true, Title: topic.Title(), Tombstone: topic.Identity})
	for p := range players {
		t, err := prior.Topic(p)
		if err != nil {
			return nil, err
		}
		if t != nil {
			c.Entries = append(c.Entries, Entry{TopicSI: p, Topic: p, Title: t.Title()})
			c.Updated++
		}
	}
	slices.SortFunc(c.Entries, func(a, b Entry) int { return strings.Compare(string(a.TopicSI), string(b.TopicSI)) })
	return c, nil
}

// inUse returns an error if statements besides the topic's own use the topic.
func inUse(src Source, ref Ref) error {
	e := &InUseError{Topic: ref}
	use := func(mentions func(func(Ref)), words func() string) {
		used := false
		mentions(func(r Ref) { used = used || r == ref })
		if used && len(e.Users) < maxUsers {
			e.Users = append(e.Users, words())
		}
	}
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		if t.TopicSI() != ref {
			use(t.Mentions, func() string { return fmt.Sprintf("statements of %q", t.Title()) })
		}
		if len(e.Users) == maxUsers {
			return e
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return err
		}
		class, instance, typed := a.TypeInstance()
		switch {
		case typed && class == ref && instance != ref:
			e.Users = append(e.Users, fmt.Sprintf("its instance %s", instance))
		case !slices.Contains(a.Players(), ref):
			use(a.Mentions, func() string { return describePlayers(a) })
		}
		if len(e.Users) >= maxUsers {
			return e
		}
	}
	return e
}

func describePlayers(a *Association) string {
	players := a.Players()
	named := players[:min(len(players), 5)]
	text := "an association of " + strings.Join(texts(named), ", ")
	if more := len(players) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func texts(refs []Ref) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = r.String()
	}
	return out
}
