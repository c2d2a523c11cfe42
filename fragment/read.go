package fragment

import (
	"fmt"
	"io"

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
	m, err := readMap(r, o)
	if err != nil {
		return nil, err
	}
	topic, err := m.Topic(topicSI)
	if err != nil {
		return nil, err
	}
	if topic == nil {
		return nil, &MissingTopicError{o.URI, topicSI}
	}
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

// ReadSnapshot reads the XTM document of a snapshot; o.Base is the source
// locator prefix.
func ReadSnapshot(r io.Reader, o xtm.Options) (*Map, error) { return readMap(r, o) }

func readMap(r io.Reader, o xtm.Options) (*Map, error) {
	tm, err := xtm.Read(r, o)
	if err != nil {
		return nil, err
	}
	m, err := NewMap(tm, string(o.Base))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.URI, err)
	}
	return m, nil
}
