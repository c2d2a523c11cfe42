package fragment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Published is a publisher's state, with the number of references to a subject identifier from types, themes and
// reifiers.
type Published interface {
	Source
	Mentions(ref Ref) (int, error)
}

// DocumentError is the reason why a document cannot be published.
type DocumentError struct{ Reason string }

func (e *DocumentError) Error() string { return e.Reason }

func documentError(format string, args ...any) error {
	return &DocumentError{fmt.Sprintf(format, args...)}
}

// Replace returns the change of a posted document, which was read into tm with the prefix sp as its base. The
// document's statements replace each topic that it describes, with the associations in which the topic plays. Described
// topics have a name, an occurrence or a type in it, or one of the subject identifiers named. Type-instance
// associations belong to the instance: the fragment of a class has its instances without describing them, and instances
// of a class that the document omits are kept.
//
// All other topics are stubs, which only resolve references: they merge no topics and take no identifier from one. A
// stub for a topic that does not exist makes one without statements. If an association has only stubs, the error is a
// [*DocumentError].
//
// Topics are identified by their subject identifiers and locators only. Ids of topic elements are valid within the
// document; those of statements are kept if a replaced statement had them, because others may have them, too.
//
// The replaced topics are all that have an identifier of a described one, so a document can merge and split topics. If
// others refer to a TopicSI that would cease, or a topic would reify two things, the error is an [*InUseError], because
// only a whole version may change other topics' statements.
//
// It reads only the records that the document concerns, except for some errors. It changes tm, which must not be used
// afterwards. If ctx ends first, the error is its cause.
func Replace(ctx context.Context, prior Published, tm *tmdm.TopicMap, sp string, named ...Ref) (*Change, error) {
	p := post{ctx: ctx, prior: prior, tm: tm, sp: sp}
	if err := p.forgetIDs(); err != nil {
		return nil, err
	}
	if err := p.expect(); err != nil {
		return nil, err
	}
	known := asked{prior}
	if err := assignIdentifiers(ctx, tm, sp, prior, known); err != nil {
		return nil, err
	}
	for joined := true; joined; {
		if err := p.describe(named); err != nil {
			return nil, err
		}
		if err := p.findTargets(); err != nil {
			return nil, err
		}
		var err error
		if joined, err = p.resolveStubs(); err != nil {
			return nil, err
		}
	}
	if err := p.checkVariants(); err != nil {
		return nil, err
	}
	m, err := chooseTopicSIs(ctx, tm, sp, known)
	if err != nil {
		return nil, err
	}
	return p.replace(m)
}

// post is a posted document with the published records that it concerns.
type post struct {
	ctx       context.Context
	prior     Published
	tm        *tmdm.TopicMap
	sp        string
	described map[*tmdm.Topic]bool
	known     map[*tmdm.Topic]bool // stubs of topics that are published
	targets   map[Ref]*Topic       // the published topics to replace, by TopicSI
}

// forgetIDs takes the item identifiers from all topics.
func (p *post) forgetIDs() error {
	for t := range p.tm.Topics() {
		if len(t.SubjectIdentifiers())+len(t.SubjectLocators()) == 0 {
			return documentError(
				"%s has neither a subject identifier nor a subject locator: ids hold inside a document only, so nothing tells "+
					"which topic it is", tmdm.Describe(t))
		}
		tmdm.RemoveItemIdentifier(t, t.ItemIdentifiers()...)
	}
	return nil
}

// expect prefetches the document's topics from the published state.
func (p *post) expect() error {
	var sis []Ref
	var sls []tmdm.Locator
	n := namer{sp: p.sp}
	for t := range p.tm.Topics() {
		sis = append(sis, t.SubjectIdentifiers()...)
		for _, sl := range t.SubjectLocators() {
			sls, sis = append(sls, sl), append(sis, n.made(sl))
		}
	}
	return expect(p.prior, sis, sls)
}

// describe finds the topics that the document describes.
func (p *post) describe(named []Ref) error {
	p.described = map[*tmdm.Topic]bool{}
	for _, si := range named {
		t := p.tm.TopicBySubjectIdentifier(si)
		if t == nil {
			return documentError("the document has no topic with the subject identifier %s", si)
		}
		p.described[t] = true
	}
	typed := map[*tmdm.Topic]bool{}
	for t := range p.tm.Topics() {
		if len(t.Names()) > 0 || len(t.Occurrences()) > 0 {
			p.described[t] = true
		}
		for range t.Types() {
			typed[t] = true
		}
	}
	var byType []*tmdm.Topic
	for t := range typed {
		for class := range t.Types() {
			if !p.described[class] && !typed[class] {
				byType = append(byType, t)
			}
		}
	}
	for _, t := range byType {
		p.described[t] = true
	}
	if len(p.described) == 0 {
		return documentError("the document describes no topic: give one a name, an occurrence or a type, or name it")
	}
	for a := range p.tm.Associations() {
		if !slices.ContainsFunc(a.Roles(), func(r *tmdm.AssociationRole) bool { return p.described[r.Player()] }) {
			return documentError(
				"%s has no player that the document describes: give one a name, an occurrence or a type, or name it",
				tmdm.Describe(a))
		}
	}
	return nil
}

