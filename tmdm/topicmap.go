package tmdm

import "iter"

// TopicMap is a topic map item (ISO 13250-2 §5.2).
type TopicMap struct {
	details
	topics       []*Topic       // some may be merged into others
	associations []*Association // some may be removed
	removed      int            // number of removed topics
	merged       bool           // topics were merged since Normalize
	serial       uint32

	ids   identifiers           // subject identifiers, and item identifiers of topics
	sls   identifiers           // subject locators
	items map[Locator]Construct // item identifiers of all other items

	unconstrained *Scope
	scopes        map[string]*Scope
	lastScopes    [16]*Scope // of one theme
	kinds         map[kind]*kind
	lastKinds     [64]*kind

	slabs struct {
		topics       slab[Topic]
		names        slab[TopicName]
		occurrences  slab[Occurrence]
		associations slab[Association]
		roles        slab[AssociationRole]
		pairs        slab[[2]*AssociationRole]
	}
}

// New returns an empty topic map.
func New() *TopicMap {
	tm := &TopicMap{items: map[Locator]Construct{}, scopes: map[string]*Scope{}, kinds: map[kind]*kind{}}
	tm.unconstrained = &Scope{tm: tm}
	tm.slabs.topics.most = 53 // that many fit well into 8 KB
	return tm
}

func (tm *TopicMap) setItemIdentifiers(l []Locator) { tm.iids = l }
func (tm *TopicMap) setReifier(t *Topic)            { tm.reifier = t }

// TopicMap returns tm itself.
func (tm *TopicMap) TopicMap() *TopicMap { return tm }

// Topics iterates over the topics in order of creation. The map must not be
// changed meanwhile.
func (tm *TopicMap) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range tm.topics {
			if !t.gone() && !yield(t) {
				return
			}
		}
	}
}

// Associations iterates over the associations in order of creation. The map
// must not be changed meanwhile.
func (tm *TopicMap) Associations() iter.Seq[*Association] {
	return func(yield func(*Association) bool) {
		for _, a := range tm.associations {
			if !a.removed() && !yield(a) {
				return
			}
		}
	}
}

// CreateTopic adds a topic without identifiers; the caller gives it at least one.
func (tm *TopicMap) CreateTopic() *Topic {
	tm.serial++
	t := tm.slabs.topics.take()
	t.tm, t.serial = tm, tm.serial
	tm.topics = append(tm.topics, t)
	return t
}

// TopicBySubjectIdentifier returns the topic with the subject identifier, or nil.
func (tm *TopicMap) TopicBySubjectIdentifier(loc Locator) *Topic { return tm.ids.topic(loc, asSubject) }

// TopicBySubjectLocator returns the topic with the subject locator, or nil.
func (tm *TopicMap) TopicBySubjectLocator(loc Locator) *Topic { return tm.sls.topic(loc, asSubject) }

// ConstructByItemIdentifier returns the item with the item identifier, or nil.
func (tm *TopicMap) ConstructByItemIdentifier(loc Locator) Construct {
	if t := tm.ids.topic(loc, asItem); t != nil {
		return t
	}
	return tm.items[loc]
}

// TopicByIdentifier returns the topic that has loc as a subject identifier or as
// an item identifier, or nil. There is one at most (ISO 13250-2 §5.3.5,
// Properties: topics that share one are equal).
func (tm *TopicMap) TopicByIdentifier(loc Locator) *Topic { return tm.ids.topic(loc, asSubject|asItem) }

// CreateTopicBySubjectIdentifier returns the topic with the subject identifier; if there is none, it adds the
// identifier to the topic that has it as an item identifier, or else creates the topic.
func (tm *TopicMap) CreateTopicBySubjectIdentifier(loc Locator) *Topic {
	if t := tm.ids.topic(loc, asSubject); t != nil {
		return t
	}
	t := tm.ids.topic(loc, asItem)
	if t == nil {
		t = tm.CreateTopic()
	}
	_ = t.AddSubjectIdentifier(loc) // no other topic has it
	return t
}

// CreateTopicBySubjectLocator returns the topic with the subject locator, and creates it if there is none.
func (tm *TopicMap) CreateTopicBySubjectLocator(loc Locator) *Topic {
	t := tm.TopicBySubjectLocator(loc)
	if t == nil {
		t = tm.CreateTopic()
		_ = t.AddSubjectLocator(loc) // no other topic has it
	}
	return t
}

// CreateTopicByItemIdentifier returns the topic with the item identifier; if there is none, it adds the identifier to
// the topic that has it as a subject identifier, or else creates the topic. It returns an [*IdentityError] if loc
// identifies an item that is no topic.
func (tm *TopicMap) CreateTopicByItemIdentifier(loc Locator) (*Topic, error) {
	if t := tm.ids.topic(loc, asItem); t != nil {
		return t, nil
	}
	t := tm.ids.topic(loc, asSubject)
	if existing := tm.items[loc]; existing != nil {
		err := &IdentityError{Existing: existing, Locator: loc}
		if t != nil {
			err.Construct = t
		}
		return nil, err
	}
	if t == nil {
		t = tm.CreateTopic()
	}
	return t, t.addItemIdentifier(loc)
}

// CreateAssociation adds an association without roles.
func (tm *TopicMap) CreateAssociation(typ *Topic, themes ...*Topic) *Association {
	k := tm.kind(tm.mustUse(typ), tm.Scope(themes...), "")
	a := tm.slabs.associations.take()
	a.kind = k
	tm.associations = append(tm.associations, a)
	return a
}
