package merge

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Memory is a State in memory. The zero value is empty and ready to use. It is
// not safe for concurrent use.
type Memory struct {
	topics   btree.Map[fragment.Ref, *fragment.Topic] // by TopicSI
	bySI     map[fragment.Ref]fragment.Ref            // every subject identifier to the TopicSI
	bySL     map[tmdm.Locator]fragment.Ref
	playing  btree.Map[string, *fragment.Association] // by playingKey, once for each player
	mentions map[fragment.Ref]int

	reifiedTopics       btree.Map[fragment.Ref, *fragment.Topic] // those with a reified statement
	reifiedAssociations btree.Map[string, *fragment.Association] // by the least playingKey
}

func (m *Memory) init() {
	if m.bySI == nil {
		m.bySI = map[fragment.Ref]fragment.Ref{}
		m.bySL = map[tmdm.Locator]fragment.Ref{}
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
		return m.topic(ref), nil
	}
	return nil, nil
}

// TopicBySubjectLocator implements [fragment.Source].
func (m *Memory) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if ref, ok := m.bySL[sl]; ok {
		return m.topic(ref), nil
	}
	return nil, nil
}

func (m *Memory) topic(ref fragment.Ref) *fragment.Topic {
	t, _ := m.topics.Get(ref)
	return t
}

// Topics implements [fragment.Source].
func (m *Memory) Topics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		ascend(&m.topics, "", func(_ fragment.Ref, t *fragment.Topic) bool { return yield(t, nil) })
	}
}

// ascend yields the entries of tree from a key on, in order. The tree may be changed meanwhile; entries of the same
// page still come unchanged.
func ascend[K ~string, V any](tree *btree.Map[K, V], from K, yield func(K, V) bool) {
	type item struct {
		key   K
		value V
	}
	for size, skip := 8, false; ; size = min(2*size, 256) {
		page := make([]item, 0, size)
		tree.Ascend(from, func(key K, value V) bool {
			if !skip || key != from {
				page = append(page, item{key, value})
			}
			return len(page) < size
		})
		for _, i := range page {
			if !yield(i.key, i.value) {
				return
			}
		}
		if len(page) < size {
			return
		}
		from, skip = page[size-1].key, true
	}
}

// playingKey orders associations by player, part and key. No locator has a NUL.
func playingKey(player fragment.Ref, part fragment.Part, key fragment.AssociationKey) string {
	return playingPrefix(player, part) + string(key[:])
}

func playingPrefix(player fragment.Ref, part fragment.Part) string {
	return string(player) + "\x00" + string(rune(part))
}

// AssociationsOf implements [fragment.Source].
func (m *Memory) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		prefix := playingPrefix(player, part)
		ascend(&m.playing, prefix, func(key string, a *fragment.Association) bool {
			return strings.HasPrefix(key, prefix) && yield(a, nil)
		})
	}
}

// Associations implements [fragment.Source].
func (m *Memory) Associations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		ascend(&m.playing, "", func(key string, a *fragment.Association) bool {
			least := string(a.Players()[0])
			return !strings.HasPrefix(key, least+"\x00") || yield(a, nil)
		})
	}
}

// IsPlain implements [Plain].
func (m *Memory) IsPlain() (bool, error) {
	for si, ref := range m.bySI {
		if si != ref && m.refersTo(si) {
			return false, nil
		}
	}
	for a := range m.Associations() {
		if hasEqual(a.Roles, compareRoles) {
			return false, nil
		}
	}
	return true, nil
}

func (m *Memory) refersTo(si fragment.Ref) bool {
	plays := false
	ascend(&m.playing, string(si)+"\x00", func(key string, _ *fragment.Association) bool {
		plays = strings.HasPrefix(key, string(si)+"\x00")
		return false
	})
	return plays || m.mentions[si] > 0
}

// ReifiedTopics implements [Reified].
func (m *Memory) ReifiedTopics() iter.Seq2[*fragment.Topic, error] {
	return func(yield func(*fragment.Topic, error) bool) {
		ascend(&m.reifiedTopics, "", func(_ fragment.Ref, t *fragment.Topic) bool { return yield(t, nil) })
	}
}

// ReifiedAssociations implements [Reified].
func (m *Memory) ReifiedAssociations() iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		ascend(&m.reifiedAssociations, "", func(_ string, a *fragment.Association) bool { return yield(a, nil) })
	}
}

// Mentions implements [State].
func (m *Memory) Mentions(ref fragment.Ref) (int, error) { return m.mentions[ref], nil }

// PutTopic implements [State].
func (m *Memory) PutTopic(t *fragment.Topic) error {
	m.init()
	if old := m.topic(t.TopicSI()); old != nil {
		m.forget(old)
	}
	m.topics.Set(t.TopicSI(), t)
	for _, si := range t.SubjectIdentifiers {
		m.bySI[si] = t.TopicSI()
	}
	for _, sl := range t.SubjectLocators {
		m.bySL[sl] = t.TopicSI()
	}
	t.Mentions(m.mention)
	if t.HasReifiers() {
		m.reifiedTopics.Set(t.TopicSI(), t)
	}
	return nil
}

// DeleteTopic implements [State].
func (m *Memory) DeleteTopic(t *fragment.Topic) error {
	if old := m.topic(t.TopicSI()); old != nil {
		m.forget(old)
	}
	return nil
}

func (m *Memory) forget(t *fragment.Topic) {
	m.topics.Delete(t.TopicSI())
	m.reifiedTopics.Delete(t.TopicSI())
	for _, si := range t.SubjectIdentifiers {
		delete(m.bySI, si)
	}
	for _, sl := range t.SubjectLocators {
		delete(m.bySL, sl)
	}
	t.Mentions(m.unmention)
}

func (m *Memory) mention(ref fragment.Ref) { m.mentions[ref]++ }

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
		m.playing.Set(playingKey(p, a.Part(p), key), a)
	}
	if len(a.Roles) > 0 {
		a.Mentions(m.mention)
		if a.HasReifiers() {
			m.reifiedAssociations.Set(homeKey(a, key), a)
		}
	}
	return nil
}

// DeleteAssociation implements [State].
func (m *Memory) DeleteAssociation(a *fragment.Association) error {
	old := m.stored(a)
	if old == nil {
		return nil
	}
	key := old.Key()
	for _, p := range old.Players() {
		m.playing.Delete(playingKey(p, old.Part(p), key))
	}
	if old.HasReifiers() {
		m.reifiedAssociations.Delete(homeKey(old, key))
	}
	old.Mentions(m.unmention)
	return nil
}

// homeKey is the key under which Associations gives a.
func homeKey(a *fragment.Association, key fragment.AssociationKey) string {
	least := a.Players()[0]
	return playingKey(least, a.Part(least), key)
}

// stored returns the association with the key of a, or nil. A reifier is not
// part of the key, but it decides about the part.
func (m *Memory) stored(a *fragment.Association) *fragment.Association {
	players, key := a.Players(), a.Key()
	if len(players) == 0 {
		return nil
	}
	for _, part := range fragment.Parts {
		if old, ok := m.playing.Get(playingKey(players[0], part, key)); ok {
			return old
		}
	}
	return nil
}
