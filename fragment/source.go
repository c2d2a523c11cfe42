package fragment

import (
	"iter"

	"github.com/tmshare/tmshare/tmdm"
)

// Source reads the records of one source in one state. The records that it returns are canonical and must not
// be changed. Iterations stop at the first error.
type Source interface {
	// Topic returns the topic with the subject identifier, or nil.
	Topic(si Ref) (*Topic, error)

	// TopicBySubjectLocator returns the topic with the subject locator, or nil.
	TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error)

	// Topics iterates over all topics by TopicSI, ascending.
	Topics() iter.Seq2[*Topic, error]

	// AssociationsOf iterates over the associations in which the topic with the subject identifier takes the given
	// part, by key.
	AssociationsOf(player Ref, part Part) iter.Seq2[*Association, error]

	// Associations iterates over all associations, each once.
	Associations() iter.Seq2[*Association, error]
}

// Find returns the topic that an absolute IRI identifies, and the locator of the topic ([tmdm.Named]) that matches.
// Without a topic, the locator is the normal form of the IRI.
func Find(in Lookup, s string) (ref Ref, t *Topic, err error) {
	refs, err := tmdm.Named(s)
	for _, ref = range refs {
		if t, err = in.Topic(ref); t != nil || err != nil {
			break
		}
	}
	return ref, t, err
}

// Select iterates over those records of an iteration that are accepted.
func Select[T any](all iter.Seq2[*T, error], accept func(*T) bool) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for x, err := range all {
			if (err != nil || accept(x)) && (!yield(x, err) || err != nil) {
				return
			}
		}
	}
}

// Identifier is a [Source] that reads the identifiers of a topic at a lower cost than the whole record, as stubs need.
type Identifier interface {
	// Identity returns the identifiers of the topic with the subject
	// identifier, or nil.
	Identity(si Ref) (*Identity, error)
}

// Players describes a [Source] that gives in one go the associations in which a subject identifier names a player,
// those AsInstance first, then those AsPlayer.
type Players interface {
	PlayedBy(player Ref) iter.Seq2[*Association, error]
}

// PlayedBy iterates over the associations of src in which the subject identifier names a player that is not only a
// class.
func PlayedBy(src Source, player Ref) iter.Seq2[*Association, error] {
	if all, ok := src.(Players); ok {
		return all.PlayedBy(player)
	}
	return func(yield func(*Association, error) bool) {
		for _, part := range []Part{AsInstance, AsPlayer} {
			for a, err := range src.AssociationsOf(player, part) {
				if !yield(a, err) || err != nil {
					return
				}
			}
		}
	}
}

// Expecting describes a [Source] that reads much at once for less than it costs one by one.
type Expecting interface {
	// Expect prefetches topics by some of their identifiers, and their associations.
	Expect(sis []Ref, sls []tmdm.Locator) error
}

func expect(src Source, sis []Ref, sls []tmdm.Locator) error {
	if expecting, ok := src.(Expecting); ok {
		return expecting.Expect(sis, sls)
	}
	return nil
}

// identityOf returns the identifiers of the topic with the subject identifier, if there is one.
func identityOf(src Source, si Ref) (Identity, bool, error) {
	switch src := src.(type) {
	case *passing: // without allocation, because stubs are many
		id, ok := src.identityOf(si)
		return id, ok, nil
	case Identifier:
		id, err := src.Identity(si)
		if id == nil || err != nil {
			return Identity{}, false, err
		}
		return *id, true, nil
	}
	t, err := src.Topic(si)
	if t == nil || err != nil {
		return Identity{}, false, err
	}
	return t.Identity, true, nil
}

// Record is a topic or an association; the other one is nil.
type Record struct {
	Topic       *Topic
	Association *Association
}

// Records iterates over all records of src: the topics, then the associations.
func Records(src Source) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for t, err := range src.Topics() {
			if !yield(Record{Topic: t}, err) || err != nil {
				return
			}
		}
		for a, err := range src.Associations() {
			if !yield(Record{Association: a}, err) || err != nil {
				return
			}
		}
	}
}
