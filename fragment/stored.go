package fragment

import (
	"fmt"
	"iter"
)

// Stored is a [Source] that keeps its records encoded and sorted. Comparing two of them reads both in parallel, which
// costs far less than queries for the associations of each topic, and decodes only records that differ.
type Stored interface {
	// StoredTopics iterates over all topics by TopicSI, ascending.
	StoredTopics() iter.Seq2[StoredTopic, error]

	// StoredAssociations begins to read the associations, player by player.
	StoredAssociations() StoredAssociations
}

// StoredTopic is a topic in its stored form, that of [MarshalTopic]. It is valid until the next one.
type StoredTopic struct{ TopicSI, Record []byte }

// StoredAssociations reads the associations that belong to one player after the other: all in which it takes part, but
// for type-instance associations in which it is the class, which belong to the instance.
type StoredAssociations interface {
	// Next returns the next association of the player, by part and key; nil after the last. Callers must pass players
	// in ascending order, and may skip players.
	Next(player Ref) (*StoredAssociation, error)

	// Close ends the reading. It must be called.
	Close()
}

// StoredAssociation is an association in its stored form, that of [MarshalAssociation], with the part of the player. It
// is valid until the next one. Record may be nil unless the player is the least one, because reading a large
// association for each of its players would take quadratic time.
type StoredAssociation struct {
	Part   Part
	Key    AssociationKey
	Record []byte
}

func (s *StoredAssociation) unmarshal() (*Association, error) {
	a, err := UnmarshalAssociation(s.Record)
	if err != nil {
		return nil, fmt.Errorf("association %x: %w", s.Key, err)
	}
	return a, nil
}

// storedForms returns the stored forms of src; it makes them if src has none.
func storedForms(src Source) Stored {
	if stored, ok := src.(Stored); ok {
		return stored
	}
	return marshalled{src}
}

// marshalled makes the stored forms of a source that is in memory.
type marshalled struct{ Source }

func (m marshalled) StoredTopics() iter.Seq2[StoredTopic, error] {
	return func(yield func(StoredTopic, error) bool) {
		for t, err := range m.Topics() {
			if err != nil {
				yield(StoredTopic{}, err)
				return
			}
			if !yield(StoredTopic{[]byte(t.TopicSI()), MarshalTopic(t)}, nil) {
				return
			}
		}
	}
}

func (m marshalled) StoredAssociations() StoredAssociations {
	return &marshalledAssociations{src: m.Source}
}

type marshalledAssociations struct {
	src    Source
	player Ref
	left   []StoredAssociation // of the player
}

func (m *marshalledAssociations) Next(player Ref) (*StoredAssociation, error) {
	if player != m.player {
		if err := m.ask(player); err != nil {
			return nil, err
		}
	}
	if len(m.left) == 0 {
		return nil, nil
	}
	next := &m.left[0]
	m.left = m.left[1:]
	return next, nil
}

func (m *marshalledAssociations) ask(player Ref) error {
	m.player, m.left = player, nil
	for _, part := range []Part{AsInstance, AsPlayer} {
		for a, err := range m.src.AssociationsOf(player, part) {
			if err != nil {
				return err
			}
			m.left = append(m.left, StoredAssociation{part, a.Key(), MarshalAssociation(a)})
		}
	}
	return nil
}

func (m *marshalledAssociations) Close() {}
