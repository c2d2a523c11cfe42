package fragment

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Fragment is the content of one entry of a fragments feed: the complete description of a topic, or its deletion.
type Fragment struct {
	// TopicSI is the subject identifier under which the entry was published.
	// Usually it is the topic's own; after a merge it may be another of its
	// identifiers.
	TopicSI Ref
	Deleted bool

	// Formerly are the subject identifiers that were made for the topic while it had none.
	Formerly []Ref

	Topic        *Topic         // identifiers only, where the topic is deleted
	Associations []*Association // those in which the topic plays a role
	Stubs        []Identity     // the identifiers of the other topics
}

// MissingTopicError is the error for a fragment without the topic that its entry names. It never counts as a deletion.
type MissingTopicError struct {
	URI     string
	TopicSI Ref
}

func (e *MissingTopicError) Error() string {
	return fmt.Sprintf("%s: no topic of the fragment has the subject identifier %s that its entry names", e.URI, e.TopicSI)
}

// Read reads the XTM document of a fragment; o.Base is the source locator prefix. A topic with identifiers only counts
// as deleted; callers that know the state from elsewhere (a feed with a state for each entry) set Deleted themselves.
//
// It takes statements about the topic itself only. Those about other topics come with their own fragments, and could
// otherwise never be removed.
func Read(ctx context.Context, r io.Reader, o xtm.Options, topicSI Ref) (*Fragment, error) {
	return ReadAs(ctx, r, o, Named{Identity: Identity{SubjectIdentifiers: []tmdm.Locator{topicSI}}})
}

// Named is how the entry of a feed names its topic. The topic has one of the identifiers.
type Named struct {
	Identity
	ItemIdentifiers []tmdm.Locator

	// EmptyDeletes makes a document without any topic delete the topic, as on servers of SDShare. Otherwise it is an
	// error.
	EmptyDeletes bool
}

// ReadAs is Read for entries of servers that name the topic by several
// identifiers, or by subject locators or item identifiers alone.
func ReadAs(ctx context.Context, r io.Reader, o xtm.Options, named Named) (*Fragment, error) {
	m, err := readMap(ctx, r, o)
	if err != nil {
		return nil, err
	}
	var made []Ref
	for _, iid := range callings(m.sp, named.ItemIdentifiers) {
		made = append(made, unidentified(m.sp, iid))
	}
	if names := len(named.SubjectIdentifiers) + len(named.SubjectLocators) + len(made); named.EmptyDeletes &&
		len(m.sorted) == 0 && names > 0 {
		return named.deletion(m.sp, made), nil
	}
	topicSI, topic, err := m.find(named)
	if err != nil {
		return nil, err
	}
	if topic == nil {
		return nil, &MissingTopicError{o.URI,
			cmp.Or(slices.Concat(named.SubjectIdentifiers, named.SubjectLocators, named.ItemIdentifiers)...)}
	}
	f, err := m.describing(topicSI, topic)
	if err == nil {
		f.Formerly = made
	}
	return f, err
}

// deletion returns the fragment that deletes the topic with one of the identifiers. made are the identifiers that may
// have been made for it here.
func (named *Named) deletion(sp string, made []Ref) *Fragment {
	id := Identity{SubjectIdentifiers: slices.Concat(named.SubjectIdentifiers, made),
		SubjectLocators: named.SubjectLocators}
	if len(id.SubjectIdentifiers) == 0 {
		id.SubjectIdentifiers = []Ref{located(sp, id.SubjectLocators)}
	}
	return &Fragment{TopicSI: id.TopicSI(), Deleted: true, Topic: &Topic{Identity: id}}
}

// AmbiguousError is the error for a document that describes several topics, or none, without a hint which of them is
// meant.
type AmbiguousError struct {
	URI    string
	Topics []Ref // the described topics; all topics if none is described
}

func (e *AmbiguousError) Error() string {
	if len(e.Topics) == 0 {
		return e.URI + ": there is no topic in it"
	}
	return fmt.Sprintf("%s: nothing says which of the topics in it this is about: %s", e.URI, listOf(e.Topics))
}

// ReadRecord reads the XTM document of a record whose source does not name its topic. The topic is the one with one of
// the hints as an identifier, such as the identifier of the record and the address of the document; or else the only
// one with names or occurrences; or else the only one that takes part in all associations.
func ReadRecord(ctx context.Context, r io.Reader, o xtm.Options, hints ...tmdm.Locator) (*Fragment, error) {
	m, err := readMap(ctx, r, o)
	if err != nil {
		return nil, err
	}
	topicSI, topic, err := m.find(Named{Identity: Identity{SubjectIdentifiers: hints, SubjectLocators: hints}})
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
			if a.Part(player) != AsType { // this is a statement about the instance
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

// describing returns the statements of the map about a topic.
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
func (m *Map) find(named Named) (Ref, *Topic, error) {
	for _, si := range named.SubjectIdentifiers {
		if t, err := m.Topic(si); t != nil || err != nil {
			return si, t, err
		}
	}
	for _, si := range named.SubjectIdentifiers {
		if t := m.withURI(si); t != nil {
			return m.ref(t), m.topic(t), nil
		}
	}
	for _, sl := range named.SubjectLocators {
		if t, err := m.TopicBySubjectLocator(sl); t != nil || err != nil {
			if err != nil {
				return "", nil, err
			}
			return t.TopicSI(), t, nil
		}
	}
	for _, iid := range callings(m.sp, named.ItemIdentifiers) {
		if t, ok := m.tm.ConstructByItemIdentifier(iid).(*tmdm.Topic); ok {
			return m.ref(t), m.topic(t), nil
		}
	}
	return "", nil, nil
}

// withURI returns the topic with a subject identifier whose URI equals that of si, because some documents cannot have
// IRIs.
func (m *Map) withURI(si Ref) *tmdm.Topic {
	uri := iri.ToURI(string(si))
	for _, n := range m.sorted {
		if slices.ContainsFunc(n.t.SubjectIdentifiers(), func(si Ref) bool { return iri.ToURI(string(si)) == uri }) {
			return n.t
		}
	}
	return nil
}

// ReadSnapshot reads the XTM document of a snapshot; o.Base is the source
// locator prefix.
func ReadSnapshot(ctx context.Context, r io.Reader, o xtm.Options) (*Map, error) {
	return readMap(ctx, r, o)
}

func readMap(ctx context.Context, r io.Reader, o xtm.Options) (*Map, error) {
	tm, err := xtm.Read(ctx, r, o)
	if err != nil {
		return nil, err
	}
	if err := identify(tm, string(o.Base)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	m, err := NewMap(tm, string(o.Base))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	return m, nil
}
