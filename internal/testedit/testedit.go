// Package testedit edits topic maps at random, for tests: the kinds of edits that
// editors make and the rare ones that break synchronisation (identifiers that
// move, merges, splits, re-creations).
package testedit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tmshare/tmshare/tmdm"
)

// Editor edits one map, reproducibly for a seed.
type Editor struct {
	Map  *tmdm.TopicMap
	Base string // of the item identifiers of new topics: Base + "#" + id

	rng     *rand.Rand
	created int
	removed []identity // of topics that are gone, to create them again
}

type identity struct{ iids, sis []tmdm.Locator }

// New returns an editor of tm.
func New(tm *tmdm.TopicMap, base string, seed uint64) *Editor {
	return &Editor{Map: tm, Base: base, rng: rand.New(rand.NewPCG(seed, seed))}
}

// Edit makes one random edit that changes the map, and says which.
func (e *Editor) Edit() string {
	edits := []struct {
		weight int
		try    func() string
	}{
		{14, e.addName}, {8, e.removeName}, {6, e.renameOne}, {4, e.addVariant}, {12, e.addOccurrence},
		{6, e.removeOccurrence},
		{12, e.addAssociation}, {8, e.removeAssociation}, {8, e.addType}, {5, e.removeType}, {5, e.addIdentifier},
		{5, e.removeIdentifier}, {4, e.moveIdentifier}, {3, e.addLocator}, {6, e.create}, {3, e.recreate}, {7, e.remove},
		{3, e.merge}, {3, e.split}, {4, e.reify}, {2, e.unreify},
	}
	total := 0
	for _, x := range edits {
		total += x.weight
	}
	for range 10_000 {
		n := e.rng.IntN(total)
		for _, x := range edits {
			if n -= x.weight; n < 0 {
				if edit := x.try(); edit != "" {
					e.Map.Normalize(context.Background())
					return edit
				}
				break
			}
		}
	}
	panic("testedit: no edit is possible")
}

func (e *Editor) topics() []*tmdm.Topic { return slices.Collect(e.Map.Topics()) }

// topic returns a random topic that is not part of the model's vocabulary.
func (e *Editor) topic() *tmdm.Topic {
	all := e.topics()
	for range 20 {
		t := all[e.rng.IntN(len(all))]
		if !vocabulary(t) {
			return t
		}
	}
	return e.newTopic()
}

func vocabulary(t *tmdm.Topic) bool {
	return slices.ContainsFunc(t.SubjectIdentifiers(), func(l tmdm.Locator) bool {
		return slices.Contains([]tmdm.Locator{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance, tmdm.PSIDefaultNameType,
			tmdm.PSISort}, l)
	})
}

func (e *Editor) newTopic() *tmdm.Topic {
	t := e.Map.CreateTopic()
	for {
		e.created++
		if tmdm.AddItemIdentifier(t, tmdm.Locator(fmt.Sprintf("%s#new-%d", e.Base, e.created))) == nil {
			break
		}
	}
	if e.rng.IntN(3) > 0 {
		_ = t.AddSubjectIdentifier(e.identifier())
	}
	return t
}

func (e *Editor) identifier() tmdm.Locator {
	return tmdm.Locator(fmt.Sprintf("http://psi.example.org/%d", e.rng.IntN(1000)))
}

func (e *Editor) word() string {
	words := []string{"alpha", "Ωmega", "gamma & delta", "<x>", "東京", "a\nb", "long name with spaces", "é"}
	return fmt.Sprintf("%s %d", words[e.rng.IntN(len(words))], e.rng.IntN(50))
}

func (e *Editor) themes() []*tmdm.Topic {
	var themes []*tmdm.Topic
	for e.rng.IntN(3) == 0 && len(themes) < 2 {
		themes = append(themes, e.topic())
	}
	return themes
}

func say(what string, t *tmdm.Topic) string { return what + ": " + tmdm.Describe(t) }

func (e *Editor) addName() string {
	t := e.topic()
	var typ *tmdm.Topic
	if e.rng.IntN(4) == 0 {
		typ = e.topic()
	}
	n := t.AddName(e.word(), typ, e.themes()...)
	if e.rng.IntN(4) == 0 {
		n.AddVariant(e.word(), tmdm.XSDString, e.topic())
	}
	return say("add name", t)
}

func (e *Editor) removeName() string {
	t := e.topic()
	if len(t.Names()) == 0 {
		return ""
	}
	t.Names()[e.rng.IntN(len(t.Names()))].Remove()
	return say("remove name", t)
}

func (e *Editor) renameOne() string {
	t := e.topic()
	if len(t.Names()) == 0 {
		return ""
	}
	n := t.Names()[0]
	typ, themes := n.Type(), n.Scope().Themes()
	n.Remove()
	t.AddName(e.word(), typ, themes...)
	return say("rename", t)
}

func (e *Editor) addVariant() string {
	t := e.topic()
	if len(t.Names()) == 0 {
		return ""
	}
	n, theme := t.Names()[e.rng.IntN(len(t.Names()))], e.topic()
	if slices.Contains(n.Scope().Themes(), theme) {
		return ""
	}
	n.AddVariant(e.word(), tmdm.XSDString, theme)
	return say("add variant", t)
}

func (e *Editor) addOccurrence() string {
	t := e.topic()
	datatypes := []string{tmdm.XSDString, tmdm.XSDString, tmdm.XSDAnyURI, tmdm.XSDInteger}
	value, datatype := e.word(), datatypes[e.rng.IntN(len(datatypes))]
	switch datatype {
	case tmdm.XSDAnyURI:
		value = string(e.identifier())
	case tmdm.XSDInteger:
		value = fmt.Sprint(e.rng.IntN(1000))
	}
	t.AddOccurrence(value, datatype, e.topic(), e.themes()...)
	return say("add occurrence", t)
}

func (e *Editor) removeOccurrence() string {
	t := e.topic()
	if len(t.Occurrences()) == 0 {
		return ""
	}
	t.Occurrences()[e.rng.IntN(len(t.Occurrences()))].Remove()
	return say("remove occurrence", t)
}

func (e *Editor) addAssociation() string {
	t := e.topic()
	a := e.Map.CreateAssociation(e.topic(), e.themes()...)
	a.AddRole(e.topic(), t)
	for range 1 + e.rng.IntN(2) {
		a.AddRole(e.topic(), e.topic())
	}
	return say("add association", t)
}

func (e *Editor) association(accept func(*tmdm.Association) bool) *tmdm.Association {
	all := slices.Collect(e.Map.Associations())
	if len(all) == 0 {
		return nil
	}
	start := e.rng.IntN(len(all))
	for i := range min(len(all), 200) {
		if a := all[(start+i)%len(all)]; accept(a) {
			return a
		}
	}
	return nil
}

func isTyping(a *tmdm.Association) bool { _, _, ok := a.TypeInstance(); return ok }

func (e *Editor) removeAssociation() string {
	a := e.association(func(a *tmdm.Association) bool { return !isTyping(a) })
	if a == nil {
		return ""
	}
	edit := say("remove association of", a.Roles()[0].Player())
	a.Remove()
	return edit
}

func (e *Editor) addType() string {
	t := e.topic()
	t.AddType(e.topic())
	return say("add type", t)
}

func (e *Editor) removeType() string {
	a := e.association(isTyping)
	if a == nil {
		return ""
	}
	_, instance, _ := a.TypeInstance()
	a.Remove()
	return say("remove type", instance)
}
