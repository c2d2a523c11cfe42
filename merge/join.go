package merge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Part is one source of a merged view.
type Part struct {
	Name   string // for display
	SP     string // its source locator prefix
	Source fragment.Source

	// Claims gives each statement an item identifier that begins with SP, so that the view shows its sources.
	Claims bool

	// Published states that the source is the state of a publisher: each of its references is the TopicSI of one of its
	// topics, and it is consistent. States of subscribers may not be. Only a View uses it.
	Published bool
}

// Join returns the merged view of the sources as a normalised topic map: it merges topics that share identifiers, equal
// statements, and the reifiers of equal statements. A topic that reifies different statements in several sources keeps
// the first, by prefix and key; Join returns the others as conflicts. An item identifier that two unequal statements
// claim stays with the first. If ctx ends first, the error is its cause.
func Join(ctx context.Context, parts ...Part) (tm *tmdm.TopicMap, conflicts []*tmdm.ReifierError, err error) {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.SP, b.SP) })
	j := joiner{tm: tmdm.New()}
	for _, p := range parts { // all identities first: statements then meet the final topics
		if err := j.identities(p.Source); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range parts {
		if err := j.statements(p); err != nil {
			return nil, nil, err
		}
	}
	conflicts, err = j.reify(ctx)
	return j.tm, conflicts, err
}

type joiner struct {
	tm       *tmdm.TopicMap
	reifiers []reification
}

type reification struct {
	construct tmdm.Reifiable
	reifier   *tmdm.Topic
	key       fragment.AssociationKey // of the association, where it is in one
}

func (j *joiner) topic(ref fragment.Ref) *tmdm.Topic { return j.tm.CreateTopicBySubjectIdentifier(ref) }

func (j *joiner) topics(refs []fragment.Ref) []*tmdm.Topic {
	out := make([]*tmdm.Topic, len(refs))
	for i, ref := range refs {
		out[i] = j.topic(ref)
	}
	return out
}

func (j *joiner) identities(src fragment.Source) error {
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		j.identity(&t.Identity)
	}
	return nil
}

func (j *joiner) identity(id *fragment.Identity) {
	topic := j.topic(id.TopicSI())
	for _, si := range id.SubjectIdentifiers[1:] {
		topic = j.identify(topic, topic.AddSubjectIdentifier(si))
	}
	for _, sl := range id.SubjectLocators {
		topic = j.identify(topic, topic.AddSubjectLocator(sl))
	}
}

// identify merges topic into the one that already has the identifier. It cannot fail, because nothing is reified yet.
func (j *joiner) identify(topic *tmdm.Topic, err error) *tmdm.Topic {
	var taken *tmdm.IdentityError
	if !errors.As(err, &taken) {
		return topic
	}
	existing := taken.Existing.(*tmdm.Topic)
	_ = existing.Merge(topic)
	return existing
}

func (j *joiner) statements(p Part) error {
	for t, err := range p.Source.Topics() {
		if err != nil {
			return err
		}
		j.topicStatements(p, t)
	}
	inTopics := len(j.reifiers)
	for a, err := range p.Source.Associations() {
		if err != nil {
			return err
		}
		j.association(p, a)
	}
	j.orderReifiers(inTopics)
	return nil
}

// orderReifiers puts the reifiers of a source's associations, those from the
// given one on, in the order of keys: sources give topics in order, but
// associations as they like.
func (j *joiner) orderReifiers(from int) {
	slices.SortStableFunc(j.reifiers[from:], func(a, b reification) int { return bytes.Compare(a.key[:], b.key[:]) })
}

func (j *joiner) association(p Part, a *fragment.Association) {
	before := len(j.reifiers)
	assoc := j.tm.CreateAssociation(j.topic(a.Type), j.topics(a.Scope)...)
	for i := range a.Roles {
		r := &a.Roles[i]
		j.finish(assoc.AddRole(j.topic(r.Type), j.topic(r.Player)), r.Reifier, r.ItemIdentifiers)
	}
	j.finish(assoc, a.Reifier, a.ItemIdentifiers)
	if p.Claims {
		j.claim(assoc, fragment.AssociationClaim(p.SP, a))
	}
	for i := range j.reifiers[before:] {
		j.reifiers[before+i].key = a.Key()
	}
}

func (j *joiner) topicStatements(p Part, t *fragment.Topic) {
	ref := t.TopicSI()
	topic := j.topic(ref)
	for i := range t.Names {
		n := &t.Names[i]
		name := topic.AddName(n.Value, j.topic(n.Type), j.topics(n.Scope)...)
		j.finish(name, n.Reifier, n.ItemIdentifiers)
		if p.Claims {
			j.claim(name, fragment.NameClaim(p.SP, ref, n))
		}
		for k := range n.Variants {
			v := &n.Variants[k]
			variant := name.AddVariant(v.Value, v.Datatype, j.topics(v.Scope)...)
			j.finish(variant, v.Reifier, v.ItemIdentifiers)
			if p.Claims {
				j.claim(variant, fragment.VariantClaim(p.SP, ref, n, v))
			}
		}
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		occurrence := topic.AddOccurrence(o.Value, o.Datatype, j.topic(o.Type), j.topics(o.Scope)...)
		j.finish(occurrence, o.Reifier, o.ItemIdentifiers)
		if p.Claims {
			j.claim(occurrence, fragment.OccurrenceClaim(p.SP, ref, o))
		}
	}
}

func (j *joiner) finish(c tmdm.Reifiable, reifier fragment.Ref, given []tmdm.Locator) {
	for _, l := range given {
		_ = tmdm.AddItemIdentifier(c, l) // taken: it stays with the first
	}
	if reifier != "" {
		j.reifiers = append(j.reifiers, reification{construct: c, reifier: j.topic(reifier)})
	}
}

// claim gives the derived identifier to a statement without an identifier of its document, or whose identifiers went to
// other statements. If it is taken, an equal statement of the source has it, and the two are merged.
func (j *joiner) claim(c tmdm.Construct, derived tmdm.Locator) {
	if len(c.ItemIdentifiers()) == 0 {
		_ = tmdm.AddItemIdentifier(c, derived)
	}
}

// reify sets the reifiers after all statements exist, normalises the map, and returns the conflicts. Whether a topic
// may reify a second statement depends on whether the two are equal.
func (j *joiner) reify(ctx context.Context) (conflicts []*tmdm.ReifierError, err error) {
	for _, r := range j.reifiers {
		var conflict *tmdm.ReifierError
		if errors.As(tmdm.SetReifier(r.construct, r.reifier), &conflict) {
			conflicts = append(conflicts, conflict)
		}
	}
	var unjoined tmdm.Conflicts
	if err := j.tm.Normalize(ctx); err != nil && !errors.As(err, &unjoined) {
		return nil, err
	}
	// Statements that looked unequal may have become one by the joining of
	// other reifiers.
	conflicts = slices.DeleteFunc(conflicts, func(c *tmdm.ReifierError) bool {
		return tmdm.Equal(c.Construct, c.Existing)
	})
	return append(conflicts, unjoined...), nil
}
