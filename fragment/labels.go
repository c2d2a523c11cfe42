package fragment

import (
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/internal/titles"
)

// Lookup finds records of a map.
type Lookup interface {
	Topic(si Ref) (*Topic, error)
	AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error]
}

// Names finds the names of topics for a reader of some languages, the best first: names of the topic, or labels that
// are resources (SKOS reference, appendix B). It caches whether the map has such labels. It is valid for one state, and
// not safe for concurrent use.
type Names struct {
	In        Lookup // nil: associations are not available
	Languages []string

	known bool
	types map[Ref]string // of associations that lead to labels, as [titles] knows them
}

// RDFSubject and RDFObject are the roles of associations from RDF (docs/rdf.md).
const RDFSubject, RDFObject Ref = rdf + "subject", rdf + "object"
const rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

// mostPlayed is the number of associations of a topic that are read for its labels. Only hubs have more.
const mostPlayed = 1000

// Best returns the best name of a topic of the map, if it has one that can be a title, and the tag of its language; ""
// if that is not known.
func (n *Names) Best(t *Topic) (title, language string, ok bool, err error) {
	best := t.chooser(n.Languages)
	if !best.Final() {
		if err := n.labels(t, &best); err != nil {
			return "", "", false, err
		}
	}
	if title, ok = best.Best(); !ok {
		title, ok = t.literalForm(n.Languages)
	}
	return title, best.Language(), ok, nil
}

// Title returns [Names.Best], or else a title from the TopicSI.
func (n *Names) Title(t *Topic) (string, error) {
	title, _, ok, err := n.Best(t)
	if !ok {
		title = t.TopicSI().String()
	}
	return title, err
}

// Stored is [Names.Title] of a topic in its stored form, which is decoded only where the map has labels that may count.
func (n *Names) Stored(record []byte) (string, error) {
	title, final, err := storedTitle(record, n.Languages)
	if final || err != nil {
		return title, err
	}
	if has, err := n.HaveLabels(); !has || err != nil {
		return title, err
	}
	t, err := UnmarshalTopic(record)
	if err != nil {
		return "", err
	}
	return n.Title(t)
}

// expect prefetches topics, if the source supports that.
func (n *Names) expect(refs []Ref) error {
	if expecting, ok := n.In.(interface{ ExpectNames(sis []Ref) error }); ok && len(refs) > 1 {
		return expecting.ExpectNames(refs)
	}
	return nil
}

// LabelProperties are the properties that lead to labels which are resources.
var LabelProperties = []Ref{titles.XLPrefLabel, titles.XLAltLabel}

// HaveLabels reports whether the map has labels that are resources: whether it knows the property that leads to them.
func (n *Names) HaveLabels() (bool, error) {
	if n.known || n.In == nil {
		return len(n.types) > 0, nil
	}
	types := map[Ref]string{}
	if err := n.expect(LabelProperties); err != nil {
		return false, err
	}
	for _, property := range LabelProperties {
		t, err := n.In.Topic(property)
		if err != nil {
			return false, err
		}
		if t == nil {
			break
		}
		types[t.TopicSI()] = string(property)
	}
	n.known, n.types = true, types
	return len(types) > 0, nil
}

// labels passes the labels of a topic to a chooser.
func (n *Names) labels(t *Topic, best *titles.Chooser[string]) error {
	if has, err := n.HaveLabels(); !has || err != nil {
		return err
	}
	var found []Ref
	var types []string
	self, played := t.TopicSI(), 0
	for a, err := range n.In.AssociationsOf(self, AsPlayer) {
		if err != nil {
			return err
		}
		if typ := n.types[a.Type]; typ != "" {
			for _, r := range a.Roles {
				if r.Type == RDFObject && r.Player != self {
					found, types = append(found, r.Player), append(types, typ)
				}
			}
		}
		if played++; played == mostPlayed {
			break
		}
	}
	if err := n.expect(found); err != nil {
		return err
	}
	for i, ref := range found {
		label, err := n.In.Topic(ref)
		if err != nil {
			return fmt.Errorf("label %s: %w", ref, err)
		}
		if label != nil {
			label.literalForms(func(value string, scope []Ref) { tell(best, value, types[i], scope) })
		}
	}
	return nil
}