// findTargets finds the published topics to replace. The described topics keep their assigned subject identifiers,
// which authors need not know.
func (p *post) findTargets() error {
	p.targets = map[Ref]*Topic{}
	least := func(t *tmdm.Topic) Ref { return slices.Min(t.SubjectIdentifiers()) }
	inOrder := slices.SortedFunc(maps.Keys(p.described), func(a, b *tmdm.Topic) int {
		return cmp.Compare(least(a), least(b))
	})
	for _, t := range inOrder {
		targets, err := p.publishedAs(t)
		if err != nil {
			return err
		}
		for _, target := range targets {
			p.targets[target.TopicSI()] = target
			for _, si := range target.SubjectIdentifiers {
				if strings.HasPrefix(string(si), p.sp+"topic/") && p.tm.TopicBySubjectIdentifier(si) == nil {
					if err := t.AddSubjectIdentifier(si); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// publishedAs returns the published topics that have an identifier of t, each once.
func (p *post) publishedAs(t *tmdm.Topic) ([]*Topic, error) {
	var found []*Topic
	known := map[Ref]bool{}
	note := func(published *Topic, err error) error {
		if published != nil && err == nil && !known[published.TopicSI()] {
			known[published.TopicSI()] = true
			found = append(found, published)
		}
		return err
	}
	for _, si := range t.SubjectIdentifiers() {
		if err := note(p.prior.Topic(si)); err != nil {
			return nil, err
		}
	}
	for _, sl := range t.SubjectLocators() {
		if err := note(p.prior.TopicBySubjectLocator(sl)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// resolveStubs gives each stub of a published topic that topic's TopicSI as its only identifier. It merges two stubs of
// one topic, which can make statements equal, and so merge their reifiers; joined then tells the caller to start again.
func (p *post) resolveStubs() (joined bool, err error) {
	p.known = map[*tmdm.Topic]bool{}
	for t := range p.tm.Topics() {
		if p.described[t] {
			continue
		}
		found, err := p.publishedAs(t)
		if err != nil {
			return false, err
		}
		found = slices.DeleteFunc(found, func(f *Topic) bool { return p.targets[f.TopicSI()] != nil })
		switch len(found) {
		case 0:
			continue
		case 1:
			p.known[t] = true
		default:
			return false,
				documentError("%s has identifiers of several topics (%s), which only a topic that the document describes can join",
					tmdm.Describe(t), strings.Join(texts(topicSIs(found)), ", "))
		}
		if joined, err = p.reduce(t, found[0].TopicSI()); joined || err != nil {
			return joined, err
		}
	}
	return false, nil
}

func topicSIs(topics []*Topic) []Ref {
	refs := make([]Ref, len(topics))
	for i, t := range topics {
		refs[i] = t.TopicSI()
	}
	return refs
}

// reduce makes ref the only identifier of t.
func (p *post) reduce(t *tmdm.Topic, ref Ref) (joined bool, err error) {
	t.RemoveSubjectIdentifier(slices.DeleteFunc(slices.Clone(t.SubjectIdentifiers()), func(si tmdm.Locator) bool {
		return si == ref
	})...)
	t.RemoveSubjectLocator(t.SubjectLocators()...)
	err = t.AddSubjectIdentifier(ref)
	var taken *tmdm.IdentityError
	if !errors.As(err, &taken) {
		return false, err
	}
	other := taken.Existing.(*tmdm.Topic)
	if err := other.Merge(t); err != nil {
		return false, documentError("%s and another topic of the document are one: %s", tmdm.Describe(other), err)
	}
	err = p.tm.Normalize(p.ctx)
	var conflicts tmdm.Conflicts
	if errors.As(err, &conflicts) {
		return false, documentError("%s", conflicts)
	}
	return true, err
}

// checkVariants makes sure that each variant still adds a theme to those of its
// name (ISO 13250-2 §5.5, Variant items), now that stubs may have been joined.
func (p *post) checkVariants() error {
	for t := range p.described {
		for _, n := range t.Names() {
			for _, v := range n.Variants() {
				if n.Scope().Contains(v.Scope()) {
					return documentError("the scope of the %s adds no topic to that of the name: its themes are one topic here",
						tmdm.Describe(v))
				}
			}
		}
	}
	return nil
}
