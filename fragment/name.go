package fragment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// ValidatePrefix checks a source locator prefix: it must be an absolute IRI that ends in "/" or "#", so that all IRIs
// with the prefix are below it.
func ValidatePrefix(sp string) error {
	normal, err := iri.Normalize(sp)
	switch {
	case err != nil:
		return fmt.Errorf("source locator prefix %q is not an absolute IRI", sp)
	case len(sp) > MaxLocator/4:
		return fmt.Errorf("source locator prefix %.80q… is longer than %d bytes", sp, MaxLocator/4)
	case normal != sp:
		return fmt.Errorf("source locator prefix %q is not in normal form: write %q", sp, normal)
	case !strings.HasSuffix(sp, "/") && !strings.HasSuffix(sp, "#"):
		return fmt.Errorf("source locator prefix %q must end in \"/\" or \"#\"", sp)
	case strings.Contains(sp[:len(sp)-1], "#"):
		return fmt.Errorf(
			"source locator prefix %q has a \"#\" before its end, but ids of a document come directly after the \"#\"", sp)
	}
	return nil
}

// NameTopics prepares a map for publication under the prefix sp, which must have been its base when it was read; see
// [ValidatePrefix]. It adds a subject identifier to each topic of tm that has none, and chooses each topic's TopicSI.
// prior is the published state (nil for none): topics keep their assigned identifiers, and a TopicSI changes only if
// its topic has lost it.
//
// The assigned identifier is sp + "topic/" + the topic's id in the document. Without an id, or if another topic has
// that subject identifier, it is made from another locator of the topic. If ctx ends first, the error is its cause.
func NameTopics(ctx context.Context, tm *tmdm.TopicMap, sp string, prior Source) (*Map, error) {
	if err := ValidatePrefix(sp); err != nil {
		return nil, err
	}
	known, err := publishedIn(tm, sp, prior)
	if err != nil {
		return nil, err
	}
	if err := assignIdentifiers(ctx, tm, sp, prior, known); err != nil {
		return nil, err
	}
	return chooseTopicSIs(ctx, tm, sp, known)
}

