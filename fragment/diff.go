package fragment

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/tmshare/tmshare/tmdm"
)

// Change is the difference between two states of a publisher's map: the records to write, and the entries for the feed.
type Change struct {
	PutTopics          []*Topic
	DeleteTopics       []Ref // by TopicSI
	PutAssociations    []*Association
	DeleteAssociations []*Association
	Entries            []Entry // by TopicSI
	Added              int     // entries for topics that were not there before
	Updated            int     // entries for topics that were
	Deleted            int     // tombstones

	Author, Note string // of the change; "" if not given

	Renumbered int // topics that live by their ids in the document, and have other ones than before; see package losses
}

// Empty reports whether there is nothing to publish.
func (c *Change) Empty() bool { return len(c.Entries) == 0 }

// Entry is one fragment to publish.
type Entry struct {
	TopicSI Ref
	Deleted bool

	// Topic is the TopicSI of the topic that the fragment describes: TopicSI itself, or in the closing entry of a
	// former TopicSI that of its owner.
	Topic Ref
	Title string

	// Via names the source entries in other feeds (RFC 4287 §4.2.7.2, The "rel" Attribute).
	Via []string

	// Covered states that a follower need not fetch the fragment, see [Change.Cover].
	Covered bool

	// Tombstone has the identifiers to list where Deleted is set.
	Tombstone Identity
}

// Write writes the document of the entry: [WriteTombstone] for a deletion, or else [Write] of the topic in src.
func (e *Entry) Write(w io.Writer, src Source, form Form) error {
	if e.Deleted {
		return WriteTombstone(w, e.Tombstone, form)
	}
	return Write(w, src, e.Topic, form)
}

// Diff compares the published state with the next one. A topic has changed if its identifiers, its statements or the
// associations in which it plays have, with references as TopicSIs; type-instance associations do not change the class.
// A TopicSI that ceases gets a closing entry: the fragment of the topic that has the identifier now, or else a
// tombstone.
//
// Diff writes changed item identifiers of statements along with other changes, but does not publish because of them
// alone.
//
// It reads both states once, in order, including associations with many roles, and calls see for each topic of either.
// Every reference in next must be the TopicSI of a topic in next. If ctx ends first, the error is its cause.
func Diff(ctx context.Context, prior Source, next *Map, see ...func(*Compared)) (*Change, error) {
	stored := storedForms(prior)
	d := differ{ctx: ctx, associations: stored.StoredAssociations(), next: next, see: see, change: &Change{},
		differ: map[AssociationKey]bool{}}
	defer d.associations.Close()
	news := newAhead(next)
	defer news.batches.Stop()
	for old, err := range stored.StoredTopics() {
		if err != nil {
			return nil, err
		}
		new := news.peek()
		for ; new != nil && string(new.ref) < string(old.TopicSI); new = news.peek() {
			if err := d.topic(nil, new); err != nil {
				return nil, err
			}
			news.step()
		}
		if new == nil || string(new.ref) != string(old.TopicSI) {
			err = d.topic(&old, nil)
		} else {
			err = d.topic(&old, new)
			news.step()
		}
		if err != nil {
			return nil, err
		}
	}
	for new := news.peek(); new != nil; new = news.peek() {
		if err := d.topic(nil, new); err != nil {
			return nil, err
		}
		news.step()
	}
	return d.change, nil
}

// Compared is the topic with one TopicSI in both states. It is valid until the next one is seen.
type Compared struct {
	TopicSI       Ref
	Old, New      *Topic // nil where it is not there, and both where the records are equal
	Before, After StatementCounts
}

// StatementCounts are the numbers of a topic's statements in a source:
// names and occurrences; types; other associations
type StatementCounts struct{ Statements, Types, Associations int }

// Play counts an association in which the topic takes part as part.
func (s *StatementCounts) Play(part Part) {
	if part == AsInstance {
		s.Types++
	} else {
		s.Associations++
	}
}

// differ compares stored forms: nearly all that is compared is equal, and so need not be decoded.
type differ struct {
	ctx          context.Context
	associations StoredAssociations
	next         *Map
	see          []func(*Compared)
	met          Compared
	change       *Change
	// associations whose content differs, added when their least player is compared
	differ map[AssociationKey]bool
}

// topic compares the two states of the topic with one TopicSI; either may be nil.
func (d *differ) topic(stored *StoredTopic, next *nextTopic) error {
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	d.met = Compared{}
	err := d.compare(stored, next)
	for i := 0; i < len(d.see) && err == nil; i++ {
		d.see[i](&d.met)
	}
	return err
}

