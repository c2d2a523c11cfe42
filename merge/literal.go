package merge

import (
	"errors"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// ApplyLiteral applies a fragment to one map that holds several sources merged,
// as TMShare words it ("The Topic Map Fragment Update Algorithm"): of all names,
// variants, occurrences and associations of the topic it takes the item
// identifiers that begin with sp away, deletes what is left without any, and
// merges the fragment, whose statements get item identifiers that begin with sp.
// The map is normalised, and all that it holds has come from ApplyLiteral or has
// item identifiers otherwise: what has none is deleted with the next fragment.
//
// The algorithm says nothing of identifiers. Here they are counted like
// statements: a topic has an item identifier for each of its identifiers that a
// source gives. What no source gives any more goes, and so does a topic that no
// source gives and nothing refers to; by the letter it would stay for ever, as a
// bare topic. Nothing but references is taken from stubs.
//
// It is here for programs that have such a map and nothing else. It agrees with
// [Apply] and [Join] as long as no source says that two topics of another are
// one, and none takes back that its topic is that of another. Otherwise it loses
// data, because the map does not tell whose a topic is:
//
//   - Source 0 has a, named x, and b, named y; source 1 says that a is b. The
//     next fragment of a by source 0 takes y away, and what it says of the
//     identity of b, which only the fragment of b would bring back.
//   - When source 1 takes that back, the two stay one topic.
//   - So do reifiers that were joined because two sources reified the same, and
//     a statement that another source asserts keeps the reifier that this one
//     gave it.
//
// Apply, on the records of each source, loses none of that: use it wherever the
// sources can be kept apart. ApplyLiteral costs as much as the map is large, for
// it is normalised each time.
func ApplyLiteral(tm *tmdm.TopicMap, sp string, f *fragment.Fragment) error {
	l := literal{joiner: joiner{tm: tm}, part: Part{SP: sp, Claims: true}, used: map[*tmdm.Topic]bool{}}
	names := append([]fragment.Ref{f.TopicSI}, f.Topic.SubjectIdentifiers...)
	var same, others []*tmdm.Topic // as the fragment's topic, and those that only lose something to it
	for _, target := range l.targets(names, f.Topic.SubjectLocators) {
		l.used[target] = true
		anchors, known := l.anchors(target)
		if !known || slices.ContainsFunc(anchors, func(si fragment.Ref) bool { return slices.Contains(names, si) }) {
			same = append(same, target)
		} else {
			others = append(others, target)
		}
		l.clear(target)
		l.forget(target, anchors, names)
	}
	if !f.Deleted {
		topic := l.one(same)
		if topic == nil {
			topic = tm.CreateTopic()
		}
		l.give(topic, f.Topic, others)
		for i := range f.Stubs {
			l.splitOff(&f.Stubs[i])
		}
		l.topicStatements(l.part, f.Topic)
		for _, a := range f.Associations {
			l.association(l.part, a)
		}
		l.takeReifiers()
	}
	tm.Normalize()
	return l.sweep()
}

type literal struct {
	joiner
	part Part
	used map[*tmdm.Topic]bool // topics that may have lost the last that needs them
}

// What a source gives of a topic, as item identifiers of the topic: an
// identifier, and the subject identifier by which the source refers to it.

func (l *literal) gives(si tmdm.Locator) tmdm.Locator { return tmdm.Locator(l.part.SP + given(si)) }
func (l *literal) locates(sl tmdm.Locator) tmdm.Locator {
	return tmdm.Locator(l.part.SP + located(sl))
}
func (l *literal) refers(si tmdm.Locator) tmdm.Locator {
	return tmdm.Locator(l.part.SP + "topic-" + fragment.Key(si))
}

func given(si tmdm.Locator) string   { return "identifier-" + fragment.Key(si) }
func located(sl tmdm.Locator) string { return "locator-" + fragment.Key(sl) }

// givenByAny reports whether a source gives t the identifier of which this is
// the claim without prefix.
func givenByAny(t *tmdm.Topic, claim string) bool {
	return slices.ContainsFunc(t.ItemIdentifiers(), func(l tmdm.Locator) bool { return strings.HasSuffix(string(l), claim) })
}

// own returns the item identifiers of c that begin with the prefix.
func (l *literal) own(c tmdm.Construct) (own []tmdm.Locator) {
	for _, iid := range c.ItemIdentifiers() {
		if strings.HasPrefix(string(iid), l.part.SP) {
			own = append(own, iid)
		}
	}
	return own
}

// targets returns the topics that have one of the identifiers.
func (l *literal) targets(sis, sls []tmdm.Locator) (targets []*tmdm.Topic) {
	add := func(t *tmdm.Topic) {
		if t != nil && !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	for _, si := range sis {
		add(l.tm.TopicBySubjectIdentifier(si))
	}
	for _, sl := range sls {
		add(l.tm.TopicBySubjectLocator(sl))
	}
	return targets
}

// anchors returns the subject identifiers by which the source refers to t, and
// whether it has said anything of t.
func (l *literal) anchors(t *tmdm.Topic) (anchors []fragment.Ref, known bool) {
	own := l.own(t)
	for _, si := range t.SubjectIdentifiers() {
		if slices.Contains(own, l.refers(si)) {
			anchors = append(anchors, si)
		}
	}
	return anchors, len(own) > 0
}

// clear takes the claims of the source from all statements of t, but for those
// that say of another topic that it is an instance of t.
func (l *literal) clear(t *tmdm.Topic) {
	for _, n := range slices.Clone(t.Names()) {
		for _, v := range slices.Clone(n.Variants()) {
			if l.unclaimed(v) {
				l.drop(nil, v.Scope(), v)
				v.Remove()
			}
		}
		if l.unclaimed(n) {
			l.drop(n.Type(), n.Scope(), n)
			n.Remove()
		}
	}
	for _, o := range slices.Clone(t.Occurrences()) {
		if l.unclaimed(o) {
			l.drop(o.Type(), o.Scope(), o)
			o.Remove()
		}
	}
	for _, r := range slices.Clone(t.RolesPlayed()) {
		a := r.Association()
		if class, instance, ok := a.TypeInstance(); ok && class == t && instance != t {
			continue
		}
		if slices.Contains(t.RolesPlayed(), r) && l.unclaimed(a) {
			l.drop(a.Type(), a.Scope(), a)
			for _, r := range a.Roles() {
				l.drop(r.Type(), nil, r)
				l.used[r.Player()] = true
			}
			a.Remove()
		}
	}
}

// unclaimed takes the claims of the source from a statement and reports whether
// none is left.
func (l *literal) unclaimed(c tmdm.Construct) bool {
	for _, iid := range l.own(c) {
		tmdm.RemoveItemIdentifier(c, iid)
	}
	return len(c.ItemIdentifiers()) == 0
}

// drop notes the topics to which a statement refers.
func (l *literal) drop(typ *tmdm.Topic, scope *tmdm.Scope, c tmdm.Reifiable) {
	for _, t := range []*tmdm.Topic{typ, c.Reifier()} {
		if t != nil {
			l.used[t] = true
		}
	}
	if scope != nil {
		for _, t := range scope.Themes() {
			l.used[t] = true
		}
	}
}

// forget takes from t what the source has given it, and the identifiers that no
// source gives then. One by which it is referred to stays with a topic that has
// no other.
func (l *literal) forget(t *tmdm.Topic, anchors, names []fragment.Ref) {
	for _, iid := range l.own(t) {
		tmdm.RemoveItemIdentifier(t, iid)
	}
	for _, sl := range slices.Clone(t.SubjectLocators()) {
		if !givenByAny(t, located(sl)) {
			t.RemoveSubjectLocator(sl)
		}
	}
	sis := slices.Clone(t.SubjectIdentifiers())
	keep := sis[0]
	if len(anchors) > 0 {
		keep = anchors[0]
	}
	for _, si := range sis {
		if !givenByAny(t, given(si)) && (si != keep || len(t.ItemIdentifiers()) > 0) {
			t.RemoveSubjectIdentifier(si)
		}
	}
	if len(t.SubjectIdentifiers()) == 0 { // others give it nothing but locators
		_ = t.AddSubjectIdentifier(keep)
	}
}

// one merges topics into one, or returns nil where there are none. What the
// first reifies stays.
func (l *literal) one(topics []*tmdm.Topic) *tmdm.Topic {
	if len(topics) == 0 {
		return nil
	}
	for _, other := range topics[1:] {
		l.merge(topics[0], other)
	}
	return topics[0]
}

func (l *literal) merge(t, other *tmdm.Topic) {
	var conflict *tmdm.ReifierError
	if errors.As(t.Merge(other), &conflict) {
		_ = tmdm.SetReifier(other.Reified(), nil)
		_ = t.Merge(other)
	}
}

// give gives t the identifiers of the record. From the others it takes those
// that no other source gives them; one that has an identifier of another source
// is the same topic.
func (l *literal) give(t *tmdm.Topic, record *fragment.Topic, others []*tmdm.Topic) {
	for _, si := range record.SubjectIdentifiers {
		if h := l.tm.TopicBySubjectIdentifier(si); h != nil && h != t {
			if givenByAny(h, given(si)) || !slices.Contains(others, h) {
				l.merge(t, h)
			} else {
				h.RemoveSubjectIdentifier(si)
			}
		}
		_ = t.AddSubjectIdentifier(si)
		_ = tmdm.AddItemIdentifier(t, l.gives(si))
	}
	for _, sl := range record.SubjectLocators {
		if h := l.tm.TopicBySubjectLocator(sl); h != nil && h != t {
			l.merge(t, h) // clear has taken it from those that nobody else gives it
		}
		_ = t.AddSubjectLocator(sl)
		_ = tmdm.AddItemIdentifier(t, l.locates(sl))
	}
	_ = tmdm.AddItemIdentifier(t, l.refers(record.TopicSI()))
}

// splitOff makes a topic of its own of what a stub names where it is still an
// identifier of a topic that the stub does not mean: that one has been split, and
// its fragment will come.
func (l *literal) splitOff(stub *fragment.Identity) {
	ref := stub.TopicSI()
	t := l.tm.TopicBySubjectIdentifier(ref)
	if t == nil {
		return
	}
	anchors, known := l.anchors(t)
	if !known || slices.ContainsFunc(anchors, func(si fragment.Ref) bool { return slices.Contains(stub.SubjectIdentifiers, si) }) {
		return
	}
	tmdm.RemoveItemIdentifier(t, l.gives(ref))
	if givenByAny(t, given(ref)) {
		return
	}
	t.RemoveSubjectIdentifier(ref)
	l.used[l.topic(ref)] = true
}

// takeReifiers sets the reifiers of the fragment's statements. What one of them
// reified until now loses it: the later entry is right.
func (l *literal) takeReifiers() {
	for _, r := range l.reifiers {
		var conflict *tmdm.ReifierError
		if errors.As(tmdm.SetReifier(r.construct, r.reifier), &conflict) {
			_ = tmdm.SetReifier(conflict.Existing, nil)
			_ = tmdm.SetReifier(r.construct, r.reifier)
		}
	}
}

// sweep removes the topics that no source gives and nothing needs.
func (l *literal) sweep() error {
	for t := range l.used {
		if len(t.SubjectIdentifiers()) == 0 || len(t.ItemIdentifiers())+len(t.Names())+len(t.Occurrences())+len(t.RolesPlayed()) > 0 {
			continue
		}
		var inUse *tmdm.InUseError
		if err := t.Remove(); err != nil && !errors.As(err, &inUse) {
			return err
		}
	}
	return nil
}