// assignIdentifiers gives each topic of tm without a subject identifier one.
func assignIdentifiers(ctx context.Context, tm *tmdm.TopicMap, sp string, prior Source, known published) error {
	n := namer{tm: tm, sp: sp, prior: prior, published: known}
	// Kept identifiers precede new ones, so that the order of the topics does not matter.
	passes := []func(*tmdm.Topic) error{n.assign}
	if prior != nil {
		passes = []func(*tmdm.Topic) error{n.keep, n.inherit, n.assign}
	}
	for _, pass := range passes {
		for t := range tm.Topics() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := pass(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// chooseTopicSIs shows tm, in which each topic has a subject identifier, with the TopicSIs that its topics get.
func chooseTopicSIs(ctx context.Context, tm *tmdm.TopicMap, sp string, known published) (*Map, error) {
	for a := range tm.Associations() {
		if len(a.Roles()) == 0 {
			return nil, documentError(
				"%s has no roles (ISO 13250-2 §5.7 asks for one at least): it belongs to no topic, so no fragment could carry it",
				tmdm.Describe(a))
		}
	}
	n := namer{tm: tm, sp: sp, published: known}
	others := map[*tmdm.Topic]Ref{}
	for t := range tm.Topics() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		ref, err := n.choose(t)
		if err != nil {
			return nil, err
		}
		if ref != t.SubjectIdentifiers()[0] {
			others[t] = ref
		}
	}
	return newMap(tm, sp, others)
}

type namer struct {
	tm    *tmdm.TopicMap
	sp    string
	prior Source
	published
}

// keep adds the identifiers that were assigned to a topic for one of its locators.
func (n *namer) keep(t *tmdm.Topic) error {
	for _, l := range t.ItemIdentifiers() {
		if id, ok := n.inDocument(l); ok {
			if others, err := n.keepOne(t, n.assigned(id)); !others || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if _, err := n.keepOne(t, n.made(l)); err != nil {
			return err
		}
	}
	for _, l := range t.SubjectLocators() {
		if _, err := n.keepOne(t, n.made(l)); err != nil {
			return err
		}
	}
	return nil
}

// keepOne adds a subject identifier that t may have been assigned, if it is published. It reports whether it is another
// topic's.
func (n *namer) keepOne(t *tmdm.Topic, si tmdm.Locator) (others bool, err error) {
	if owner := n.tm.TopicBySubjectIdentifier(si); owner != nil {
		return owner != t, nil
	}
	known, err := n.isAssigned(si)
	if !known || err != nil {
		return false, err
	}
	return false, n.add(t, si)
}

// inherit adds the identifiers that were assigned to the topic with one of t's subject locators.
func (n *namer) inherit(t *tmdm.Topic) error {
	for _, sl := range t.SubjectLocators() {
		was, err := n.prior.TopicBySubjectLocator(sl)
		if err != nil {
			return err
		}
		if was == nil {
			continue
		}
		for _, si := range was.SubjectIdentifiers {
			if strings.HasPrefix(string(si), n.sp+"topic/") {
				if err := n.add(t, si); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// assign gives a topic that has no subject identifier one.
func (n *namer) assign(t *tmdm.Topic) error {
	if len(t.SubjectIdentifiers()) > 0 {
		return nil
	}
	var best, others []tmdm.Locator
	for _, l := range slices.Sorted(slices.Values(t.ItemIdentifiers())) {
		candidates := n.forItem(l)
		best = append(best, candidates[:len(candidates)-1]...)
		others = append(others, candidates[len(candidates)-1])
	}
	for _, l := range slices.Sorted(slices.Values(t.SubjectLocators())) {
		others = append(others, n.made(l))
	}
	for _, si := range append(best, others...) {
		if err := n.add(t, si); err != nil || len(t.SubjectIdentifiers()) > 0 {
			return err
		}
	}
	for len(t.SubjectIdentifiers()) == 0 { // it has no other locator
		if err := n.add(t, tmdm.Locator(n.sp+"topic/"+uuid.NewString())); err != nil {
			return err
		}
	}
	return nil
}

// forItem returns the subject identifiers that a topic can be assigned for an item identifier, best first.
func (n *namer) forItem(l tmdm.Locator) []tmdm.Locator {
	if id, ok := n.inDocument(l); ok {
		return []tmdm.Locator{n.assigned(id), n.made(l)}
	}
	return []tmdm.Locator{n.made(l)}
}

// inDocument returns the id in the document that an item identifier is made of.
func (n *namer) inDocument(l tmdm.Locator) (id string, ok bool) {
	id, ok = strings.CutPrefix(string(l), strings.TrimSuffix(n.sp, "#"))
	if ok {
		id, ok = strings.CutPrefix(id, "#")
	}
	return id, ok && id != ""
}

// assigned returns the subject identifier that a topic is assigned for its id in the document.
func (n *namer) assigned(id string) tmdm.Locator { return tmdm.Locator(n.sp + "topic/" + id) }

// made makes a subject identifier from another locator. It is the same in every version of the map.
func (n *namer) made(l tmdm.Locator) tmdm.Locator {
	return n.assigned(AssignedName(l))
}

// AssignedName returns the name that [NameTopics] makes of a locator of a topic, where the topic has no id.
func AssignedName(l tmdm.Locator) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(l)).String() }

// add adds si to t unless another topic has it.
func (n *namer) add(t *tmdm.Topic, si tmdm.Locator) error {
	err := t.AddSubjectIdentifier(si)
	var taken *tmdm.IdentityError
	if errors.As(err, &taken) {
		return nil
	}
	return err
}

// choose returns the TopicSI of t: the published one, or the least if published topics were merged; for a new topic its
// first identifier. Subject identifiers of the standard take precedence, because the code compares records by them.
func (n *namer) choose(t *tmdm.Topic) (Ref, error) {
	if sis := t.SubjectIdentifiers(); len(sis) == 1 {
		return sis[0], nil
	}
	var was []Ref
	for _, si := range t.SubjectIdentifiers() {
		is, err := n.isTopicSI(si)
		if err != nil {
			return "", err
		}
		if is {
			was = append(was, si)
		}
	}
	choices := was
	if len(choices) == 0 {
		choices = t.SubjectIdentifiers()
	}
	for _, psi := range []Ref{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance} {
		if slices.Contains(choices, psi) {
			return psi, nil
		}
	}
	if len(was) > 0 {
		return slices.Min(was), nil
	}
	return choices[0], nil
}
