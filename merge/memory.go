package merge

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Memory is a State in memory. The zero value is empty and ready to use. It is
// not safe for concurrent use.
type Memory struct {
	topics   map[fragment.Ref]*fragment.Topic // by TopicSI
	bySI     map[fragment.Ref]fragment.Ref    // every subject identifier to the TopicSI
	bySL     map[tmdm.Locator]fragment.Ref
	playing  map[fragment.Ref]map[fragment.AssociationKey]*fragment.Association
	mentions map[fragment.Ref]int
}

func (m *Memory) init() {
	if m.topics == nil {
		m.topics = map[fragment.Ref]*fragment.Topic{}
		m.bySI = map[fragment.Ref]fragment.Ref{}
		m.bySL = map[tmdm.Locator]fragment.Ref{}
		m.playing = map[fragment.Ref]map[fragment.AssociationKey]*fragment.Association{}
		m.mentions = map[fragment.Ref]int{}
	}
}

// Load adds all records of src to m, which should be empty: a clean start.
func (m *Memory) Load(src fragment.Source) error {
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		if err := m.PutTopic(t); err != nil {
			return err
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return err
		}
		if err := m.PutAssociation(a); err != nil {
			return err
		}
	}
	return nil
}

// Topic implements [fragment.Source].
func (m *Memory) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if ref, ok := m.bySI[si]; ok {
		return m.topics[ref], nil
	}
	return nil, nil
}

// TopicBySubjectLocator implements [fragment.Source].
func (m *Memory) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if ref, ok := m.bySL[sl]; ok {
		return m.topics[ref], nil
	}
	return nil, nil
}

// Topics implements [fragment.Source].
func (m *Memory) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		for _, ref := range slices.Sorted(maps.Keys(m.topics)) {
			if !yield(m.topics[ref], nil) {
				return
			}
		}
	}
}

// AssociationsOf implements [fragment.Source].
func (m *Memory) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		byKey := m.playing[player]
		keys := slices.SortedFunc(maps.Keys(byKey), func(a, b fragment.AssociationKey) int { return bytes.Compare(a[:], b[:]) })
		for _, k := range keys {
			if a := byKey[k]; a.Part(player) == part && !yield(a, nil) {
				return
			}
		}
	}
}

// Associations implements [fragment.Source].
func (m *Memory) Associations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		for _, player := range slices.Sorted(maps.Keys(m.playing)) {
			for _, part := range fragment.Parts {
				for a := range m.AssociationsOf(player, part) {
					if a.Players()[0] == player && !yield(a, nil) {
						return
					}
				}
			}
		}
	}
}

// Mentions implements [State].
func (m *Memory) Mentions(ref fragment.Ref) (int, error) { return m.mentions[ref], nil }

// PutTopic implements [State].
func (m *Memory) PutTopic(t *fragment.Topic) error {
	m.init()
	if old := m.topics[t.TopicSI()]; old != nil {
		m.forget(old)
	}
	m.topics[t.TopicSI()] = t
	for _, si := range t.SubjectIdentifiers {
		m.bySI[si] = t.TopicSI()
	}
	for _, sl := range t.SubjectLocators {
		m.bySL[sl] = t.TopicSI()
	}
	t.Mentions(func(ref fragment.Ref) { m.mentions[ref]++ })
	return nil
}

// DeleteTopic implements [State].
func (m *Memory) DeleteTopic(t *fragment.Topic) error {
	if old := m.topics[t.TopicSI()]; old != nil {
		m.forget(old)
	}
	return nil
}

func (m *Memory) forget(t *fragment.Topic) {
	delete(m.topics, t.TopicSI())
	for _, si := range t.SubjectIdentifiers {
		delete(m.bySI, si)
	}
	for _, sl := range t.SubjectLocators {
		delete(m.bySL, sl)
	}
	t.Mentions(m.unmention)
}

func (m *Memory) unmention(ref fragment.Ref) {
	if m.mentions[ref]--; m.mentions[ref] == 0 {
		delete(m.mentions, ref)
	}
}

// PutAssociation implements [State].
func (m *Memory) PutAssociation(a *fragment.Association) error {
	m.init()
	if err := m.DeleteAssociation(a); err != nil {
		return err
	}
	key := a.Key()
	for _, p := range a.Players() {
		if m.playing[p] == nil {
			m.playing[p] = map[fragment.AssociationKey]*fragment.Association{}
		}
		m.playing[p][key] = a
	}
	a.Mentions(func(ref fragment.Ref) { m.mentions[ref]++ })
	return nil
}

// DeleteAssociation implements [State].
func (m *Memory) DeleteAssociation(a *fragment.Association) error {
	key := a.Key()
	players := a.Players()
	if len(players) == 0 {
		return nil
	}
	old := m.playing[players[0]][key]
	if old == nil {
		return nil
	}
	for _, p := range players {
		if delete(m.playing[p], key); len(m.playing[p]) == 0 {
			delete(m.playing, p)
		}
	}
	old.Mentions(m.unmention)
	return nil
}
