package fragment

import (
	"bytes"
	"cmp"
	"iter"

	"github.com/tmshare/tmshare/tmdm"
)

// Change is the difference between two states of a publisher's map: the records
// to write, and the entries that tell subscribers.
type Change struct {
	PutTopics          []*Topic
	DeleteTopics       []Ref // by TopicSI
	PutAssociations    []*Association
	DeleteAssociations []*Association
	Entries            []Entry // by TopicSI
	Added              int     // entries for topics that were not there before
	Updated            int     // entries for topics that were
	Deleted            int     // tombstones
}

// Empty reports whether nothing is to be published.
func (c *Change) Empty() bool { return len(c.Entries) == 0 }

// Entry is one fragment to publish.
type Entry struct {
	TopicSI Ref
	Deleted bool

	// Topic is the TopicSI of the topic that the fragment describes: TopicSI
	// itself, or in the closing entry of a former TopicSI that of its owner.
	Topic Ref
	Title string

	// Tombstone has the identifiers to list where Deleted is set.
	Tombstone Identity
}

// Diff compares the published state with the next one. A topic has changed when
// its identifiers, its statements or the associations in which it plays have,
// references written as TopicSIs; type-instance associations do not change the
// class. A TopicSI that ceases gets a closing entry: the fragment of the topic
// that has the identifier now, or else a tombstone.
//
// The item identifiers that documents give to statements are written along, but
// are no reason to publish: where nothing else changes, nothing need be written.
//
// It reads both states once, in order. Every reference in next must be the
// TopicSI of a topic in next.
func Diff(prior Source, next *Map) (*Change, error) {
	d := differ{prior: prior, next: next, change: &Change{}}
	for pair, err := range joinTopics(prior, next) {
		if err != nil {
			return nil, err
		}
		if err := d.topic(pair.old, pair.new); err != nil {
			return nil, err
		}
	}
	return d.change, nil
}

type differ struct {
	prior  Source
	next   *Map
	change *Change
}

// topic compares the two states of the topic with one TopicSI; either may be nil.
func (d *differ) topic(old, new *Topic) error {
	live := new
	if live == nil {
		live = old
	}
	associations, err := d.associations(live.TopicSI())
	if err != nil {
		return err
	}
	return d.change.topic(old, new, associations, d.next)
}

// identified finds topics by their identifiers.
type identified interface {
	Topic(si Ref) (*Topic, error)
	TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error)
}

// topic adds what is to be done about the topic with one TopicSI, of which either
// state may be nil; associations says that those in which it plays have changed.
func (c *Change) topic(old, new *Topic, associations bool, next identified) error {
	switch {
	case new == nil:
		c.DeleteTopics = append(c.DeleteTopics, old.TopicSI())
		return c.close(old, next)
	case old == nil:
		c.PutTopics = append(c.PutTopics, new)
		c.Added++
	case !SameTopic(old, new):
		c.PutTopics = append(c.PutTopics, new)
		c.Updated++
	case associations:
		c.Updated++
		c.provenance(old, new)
	default:
		c.provenance(old, new)
		return nil
	}
	c.Entries = append(c.Entries, Entry{TopicSI: new.TopicSI(), Topic: new.TopicSI(), Title: new.Title()})
	return nil
}

// provenance writes a topic that says the same as before if the document gave
// its statements other item identifiers. That is no news to subscribers, but
// what it gave away may by now be another statement's.
func (c *Change) provenance(old, new *Topic) {
	if !bytes.Equal(MarshalTopic(old), MarshalTopic(new)) {
		c.PutTopics = append(c.PutTopics, new)
	}
}

// close publishes that a TopicSI is nobody's TopicSI any more.
func (c *Change) close(old *Topic, next identified) error {
	ref := old.TopicSI()
	owner, err := next.Topic(ref)
	if err != nil {
		return err
	}
	if owner != nil {
		c.Entries = append(c.Entries, Entry{TopicSI: ref, Topic: owner.TopicSI(), Title: owner.Title()})
		c.Updated++
		return nil
	}
	tombstone, err := remaining(old.Identity, next)
	if err != nil {
		return err
	}
	c.Entries = append(c.Entries, Entry{TopicSI: ref, Deleted: true, Title: old.Title(), Tombstone: tombstone})
	c.Deleted++
	return nil
}

