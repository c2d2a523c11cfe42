package fragment

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
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
	c := d.change
	live := new
	if live == nil {
		live = old
	}
	ref := live.TopicSI()
	associations, err := d.associations(ref)
	if err != nil {
		return err
	}
	switch {
	case new == nil:
		c.DeleteTopics = append(c.DeleteTopics, ref)
		return d.close(old)
	case old == nil:
		c.PutTopics = append(c.PutTopics, new)
		c.Added++
	case !SameTopic(old, new):
		c.PutTopics = append(c.PutTopics, new)
		c.Updated++
	case associations:
		c.Updated++
		d.provenance(old, new)
	default:
		d.provenance(old, new)
		return nil
	}
	c.Entries = append(c.Entries, Entry{TopicSI: ref, Topic: ref, Title: new.Title()})
	return nil
}

// provenance writes a topic that says the same as before if the document gave
// its statements other item identifiers. That is no news to subscribers, but
// what it gave away may by now be another statement's.
func (d *differ) provenance(old, new *Topic) {
	if !bytes.Equal(MarshalTopic(old), MarshalTopic(new)) {
		d.change.PutTopics = append(d.change.PutTopics, new)
	}
}

// close publishes that a TopicSI is nobody's TopicSI any more.
func (d *differ) close(old *Topic) error {
	c := d.change
	ref := old.TopicSI()
	owner, err := d.next.Topic(ref)
	if err != nil {
		return err
	}
	if owner != nil {
		c.Entries = append(c.Entries, Entry{TopicSI: ref, Topic: owner.TopicSI(), Title: owner.Title()})
		c.Updated++
		return nil
	}
	tombstone, err := remaining(old.Identity, d.next)
	if err != nil {
		return err
	}
	c.Entries = append(c.Entries, Entry{TopicSI: ref, Deleted: true, Title: old.Title(), Tombstone: tombstone})
	c.Deleted++
	return nil
}

// remaining returns the identifiers of id that no topic of next has.
func remaining(id Identity, next Source) (Identity, error) {
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

// InUseError says that a topic cannot be deleted because it still types, scopes
// or reifies something.
type InUseError struct {
	Topic Ref
	Users []string // some of what uses it, in words
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("fragment: topic %s is in use: %s", e.Topic, strings.Join(e.Users, "; "))
}

// maxUsers is how many users an InUseError names.
const maxUsers = 20

// Delete returns the change that deletes the topic with the TopicSI ref and its
// associations. A topic that types, scopes or reifies something else is not
// deleted: an [*InUseError] says what. mentions is the number of references to
// ref in prior other than as a player; only where it does not settle the
// question the whole state is read.
func Delete(prior Source, ref Ref, mentions int) (*Change, error) {
	topic, err := prior.Topic(ref)
	if err != nil {
		return nil, err
	}
	if topic == nil {
		return nil, fmt.Errorf("fragment: no topic has the subject identifier %s", ref)
	}
	if topic.TopicSI() != ref { // mentions says nothing about it then
		return nil, fmt.Errorf("fragment: %s is an identifier of the topic %s, not its TopicSI", ref, topic.TopicSI())
	}
	c := &Change{DeleteTopics: []Ref{ref}, Deleted: 1}
	own := 0
	count := func(r Ref) {
		if r == ref {
			own++
		}
	}
	topic.Mentions(count)
	players := map[Ref]bool{}
	for _, part := range Parts {
		for a, err := range prior.AssociationsOf(ref, part) {
			if err != nil {
				return nil, err
			}
			if part == AsType {
				return nil, inUse(prior, ref)
			}
			a.Mentions(count)
			c.DeleteAssociations = append(c.DeleteAssociations, a)
			for _, p := range a.Players() {
				if p != ref && a.Part(p) != AsType {
					players[p] = true
				}
			}
		}
	}
	if mentions > own {
		return nil, inUse(prior, ref)
	}
	c.Entries = append(c.Entries, Entry{TopicSI: ref, Deleted: true, Title: topic.Title(), Tombstone: topic.Identity})
	for p := range players {
		t, err := prior.Topic(p)
		if err != nil {
			return nil, err
		}
		if t != nil {
			c.Entries = append(c.Entries, Entry{TopicSI: p, Topic: p, Title: t.Title()})
			c.Updated++
		}
	}
	slices.SortFunc(c.Entries, func(a, b Entry) int { return strings.Compare(string(a.TopicSI), string(b.TopicSI)) })
	return c, nil
}

// inUse collects what uses the topic, as far as its own statements do not.
func inUse(src Source, ref Ref) error {
	e := &InUseError{Topic: ref}
	use := func(mentions func(func(Ref)), words func() string) {
		used := false
		mentions(func(r Ref) { used = used || r == ref })
		if used && len(e.Users) < maxUsers {
			e.Users = append(e.Users, words())
		}
	}
	for t, err := range src.Topics() {
		if err != nil {
			return err
		}
		if t.TopicSI() != ref {
			use(t.Mentions, func() string { return fmt.Sprintf("statements of %q", t.Title()) })
		}
		if len(e.Users) == maxUsers {
			return e
		}
	}
	for a, err := range src.Associations() {
		if err != nil {
			return err
		}
		class, instance, typed := a.TypeInstance()
		switch {
		case typed && class == ref && instance != ref:
			e.Users = append(e.Users, fmt.Sprintf("its instance %s", instance))
		case !slices.Contains(a.Players(), ref):
			use(a.Mentions, func() string { return fmt.Sprintf("an association of %s", strings.Join(texts(a.Players()), ", ")) })
		}
		if len(e.Users) >= maxUsers {
			return e
		}
	}
	return e
}

func texts(refs []Ref) []string {
	out := make([]string, len(refs))
	for i, r := range refs {
		out[i] = string(r)
	}
	return out
}
