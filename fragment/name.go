package fragment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
)

// ValidatePrefix checks a source locator prefix: an absolute IRI that ends in
// "/" or "#", so that what begins with it is below it.
func ValidatePrefix(sp string) error {
	normal, err := iri.Normalize(sp)
	switch {
	case err != nil:
		return fmt.Errorf("source locator prefix %q is not an absolute IRI", sp)
	case normal != sp:
		return fmt.Errorf("source locator prefix %q is not in normal form: write %q", sp, normal)
	case !strings.HasSuffix(sp, "/") && !strings.HasSuffix(sp, "#"):
		return fmt.Errorf("source locator prefix %q must end in \"/\" or \"#\"", sp)
	}
	return nil
}

// NameTopics prepares a map for publication under the prefix sp, on which it was read
// as its base. It gives each topic without a subject identifier one, adding it
// to tm, and chooses each topic's TopicSI. prior is the state that is published
// now (nil for none): what a topic was assigned there it keeps, and its TopicSI
// changes only if the topic has lost it.
//
// The assigned identifier is sp + "topic/" + the topic's id in the document;
// for a topic without one it is made from the topic's first locator.
func NameTopics(tm *tmdm.TopicMap, sp string, prior Source) (*Map, error) {
	m := newMap(tm, sp)
	n := namer{sp: sp, prior: prior}
	for t := range tm.Topics() {
		if err := n.assign(t); err != nil {
			return nil, err
		}
	}
	for t := range tm.Topics() {
		ref, err := n.choose(t)
		if err != nil {
			return nil, err
		}
		m.refs[t] = ref
	}
	return m, m.finish()
}

type namer struct {
	sp    string
	prior Source
}

// assign adds the identifiers that the publisher gives t.
func (n *namer) assign(t *tmdm.Topic) error {
	candidates := n.candidates(t)
	for _, si := range candidates {
		published, err := n.published(si)
		if err != nil {
			return err
		}
		if published != nil {
			if err := n.add(t, si); err != nil {
				return err
			}
		}
	}
	if len(t.SubjectIdentifiers()) > 0 {
		return nil
	}
	if n.prior != nil {
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
	}
	for _, si := range candidates {
		if len(t.SubjectIdentifiers()) == 0 {
			if err := n.add(t, si); err != nil {
				return err
			}
		}
	}
	for len(t.SubjectIdentifiers()) == 0 { // every candidate is somebody else's
		if err := n.add(t, tmdm.Locator(n.sp+"topic/"+uuid.NewString())); err != nil {
			return err
		}
	}
	return nil
}

// candidates returns the identifiers that t could be assigned, best first.
func (n *namer) candidates(t *tmdm.Topic) []tmdm.Locator {
	var list []tmdm.Locator
	inDocument := strings.TrimSuffix(n.sp, "#") + "#"
	for _, l := range t.ItemIdentifiers() {
		if id, ok := strings.CutPrefix(string(l), inDocument); ok && id != "" {
			list = append(list, tmdm.Locator(n.sp+"topic/"+id))
		}
	}
	for _, set := range [][]tmdm.Locator{t.ItemIdentifiers(), t.SubjectLocators()} {
		if len(list) == 0 && len(set) > 0 {
			list = append(list, tmdm.Locator(n.sp+"topic/"+uuid.NewSHA1(uuid.NameSpaceURL, []byte(slices.Min(set))).String()))
		}
	}
	return list
}

// add adds si to t unless another topic has it.
func (n *namer) add(t *tmdm.Topic, si tmdm.Locator) error {
	err := t.AddSubjectIdentifier(si)
	var taken *tmdm.IdentityError
	if errors.As(err, &taken) {
		return nil
	}
	return err
}

func (n *namer) published(si tmdm.Locator) (*Topic, error) {
	if n.prior == nil {
		return nil, nil
	}
	return n.prior.Topic(si)
}

// choose returns the TopicSI of t: the one that is published, the least of them
// where published topics were merged; for a new topic the first identifier. The
// subject identifiers of the standard come first, because records are told
// apart by them.
func (n *namer) choose(t *tmdm.Topic) (Ref, error) {
	var was []Ref
	for _, si := range t.SubjectIdentifiers() {
		published, err := n.published(si)
		if err != nil {
			return "", err
		}
		if published != nil && published.TopicSI() == si {
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
