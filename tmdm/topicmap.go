package tmdm

import "iter"

// TopicMap is a topic map item (ISO 13250-2 §5.2).
type TopicMap struct {
	itemIdentity
	reifiable
	topics        []*Topic       // some may be merged into others
	associations  []*Association // some may be removed
	removed       int            // how many
	bySI, bySL    map[Locator]*Topic
	byII          map[Locator]Construct
	scopes        map[string]*Scope
	unconstrained *Scope
	serial        uint32
}

// New returns an empty topic map.
func New() *TopicMap {
	tm := &TopicMap{
		bySI:   map[Locator]*Topic{},
		bySL:   map[Locator]*Topic{},
		byII:   map[Locator]Construct{},
		scopes: map[string]*Scope{},
	}
	tm.unconstrained = &Scope{tm: tm}
	return tm
}

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
			if !a.removed && !yield(a) {
				return
			}
		}
	}
}

// CreateTopic adds a topic without identifiers; the caller gives it at least one.
func (tm *TopicMap) CreateTopic() *Topic {
	tm.serial++
	t := &Topic{tm: tm, serial: tm.serial}
	tm.topics = append(tm.topics, t)
	return t
}

// TopicBySubjectIdentifier returns the topic with the subject identifier, or nil.
func (tm *TopicMap) TopicBySubjectIdentifier(loc Locator) *Topic { return tm.bySI[loc] }

// TopicBySubjectLocator returns the topic with the subject locator, or nil.
func (tm *TopicMap) TopicBySubjectLocator(loc Locator) *Topic { return tm.bySL[loc] }

// ConstructByItemIdentifier returns the item with the item identifier, or nil.
func (tm *TopicMap) ConstructByItemIdentifier(loc Locator) Construct { return tm.byII[loc] }

// CreateTopicBySubjectIdentifier returns the topic with the subject identifier;
// where there is none, it adds the identifier to the topic that has it as an
// item identifier, or else creates the topic.
func (tm *TopicMap) CreateTopicBySubjectIdentifier(loc Locator) *Topic {
	if t := tm.bySI[loc]; t != nil {
		return t
	}
	t, ok := tm.byII[loc].(*Topic)
	if !ok {
		t = tm.CreateTopic()
	}
	t.sis = append(t.sis, loc)
	tm.bySI[loc] = t
	return t
}

// CreateTopicBySubjectLocator returns the topic with the subject locator, and
// creates it where there is none.
func (tm *TopicMap) CreateTopicBySubjectLocator(loc Locator) *Topic {
	if t := tm.bySL[loc]; t != nil {
		return t
	}
	t := tm.CreateTopic()
	t.sls = append(t.sls, loc)
	tm.bySL[loc] = t
	return t
}

// CreateTopicByItemIdentifier returns the topic with the item identifier; where
// there is none, it adds the identifier to the topic that has it as a subject
// identifier, or else creates the topic. It returns an [*IdentityError] where
// loc identifies an item that is no topic.
func (tm *TopicMap) CreateTopicByItemIdentifier(loc Locator) (*Topic, error) {
	t := tm.bySI[loc]
	switch existing := tm.byII[loc].(type) {
	case nil:
	case *Topic:
		return existing, nil
	default:
		err := &IdentityError{Existing: existing, Locator: loc}
		if t != nil {
			err.Construct = t
		}
		return nil, err
	}
	if t == nil {
		t = tm.CreateTopic()
	}
	t.iids = append(t.iids, loc)
	tm.byII[loc] = t
	return t, nil
}

// CreateAssociation adds an association without roles.
func (tm *TopicMap) CreateAssociation(typ *Topic, themes ...*Topic) *Association {
	a := &Association{tm: tm, typ: typ, scope: tm.Scope(themes...)}
	tm.associations = append(tm.associations, a)
	return a
}
