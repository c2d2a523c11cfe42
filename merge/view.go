package merge

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// View is the merged view of several sources as a source, computed on demand. It equals the map of [Join]: records that
// share identifiers are one topic, transitively, and equal statements are one.
//
// The TopicSI of a merged topic is the least among those of its records; those of the vocabulary (type-instance, type,
// instance) precede all others, because the code compares records by them. All references are rewritten to it. A
// reference that no record resolves is unchanged: it denotes a topic with that one subject identifier, which Topic and
// Topics do not return. A snapshot has types with the records of their instances, so it lacks those of an instance
// without a record; sources have records of all instances.
//
// A view of one source that is [Plain] looks up no references.
//
// Several unequal statements keep an item identifier that a document gave to all of them, because finding them would
// need an index. Readers of a written view assign it to the first of them.
//
// # Cost
//
// The cost of a topic is reading its records, a look-up of each of its identifiers in each other source, and one of
// each reference that is not cached. Topics and Associations are streams whose memory does not grow with the map
// (WriteSnapshot of a view needs no more). They read an association with each of its players, except its class.
// AssociationsOf holds at most some 65,000 associations; it reads a topic with more several times.
//
// If equal statements have different reifiers, those are one topic. The view computes this at its first read, from the
// records with reified statements: at no cost if there are none and the sources are [Reified], else by one reading of
// the records. It needs memory for these statements meanwhile, and keeps only the merged reifiers and the statements
// about which the sources disagree.
//
// The sources must not change while the view is in use. A View is not safe for
// concurrent use.
type View struct {
	ctx     context.Context   // of all that is read
	parts   []Part            // by prefix
	sources []fragment.Source // those of the parts; last joined
	only    fragment.Source   // the one source that is the view as it is, if any

	refs map[fragment.Ref]resolved // those met lately
	last *subject                  // the last that was found, identities at least

	settled    bool
	plain      bool                      // there is one source, whose records are those of the view
	kept       *Kept                     // of an earlier view, if its settlements hold for this one
	joined     Memory                    // a record for each set of reifiers that are one
	chosen     map[string]fragment.Ref   // reifiers of statements about which the sources disagree, by key
	about      map[string][]fragment.Ref // the topics of these statements, by subject identifier
	conflicts  []*tmdm.ReifierError
	vocabulary bool // type-instance associations may differ from the source's
}

// NewView returns the merged view of the parts. One part alone that is Published
// and without Claims is the view as it is, at no cost. If ctx ends before reifiers are joined, its cause is the error
// of the first read.
func NewView(ctx context.Context, parts ...Part) *View {
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(a.SP, b.SP) })
	v := &View{ctx: ctx, parts: parts, refs: map[fragment.Ref]resolved{}}
	if len(parts) == 1 && parts[0].Published && !parts[0].Claims {
		v.only = parts[0].Source
	}
	for _, p := range parts {
		v.sources = append(v.sources, p.Source)
	}
	v.sources = append(v.sources, &v.joined)
	return v
}

// Parts returns the parts in the order to which the indexes of [Claims] refer:
// by prefix.
func (v *View) Parts() []Part { return v.parts }

// Conflicts returns the conflicts between reifiers of the sources: see [Join].
func (v *View) Conflicts() ([]*tmdm.ReifierError, error) {
	if v.only != nil {
		return nil, nil
	}
	err := v.settle()
	return v.conflicts, err
}

// Topic implements [fragment.Source].
func (v *View) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if v.only != nil {
		return v.only.Topic(si)
	}
	if err := v.settle(); err != nil {
		return nil, err
	}
	s, err := v.subject(true, si)
	if err != nil || len(s.members) == 0 {
		return nil, err
	}
	return v.topic(s)
}

// Identity implements [fragment.Identifier].
func (v *View) Identity(si fragment.Ref) (*fragment.Identity, error) {
	if v.only != nil {
		if t, err := v.only.Topic(si); t == nil || err != nil {
			return nil, err
		} else {
			return &t.Identity, nil
		}
	}
	if err := v.settle(); err != nil {
		return nil, err
	}
	s, err := v.subject(false, si)
	if err != nil || len(s.members) == 0 {
		return nil, err
	}
	id := s.identity()
	return &id, nil
}

// TopicBySubjectLocator implements [fragment.Source].
func (v *View) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if v.only != nil {
		return v.only.TopicBySubjectLocator(sl)
	}
	if err := v.settle(); err != nil {
		return nil, err
	}
	for _, src := range v.sources {
		if t, err := src.TopicBySubjectLocator(sl); err != nil {
			return nil, err
		} else if t != nil {
			return v.Topic(t.TopicSI())
		}
	}
	return nil, nil
}

// Topics implements [fragment.Source]. It reads the records of all sources in order, and yields a merged topic at the
// position of its TopicSI.
func (v *View) Topics() iter.Seq2[*fragment.Topic, error] {
	if v.only != nil {
		return v.only.Topics()
	}
	return func(yield func(*fragment.Topic, error) bool) {
		for s, err := range v.subjects() {
			var t *fragment.Topic
			if err == nil {
				t, err = v.topic(s)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// subjects iterates over all topics that have a record, with their records, in
// order.
func (v *View) subjects() iter.Seq2[*subject, error] {
	return func(yield func(*subject, error) bool) {
		if err := v.settle(); err != nil {
			yield(nil, err)
			return
		}
		heads := make([]head, 0, len(v.sources))
		for i, src := range v.sources {
			next, stop := iter.Pull2(src.Topics())
			defer stop()
			h := head{next: next, member: member{part: i}}
			if err := h.advance(); err != nil {
				yield(nil, err)
				return
			}
			heads = append(heads, h)
		}
		for {
			least := fragment.Ref("")
			for i := range heads {
				if t := heads[i].topic; t != nil && (least == "" || t.TopicSI() < least) {
					least = t.TopicSI()
				}
			}
			if least == "" {
				return
			}
			var members []member
			for i := range heads {
				if t := heads[i].topic; t != nil && t.TopicSI() == least {
					members = append(members, heads[i].member)
					if err := heads[i].advance(); err != nil {
						yield(nil, err)
						return
					}
				}
			}
			s, err := v.subject(true, least, members...)
			if err != nil {
				yield(nil, err)
				return
			}
			if s.ref == least && !yield(s, nil) {
				return
			}
		}
	}
}

// head is the next record of a source.
type head struct {
	member
	next func() (*fragment.Topic, error, bool)
}

func (h *head) advance() error {
	t, err, ok := h.next()
	if !ok || err != nil {
		h.topic = nil
		return err
	}
	h.topic, h.id = t, &t.Identity
	return nil
}
