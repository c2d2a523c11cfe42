package fragment

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Fragment is what one entry of a fragments feed says: the complete description
// of a topic, or that it is deleted.
type Fragment struct {
	// TopicSI is the subject identifier under which the entry was published.
	// Usually it is the topic's own; after a merge it may be another of its
	// identifiers.
	TopicSI Ref
	Deleted bool

	Topic        *Topic         // identifiers only, where the topic is deleted
	Associations []*Association // those in which the topic plays a role
	Stubs        []Identity     // the identifiers of the other topics
}

// MissingTopicError says that a fragment has no topic with the subject
// identifier that its entry names. It is bad input, never a deletion.
type MissingTopicError struct {
	URI     string
	TopicSI Ref
}

func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("%s: no topic of the fragment has the subject identifier %s that its entry names", e.URI, e.TopicSI)
}

// Read reads the XTM document of a fragment; o.Base is the source locator
// prefix. A topic with identifiers and nothing else counts as deleted; callers
// that know better (a feed with a state for each entry) set Deleted themselves.
//
// Only what is said of the topic itself is taken: statements about other topics
// arrive with their own fragments, and would otherwise never be taken back.
func Read(r io.Reader, o xtm.Options, topicSI Ref) (*Fragment, error) {
	return ReadAs(r, o, Identity{SubjectIdentifiers: []tmdm.Locator{topicSI}})
}

// ReadAs is Read for entries of servers that name the topic by several
// identifiers, or by subject locators alone: the topic has one of them.
func ReadAs(r io.Reader, o xtm.Options, named Identity) (*Fragment, error) {
	m, err := readMap(r, o)
	if err != nil {
		return nil, err
	}
	topicSI, topic, err := m.find(named)
	if err != nil {
		return nil, err
	}
	if topic == nil {
		return nil, &MissingTopicError{o.URI, cmp.Or(slices.Concat(named.SubjectIdentifiers, named.SubjectLocators)...)}
	}
	return m.describing(topicSI, topic)
}

// AmbiguousError says that a document describes several topics, or none, and nothing
// says which of them it is about.
type AmbiguousError struct {
	URI    string
	Topics []Ref // those that it describes, or where it describes none, all
}

func (e *AmbiguousError) Error() string {
	if len(e.Topics) == 0 {
		return e.URI + ": there is no topic in it"
	}
	return fmt.Sprintf("%s: nothing says which of the topics in it this is about: %s", e.URI, listOf(e.Topics))
}

// ReadRecord reads the XTM document of a record of which its source does not say what
// topic it is about. That is a topic that has one of the hints as an identifier, such as
// the identifier of the record and the address of the document; or else the only one with
// names or occurrences; or else the only one that takes part in all associations.
func ReadRecord(r io.Reader, o xtm.Options, hints ...tmdm.Locator) (*Fragment, error) {
	m, err := readMap(r, o)
	if err != nil {
		return nil, err
	}
	topicSI, topic, err := m.find(Identity{SubjectIdentifiers: hints, SubjectLocators: hints})
	if err != nil {
		return nil, err
	}
	if topic == nil {
		about, err := m.about()
		if err != nil {
			return nil, err
		}
		if len(about) != 1 {
			return nil, &AmbiguousError{o.URI, about}
		}
		if topic, err = m.Topic(about[0]); err != nil {
			return nil, err
		}
		topicSI = about[0]
	}
	return m.describing(topicSI, topic)
}

// about returns the topics that a document may be about.
func (m *Map) about() ([]Ref, error) {
	var all, described []Ref
	for t, err := range m.Topics() {
		if err != nil {
			return nil, err
		}
		all = append(all, t.TopicSI())
		if len(t.Names) > 0 || len(t.Occurrences) > 0 {
			described = append(described, t.TopicSI())
		}
	}
	if len(described) > 0 {
		return described, nil
	}
	associations, taken := 0, map[Ref]int{}
	for a, err := range m.Associations() {
		if err != nil {
			return nil, err
		}
		associations++
		for _, player := range a.Players() {
			if a.Part(player) != AsType { // it is the instance that this is said of
				taken[player]++
			}
		}
	}
	in := func(ref Ref) bool { return taken[ref] == associations }
	if associations > 0 && slices.ContainsFunc(all, in) {
		all = slices.DeleteFunc(all, func(ref Ref) bool { return !in(ref) })
	}
	return all, nil
}

// listOf shows some references, for people.
func listOf(refs []Ref) string {
	const most = 5
	var b strings.Builder
	for i, ref := range refs {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(refs)-most)
			return b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(ref))
	}
	return b.String()
}

// describing returns what the map says of a topic.
func (m *Map) describing(topicSI Ref, topic *Topic) (*Fragment, error) {
	f := &Fragment{TopicSI: topicSI, Topic: topic}
	for _, part := range Parts {
		for a, err := range m.AssociationsOf(topic.TopicSI(), part) {
			if err != nil {
				return nil, err
			}
			f.Associations = append(f.Associations, a)
		}
	}
	for _, n := range m.sorted {
		if n.ref != topic.TopicSI() {
			f.Stubs = append(f.Stubs, m.identity(n.t))
		}
	}
	f.Deleted = len(topic.Names) == 0 && len(topic.Occurrences) == 0 && len(f.Associations) == 0
	return f, nil
}

// find returns the topic that has one of the identifiers, and the subject
// identifier by which it was found.
func (m *Map) find(id Identity) (Ref, *Topic, error) {
	for _, si := range id.SubjectIdentifiers {
		if t, err := m.Topic(si); t != nil || err != nil {
			return si, t, err
		}
	}
	for _, sl := range id.SubjectLocators {
		if t, err := m.TopicBySubjectLocator(sl); t != nil || err != nil {
			if err != nil {
				return "", nil, err
			}
			return t.TopicSI(), t, nil
		}
	}
	return "", nil, nil
}

// ReadSnapshot reads the XTM document of a snapshot; o.Base is the source
// locator prefix.
func ReadSnapshot(r io.Reader, o xtm.Options) (*Map, error) { return readMap(r, o) }

// nameLocated gives topics that have subject locators and no subject identifier
// one that is made of the least locator: other servers publish such topics, and
// records refer to topics by subject identifiers.
func nameLocated(tm *tmdm.TopicMap, sp string) error {
	var located []*tmdm.Topic
	for t := range tm.Topics() {
		if len(t.SubjectIdentifiers()) == 0 && len(t.SubjectLocators()) > 0 {
			located = append(located, t)
		}
	}
	for _, t := range located {
		made := tmdm.Locator(sp + "topic/" + xtm.TopicID(slices.Min(t.SubjectLocators())))
		if err := t.AddSubjectIdentifier(made); err != nil {
			return err
		}
	}
	return nil
}

func readMap(r io.Reader, o xtm.Options) (*Map, error) {
	tm, err := xtm.Read(r, o)
	if err != nil {
		return nil, err
	}
	if err := nameLocated(tm, string(o.Base)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	m, err := NewMap(tm, string(o.Base))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	return m, nil
}
