// Package derive keeps a published state in step with the merged view of several sources.
package derive

import (
	"context"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Update is the change from a published state to a view.
type Update struct {
	Change *fragment.Change

	// Later are topics of which only the identifiers are published yet, because the update would have become too large.
	// They must be dirty in a later update.
	Later []fragment.Ref
}

// Between returns the update of the topics of the view with one of the dirty subject identifiers. These are those of
// all topics that were put or deleted in a source, and of all players of such associations. The published state must
// equal the view for all other topics, or their identifiers must be dirty in a later update. Restated are subject
// identifiers of topics whose names and occurrences without reifiers alone have changed in sources. The filter must be
// of the view, too.
//
// A published topic exists if a source announces it, or if something published refers to it. It keeps its TopicSI while
// this is one of its identifiers. If several published topics are merged, the least TopicSI survives; a new topic has
// that of the view.
//
// The cost depends on the dirty topics, on those which share identifiers with these now or did before, on their
// associations, and on the restated topics without theirs. If identifiers leave a topic that types, scopes or reifies
// something, the published state is read for its mentions. most is the number of related topics, referred to by
// published ones, after which only their identifiers are published. If ctx ends first, the error is its cause.
func Between(ctx context.Context, prior fragment.Published, view *merge.View, f *Filter, most int,
	restated []fragment.Ref, dirty ...fragment.Ref) (*Update, error) {
	u := &updater{
		ctx: ctx, prior: prior, view: view, filter: f, most: most,
		looked: map[fragment.Ref]bool{}, names: map[fragment.Ref]fragment.Ref{},
		targets: map[fragment.Ref]*fragment.Topic{}, played: map[fragment.Ref]bool{}, checked: map[fragment.Ref]bool{},
		subjects: map[fragment.Ref]*subject{},
		removed:  associations{}, added: associations{},
		counts: counts{map[fragment.Ref]int{}, map[fragment.Ref]int{}, map[fragment.Ref]int{}},
		queue:  slices.Clone(dirty), reifiers: map[fragment.Ref]bool{},
	}
	for _, si := range restated {
		if err := u.restate(si); err != nil {
			return nil, err
		}
	}
	for {
		if err := u.close(); err != nil {
			return nil, err
		}
		if err := u.findMentions(); err != nil {
			return nil, err
		}
		if len(u.queue) > 0 {
			continue
		}
		if err := u.build(); err != nil {
			return nil, err
		}
		if len(u.queue) > 0 {
			continue
		}
		if err := u.leaveOut(); err != nil {
			return nil, err
		}
		if err := u.findUnreferred(); err != nil {
			return nil, err
		}
		if len(u.queue) == 0 {
			return u.update()
		}
	}
}

type associations map[fragment.AssociationKey]*fragment.Association

// updater makes an update.
type updater struct {
	ctx    context.Context
	prior  fragment.Published
	view   *merge.View
	filter *Filter
	most   int // of topics that are still to be drawn in

	queue  []fragment.Ref // subject identifiers to look at
	looked map[fragment.Ref]bool
	// TopicSIs that topics of the view have when they are published, by those of the view
	names map[fragment.Ref]fragment.Ref

	targets  map[fragment.Ref]*fragment.Topic // published topics that have one of the identifiers, by TopicSI
	played   map[fragment.Ref]bool            // those of them whose associations are in removed
	checked  map[fragment.Ref]bool            // those of them that were checked for identifiers that leave
	subjects map[fragment.Ref]*subject        // topics of the view that have one, by TopicSI of the view
	removed  associations                     // those of targets
	added    associations                     // those of subjects
	counts   counts
	reifiers map[fragment.Ref]bool // of built items, by TopicSI; true: other mentions were searched
}

// subject is a topic of the view. Where no source has a record of it, it has one identifier.
type subject struct {
	ref, name fragment.Ref // TopicSI in the view, and when it is published
	identity  fragment.Identity
	bare      bool // only the identity is published yet
	restated  bool // its identity and associations are unchanged

	record    *fragment.Topic // as it is published, once it is built
	played    bool            // its associations are in added
	announced bool            // published even without references
	stated    bool            // the record has more than the identity
	gone      bool            // not published, and its mentions are not counted
}

// counts are numbers of references.
type counts struct {
	before map[fragment.Ref]int // mentions in removed records
	change map[fragment.Ref]int // increase afterwards
	plays  map[fragment.Ref]int // players of added associations
}

// close finds all topics, published and of the view, with an identifier in the queue, and those that share identifiers
// with these.
func (u *updater) close() error {
	for len(u.queue) > 0 {
		si := u.queue[len(u.queue)-1]
		u.queue = u.queue[:len(u.queue)-1]
		if u.looked[si] {
			continue
		}
		u.looked[si] = true
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
		if err := u.lookAtPublished(si); err != nil {
			return err
		}
		if _, err := u.lookAtView(si); err != nil {
			return err
		}
	}
	return nil
}

func (u *updater) lookAtPublished(si fragment.Ref) error {
	t, err := u.prior.Topic(si)
	if t == nil || err != nil || u.played[t.TopicSI()] {
		return err
	}
	u.played[t.TopicSI()] = true
	u.replace(t)
	for a, err := range fragment.PlayedBy(u.prior, t.TopicSI()) {
		if err != nil {
			return err
		}
		if key := a.Key(); u.removed[key] == nil {
			u.removed[key] = a
			a.Mentions(u.counts.remove)
		}
	}
	u.queue = append(u.queue, t.SubjectIdentifiers...)
	for _, sl := range t.SubjectLocators {
		in, err := u.view.TopicBySubjectLocator(sl)
		if err != nil {
			return err
		}
		if in != nil {
			u.queue = append(u.queue, in.TopicSI())
		}
	}
	return nil
}

// replace removes a published topic to be replaced by that of the view.
func (u *updater) replace(t *fragment.Topic) {
	if u.targets[t.TopicSI()] == nil {
		u.targets[t.TopicSI()] = t
		t.Mentions(u.counts.remove)
	}
}

// restate builds only the names and occurrences of a topic. If the published topic is another one, it builds all.
func (u *updater) restate(si fragment.Ref) error {
	t, err := u.prior.Topic(si)
	if err != nil {
		return err
	}
	id, err := u.view.Identity(si)
	if err != nil {
		return err
	}
	if t == nil || id == nil {
		u.enqueue(si)
		return nil
	}
	s := &subject{ref: id.TopicSI(), identity: *id, restated: true}
	if s.name, err = u.name(s.ref); err != nil {
		return err
	}
	if is := identity(s); !slices.Equal(is.SubjectIdentifiers, t.SubjectIdentifiers) ||
		!slices.Equal(is.SubjectLocators, t.SubjectLocators) {
		u.enqueue(si)
		return nil
	}
	u.replace(t)
	u.subjects[s.ref] = s
	return nil
}

func (u *updater) lookAtView(si fragment.Ref) (*subject, error) {
	id, err := u.view.Identity(si)
	if err != nil {
		return nil, err
	}
	if id == nil {
		id = &fragment.Identity{SubjectIdentifiers: []fragment.Ref{si}}
	}
	s := u.subjects[id.TopicSI()]
	if s != nil && !s.restated {
		return s, nil
	}
	if s == nil {
		s = &subject{ref: id.TopicSI(), identity: *id}
		if s.name, err = u.name(s.ref); err != nil {
			return nil, err
		}
		u.subjects[s.ref] = s
	}
	s.restated = false
	u.queue = append(u.queue, id.SubjectIdentifiers...)
	for _, sl := range id.SubjectLocators {
		was, err := u.prior.TopicBySubjectLocator(sl)
		if err != nil {
			return nil, err
		}
		if was != nil {
			u.queue = append(u.queue, was.TopicSI())
		}
	}
	return s, nil
}

var vocabulary = []fragment.Ref{tmdm.PSITypeInstance, tmdm.PSIType, tmdm.PSIInstance}

// name returns the new TopicSI of a topic, by its TopicSI in the view. Those of the vocabulary are unchanged, because
// the code compares associations by them.
func (u *updater) name(ref fragment.Ref) (fragment.Ref, error) {
	if name, ok := u.names[ref]; ok {
		return name, nil
	}
	id, err := u.view.Identity(ref)
	if err != nil {
		return "", err
	}
	name := fragment.Ref("")
	if id != nil && !slices.Contains(vocabulary, ref) {
		for _, si := range id.SubjectIdentifiers {
			if name != "" && name < si || slices.Contains(vocabulary, si) {
				continue
			}
			t, err := u.prior.Topic(si)
			if err != nil {
				return "", err
			}
			if t != nil && t.TopicSI() == si {
				name = si
			}
		}
	}
	if name == "" {
		name = ref
	}
	u.names[ref] = name
	return name, nil
}

// nameOf returns the TopicSI that the topic with a subject identifier gets.
func (u *updater) nameOf(si fragment.Ref) (fragment.Ref, error) {
	id, err := u.view.Identity(si)
	if id == nil || err != nil {
		return si, err
	}
	return u.name(id.TopicSI())
}

func (c *counts) remove(ref fragment.Ref) { c.before[ref]++; c.change[ref]-- }

func (c *counts) add(ref fragment.Ref) { c.change[ref]++ }

func (c *counts) leaveOut(ref fragment.Ref) { c.change[ref]-- }