// remaining returns the identifiers of id that no topic of next has.
func remaining(id Identity, next identified) (Identity, error) {
	var left Identity
	for _, si := range id.SubjectIdentifiers {
		if t, err := next.Topic(si); err != nil {
			return left, err
		} else if t == nil {
			left.SubjectIdentifiers = append(left.SubjectIdentifiers, si)
		}
	}
	for _, sl := range id.SubjectLocators {
		if t, err := next.TopicBySubjectLocator(sl); err != nil {
			return left, err
		} else if t == nil {
			left.SubjectLocators = append(left.SubjectLocators, sl)
		}
	}
	return left, nil
}

// associations compares the associations of the topic with the TopicSI ref and
// reports whether they change it. Each association is recorded at the least of
// its players.
func (d *differ) associations(ref Ref) (changed bool, err error) {
	c := d.change
	for _, part := range Parts {
		for pair, err := range joinAssociations(d.prior.AssociationsOf(ref, part), d.next.AssociationsOf(ref, part)) {
			if err != nil {
				return false, err
			}
			same := pair.old != nil && pair.new != nil
			if same && bytes.Equal(MarshalAssociation(pair.old), MarshalAssociation(pair.new)) {
				continue
			}
			same = same && SameAssociation(pair.old, pair.new)
			changed = changed || !same && part != AsType
			switch {
			case pair.new == nil && pair.old.Players()[0] == ref:
				c.DeleteAssociations = append(c.DeleteAssociations, pair.old)
			case pair.new != nil && pair.new.Players()[0] == ref:
				c.PutAssociations = append(c.PutAssociations, pair.new)
			}
		}
	}
	return changed, nil
}

type topicPair struct{ old, new *Topic }

// joinTopics walks the topics of two states side by side.
func joinTopics(prior, next Source) iter.Seq2[topicPair, error] {
	return func(yield func(topicPair, error) bool) {
		pull, stop := iter.Pull2(next.Topics())
		defer stop()
		news, err, more := pull()
		for old, oldErr := range prior.Topics() {
			for more && err == nil && oldErr == nil && news.TopicSI() < old.TopicSI() {
				if !yield(topicPair{new: news}, nil) {
					return
				}
				news, err, more = pull()
			}
			if err = cmp.Or(oldErr, err); err != nil {
				yield(topicPair{}, err)
				return
			}
			pair := topicPair{old: old}
			if more && news.TopicSI() == old.TopicSI() {
				pair.new = news
				news, err, more = pull()
			}
			if !yield(pair, nil) {
				return
			}
		}
		for ; more; news, err, more = pull() {
			if !yield(topicPair{new: news}, err) || err != nil {
				return
			}
		}
	}
}

type associationPair struct{ old, new *Association }

// joinAssociations walks the associations of one topic in two states side by
// side. It keeps those of next, which comes out of memory anyway.
func joinAssociations(prior, next iter.Seq2[*Association, error]) iter.Seq2[associationPair, error] {
	return func(yield func(associationPair, error) bool) {
		var news []keyedAssociation
		for a, err := range next {
			if err != nil {
				yield(associationPair{}, err)
				return
			}
			news = append(news, keyedAssociation{a.Key(), a})
		}
		for old, err := range prior {
			if err != nil {
				yield(associationPair{}, err)
				return
			}
			order := 1
			key := keyedAssociation{old.Key(), old}
			for len(news) > 0 {
				if order = compareKeys(news[0], key); order >= 0 {
					break
				}
				if !yield(associationPair{new: news[0].a}, nil) {
					return
				}
				news = news[1:]
			}
			pair := associationPair{old: old}
			if len(news) > 0 && order == 0 {
				pair.new, news = news[0].a, news[1:]
			}
			if !yield(pair, nil) {
				return
			}
		}
		for _, n := range news {
			if !yield(associationPair{new: n.a}, nil) {
				return
			}
		}
	}
}
