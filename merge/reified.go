package merge

import (
	"iter"
	"maps"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// Reified may be implemented by a source that finds the records with reified statements at a lower cost than reading
// all records. A [View] uses it.
type Reified interface {
	// ReifiedTopics iterates over the topics that have a name, a variant or an occurrence with a reifier, in the
	// order of Topics.
	ReifiedTopics() iter.Seq2[*fragment.Topic, error]

	// ReifiedAssociations iterates over the associations that have a reifier,
	// or a role that has one, in the order of Associations.
	ReifiedAssociations() iter.Seq2[*fragment.Association, error]
}

// Plain may be implemented by a source that knows whether its records equal those of its view: they refer to topics by
// TopicSIs only, and no association has a role twice. After a topic gets another TopicSI, references use the former one
// until the referring topics have changed as well.
type Plain interface {
	IsPlain() (bool, error)
}

func reifiedTopics(src fragment.Source) iter.Seq2[*fragment.Topic, error] {
	if r, ok := src.(Reified); ok {
		return r.ReifiedTopics()
	}
	return fragment.Select(src.Topics(), (*fragment.Topic).HasReifiers)
}

func reifiedAssociations(src fragment.Source) iter.Seq2[*fragment.Association, error] {
	if r, ok := src.(Reified); ok {
		return r.ReifiedAssociations()
	}
	return fragment.Select(src.Associations(), (*fragment.Association).HasReifiers)
}

// settle finds out, once, which reifiers are one topic because the statements that they reify are equal, and about
// which statements the sources disagree. It joins the reified statements only, because the others have no effect on
// this.
func (v *View) settle() error {
	if v.settled {
		return nil
	}
	*v = View{ctx: v.ctx, parts: v.parts, sources: v.sources, only: v.only, kept: v.kept,
		refs: map[fragment.Ref]resolved{}} // without results of a failed attempt
	if v.kept != nil {
		v.chosen, v.vocabulary = v.kept.Chosen, v.kept.Vocabulary
	} else if err := v.settleReifiers(); err != nil {
		return err
	}
	for _, psi := range vocabulary {
		s, err := v.subject(false, psi)
		if err != nil {
			return err
		}
		v.vocabulary = v.vocabulary || len(s.sis.list) > 1
	}
	if len(v.parts) == 1 && v.joined.topics.Len() == 0 && len(v.chosen) == 0 {
		if src, ok := v.parts[0].Source.(Plain); ok {
			var err error
			if v.plain, err = src.IsPlain(); err != nil {
				return err
			}
		}
	}
	v.settled = true
	return nil
}

// reifiedRecords are the records of one part with reified statements, reduced to these.
type reifiedRecords struct {
	topics       []*fragment.Topic
	associations []*fragment.Association
}

func (v *View) settleReifiers() error {
	var all []reifiedRecords
	found := false
	for _, p := range v.parts {
		var records reifiedRecords
		for t, err := range reifiedTopics(p.Source) {
			if err != nil {
				return err
			}
			records.topics = append(records.topics, t.ReifiedOnly())
		}
		for a, err := range reifiedAssociations(p.Source) {
			if err != nil {
				return err
			}
			records.associations = append(records.associations, a)
			v.vocabulary = v.vocabulary || a.Type == tmdm.PSITypeInstance // another may be equal and not reified
		}
		found = found || len(records.topics)+len(records.associations) > 0
		all = append(all, records)
	}
	if !found {
		return nil
	}
	j := joiner{tm: tmdm.New()}
	before, err := v.identify(&j, all)
	if err != nil {
		return err
	}
	for i, records := range all {
		p := Part{SP: v.parts[i].SP}
		for _, t := range records.topics {
			j.topicStatements(p, t)
		}
		inTopics := len(j.reifiers)
		for _, a := range records.associations {
			j.association(p, a)
		}
		j.orderReifiers(inTopics)
	}
	if v.conflicts, err = j.reify(v.ctx); err != nil {
		return err
	}
	if err := v.joinReifiers(j.tm, before); err != nil {
		return err
	}
	return v.chooseReifiers(j.tm, all)
}

// identify passes all topics of the records to the joiner, in the order of Join. It returns their TopicSIs in the view
// before reifiers are merged.
func (v *View) identify(j *joiner, all []reifiedRecords) (map[fragment.Ref]bool, error) {
	before := map[fragment.Ref]bool{}
	identities := make([]map[fragment.Ref]*fragment.Identity, len(v.parts))
	for i := range identities {
		identities[i] = map[fragment.Ref]*fragment.Identity{}
	}
	seen := map[fragment.Ref]bool{}
	var failed error
	speak := func(ref fragment.Ref) {
		if seen[ref] || failed != nil {
			return
		}
		seen[ref] = true
		s, err := v.subject(false, ref)
		if err != nil {
			failed = err
			return
		}
		before[s.ref] = true
		for _, m := range s.members {
			identities[m.part][m.id.TopicSI()] = m.id
		}
	}
	for _, records := range all {
		for _, t := range records.topics {
			speak(t.TopicSI())
			t.Mentions(speak)
		}
		for _, a := range records.associations {
			a.Mentions(speak)
			for i := range a.Roles {
				speak(a.Roles[i].Player)
			}
		}
	}
	for _, byRef := range identities {
		refs := make([]fragment.Ref, 0, len(byRef))
		for ref := range byRef {
			refs = append(refs, ref)
		}
		slices.Sort(refs)
		for _, ref := range refs {
			j.identity(byRef[ref])
		}
	}
	return before, failed
}

// joinReifiers makes a record for each set of topics that the joining of
// reifiers has made one.
func (v *View) joinReifiers(tm *tmdm.TopicMap, before map[fragment.Ref]bool) error {
	sets := map[*tmdm.Topic][]fragment.Ref{}
	for ref := range before {
		t := tm.TopicBySubjectIdentifier(ref)
		sets[t] = append(sets[t], ref)
	}
	for _, set := range sets {
		if len(set) < 2 {
			continue
		}
		slices.SortFunc(set, compareRefs)
		t := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: set}}
		t.Canonical()
		if err := v.joined.PutTopic(t); err != nil {
			return err
		}
	}
	clear(v.refs)
	v.last = nil
	return nil
}