func (d *differ) compare(stored *StoredTopic, next *nextTopic) error {
	if stored != nil && next != nil && bytes.Equal(stored.Record, next.record()) {
		d.met.TopicSI = next.ref
		d.met.Before.Statements = len(next.t.Names()) + len(next.t.Occurrences())
		d.met.After = d.met.Before
		changed, err := d.compareAssociations(next.ref, next)
		if err == nil && changed {
			same := d.next.topic(next.t)
			err = d.change.topic(same, same, true, d.next)
		}
		return err
	}
	var old, new *Topic
	var ref Ref
	if next != nil {
		new, ref = d.next.topic(next.t), next.ref
		d.met.After.Statements = len(new.Names) + len(new.Occurrences)
	}
	if stored != nil {
		var err error
		if old, err = UnmarshalTopic(stored.Record); err != nil {
			return fmt.Errorf("topic %s: %w", stored.TopicSI, err)
		}
		ref = old.TopicSI()
		d.met.Before.Statements = len(old.Names) + len(old.Occurrences)
	}
	d.met.TopicSI, d.met.Old, d.met.New = ref, old, new
	changed, err := d.compareAssociations(ref, next)
	if err != nil {
		return err
	}
	return d.change.topic(old, new, changed, d.next)
}

// identified finds topics by their identifiers.
type identified interface {
	Topic(si Ref) (*Topic, error)
	TopicBySubjectLocator(sl tmdm.Locator) (*Topic, error)
}

// topic adds the changes of the topic with one TopicSI; old or new may be nil. associations reports whether the
// associations in which it plays have changed.
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

// provenance writes a topic with unchanged content if the document gave its statements other item identifiers.
// Subscribers need no entry, but another statement may have a former identifier now.
func (c *Change) provenance(old, new *Topic) {
	if !bytes.Equal(MarshalTopic(old), MarshalTopic(new)) {
		c.PutTopics = append(c.PutTopics, new)
	}
}

// close publishes that a TopicSI ceases.
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

// compareAssociations compares the associations that belong to the topic with the TopicSI ref, which is not there any
// more where next is nil, and reports whether they change it. Type-instance associations are recorded at the instance,
// all others at the least of their players.
func (d *differ) compareAssociations(ref Ref, next *nextTopic) (changed bool, err error) {
	var news []playing
	if next != nil {
		news = next.playing()
		for i := range news {
			d.met.After.Play(news[i].part)
		}
	}
	for {
		old, err := d.associations.Next(ref)
		if err != nil {
			return false, err
		}
		if old == nil {
			break
		}
		d.met.Before.Play(old.Part)
		order := 1
		for len(news) > 0 {
			if order = news[0].compare(old.Part, &old.Key); order >= 0 {
				break
			}
			d.put(ref, &news[0])
			changed = true
			news = news[1:]
		}
		if order != 0 {
			if err := d.delete(ref, old); err != nil {
				return false, err
			}
			changed = true
			continue
		}
		new := &news[0]
		news = news[1:]
		if old.Record == nil || new.elsewhere {
			changed = changed || d.differ[old.Key]
			continue
		}
		if bytes.Equal(old.Record, next.formOf(new.form)) {
			continue
		}
		was, err := old.unmarshal()
		if err != nil {
			return false, err
		}
		if !SameAssociation(was, d.next.association(new.a)) {
			changed, d.differ[old.Key] = true, true
		}
		d.put(ref, new)
	}
	for i := range news {
		d.put(ref, &news[i])
		changed = true
	}
	return changed, nil
}

// put writes an association of the topic with the TopicSI ref, if it is recorded there.
func (d *differ) put(ref Ref, p *playing) {
	if p.elsewhere {
		return
	}
	if a := d.next.association(p.a); p.part == AsInstance || a.Players()[0] == ref {
		d.change.PutAssociations = append(d.change.PutAssociations, a)
	}
}

// delete is the opposite of put.
func (d *differ) delete(ref Ref, old *StoredAssociation) error {
	if old.Record == nil {
		return nil
	}
	a, err := old.unmarshal()
	if err == nil && (old.Part == AsInstance || a.Players()[0] == ref) {
		d.change.DeleteAssociations = append(d.change.DeleteAssociations, a)
	}
	return err
}