// chooseReifiers keeps the reifiers of statements about which the sources
// disagree, as they are in the map.
func (v *View) chooseReifiers(tm *tmdm.TopicMap, all []reifiedRecords) error {
	if len(v.conflicts) == 0 {
		return nil
	}
	m, err := fragment.NewMap(tm, "")
	if err != nil {
		return err
	}
	r := rewriter{v: v}
	settled := map[string]fragment.Ref{}
	keep := func(key string, reifier fragment.Ref) { settled[key] = reifier }
	for t, err := range m.Topics() {
		if err != nil {
			return err
		}
		r.topicReifiers(t, keep)
	}
	for a, err := range m.Associations() {
		if err != nil {
			return err
		}
		r.associationReifiers(a, keep)
	}
	chosen := map[string]fragment.Ref{}
	v.about = map[string][]fragment.Ref{}
	var about []fragment.Ref
	compare := func(key string, reifier fragment.Ref) {
		if reifier != "" && settled[key] != reifier {
			chosen[key] = settled[key]
			v.about[key] = about
		}
	}
	for _, records := range all {
		for _, t := range records.topics {
			about = []fragment.Ref{t.TopicSI()}
			r.topicReifiers(t, compare)
		}
		for _, a := range records.associations {
			about = a.Players()
			r.associationReifiers(a, compare)
		}
	}
	v.chosen = chosen
	return r.err
}

// Settlement is a fact about reifiers that a view has computed. It affects topics whose records may be unchanged. So a
// reader that keeps results of a view compares the settlements of two views.
type Settlement struct {
	// the affected topics, each by one subject identifier; if Statement is "", those that are one topic
	Topics []fragment.Ref
	Key    string // equal settlements have equal keys

	Statement string       // the key of a statement about which the sources disagree
	Reifier   fragment.Ref // the chosen reifier
}

// Settlements returns which topics are one because they reify equal statements, and about which statements the sources
// disagree.
func (v *View) Settlements() ([]Settlement, error) {
	if v.only != nil {
		return nil, nil
	}
	if err := v.settle(); err != nil {
		return nil, err
	}
	var all []Settlement
	for t, err := range v.sources[len(v.parts)].Topics() {
		if err != nil {
			return nil, err
		}
		all = append(all,
			Settlement{Topics: t.SubjectIdentifiers, Key: string(appendRefs([]byte("joined"), t.SubjectIdentifiers))})
	}
	for _, key := range slices.Sorted(maps.Keys(v.chosen)) {
		reifier := v.chosen[key]
		all = append(all, Settlement{v.about[key], string(appendText([]byte("chosen"), key, string(reifier))), key, reifier})
	}
	return all, nil
}

// Kept are the stored settlements of a view.
type Kept struct {
	// a topic for each settlement that merges topics, with their subject identifiers
	Joined     fragment.Source
	Chosen     map[string]fragment.Ref // reifiers of the other settlements, by their statements
	Vocabulary bool                    // the result of [View.Vocabulary]
}

// Keep makes the view use the settlements of an earlier one, which saves reading reified statements. No reified
// statement of the sources may have changed since, nor the topics that such statements mention. It must be called
// before any read.
func (v *View) Keep(k *Kept) {
	v.kept = k
	v.sources[len(v.parts)] = k.Joined
}

// Vocabulary reports whether type-instance associations of the view may differ from those of the sources.
func (v *View) Vocabulary() (bool, error) {
	if v.only != nil {
		return false, nil
	}
	err := v.settle()
	return v.vocabulary, err
}

// topicReifiers yields the statements of t by their keys in the view, with their
// reifiers.
func (r *rewriter) topicReifiers(t *fragment.Topic, yield func(key string, reifier fragment.Ref)) {
	s := &subject{ref: r.ref(t.TopicSI()), members: []member{{id: &t.Identity, topic: t}}}
	for _, n := range r.names(s) {
		yield(nameKey(s.ref, &n.Value), n.Value.Reifier)
		for i := range n.Variants {
			v := &n.Variants[i].Value
			yield(variantKey(s.ref, &n.Value, v), v.Reifier)
		}
	}
	for _, o := range r.occurrences(s) {
		yield(occurrenceKey(s.ref, &o.Value), o.Value.Reifier)
	}
}

func (r *rewriter) associationReifiers(a *fragment.Association, yield func(key string, reifier fragment.Ref)) {
	a = r.association(0, a)
	yield(associationKey(a), a.Reifier)
	for i := range a.Roles {
		yield(roleKey(a, &a.Roles[i]), a.Roles[i].Reifier)
	}
}
