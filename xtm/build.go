package xtm

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Read reads a document into a new topic map: topics that share an identifier
// are merged, documents that mergeMap names are merged in, reifiers are joined
// to what they reify, and duplicates are removed.
func Read(r io.Reader, o Options) (*tmdm.TopicMap, error) {
	b := builder{tm: tmdm.New(), visited: map[tmdm.Locator]bool{document(o.Base): true}}
	if err := b.document(r, o, nil); err != nil {
		return nil, err
	}
	if err := b.finish(); err != nil {
		return nil, err
	}
	return b.tm, nil
}

// builder puts elements into a map. Item identifiers and reifiers of statements
// are given out at once where that is possible, and else settled by finish,
// when it is known which topics and statements are the same.
type builder struct {
	tm      *tmdm.TopicMap
	visited map[tmdm.Locator]bool // documents read, so that each is once
	doc     *source               // the one being read

	ids10   []identifier // item identifiers of statements in XTM 1.0, which may mean reification
	clashes []identifier // item identifiers that something else had already
	reified []reification
	assocs  []reifiedRoles
}

// source is what is to be known about a document while it is read and when
// one of its statements turns out to be wrong.
type source struct {
	o       Options
	dec     *Decoder
	version Version
	merged  bool          // a mergeMap brought it in
	themes  []*tmdm.Topic // that mergeMap adds
}

// errorAt returns an error about s that came from cause, if that is not nil.
func (s *source) errorAt(p Position, cause error, format string, args ...any) error {
	return &SyntaxError{URI: s.o.name(), Line: p.Line, Column: p.Column, Reason: fmt.Sprintf(format, args...), Err: cause}
}

type identifier struct {
	c      tmdm.Reifiable
	loc    tmdm.Locator
	doc    *source
	pos    Position
	holder tmdm.Construct // where there is a clash: what loc identifies
}

type reification struct {
	c       tmdm.Reifiable
	reifier *tmdm.Topic
	doc     *source
	pos     Position
}

// reifiedRoles is an association with more than one reified role.
type reifiedRoles struct {
	a   *tmdm.Association
	doc *source
	pos Position
}

func (b *builder) document(r io.Reader, o Options, themes []*tmdm.Topic) error {
	outer := b.doc
	defer func() { b.doc = outer }()
	b.doc = &source{o: o, dec: NewDecoder(r, o), merged: outer != nil, themes: themes}
	b.doc.dec.own = &ownership{}
	for {
		e, err := b.doc.dec.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b.doc.version = b.doc.dec.Version()
		switch e := e.(type) {
		case *Map:
			err = b.mapItem(e)
		case *Topic:
			err = b.topic(e)
		case *Association:
			err = b.association(e)
		case *MergeMap:
			err = b.mergeMap(e)
		}
		if err := b.doc.o.problem(err); err != nil {
			return err
		}
	}
}

// mapItem gives the topic map its identity. That of a merged document in XTM
// 1.0 is not one of ours.
func (b *builder) mapItem(m *Map) error {
	if b.doc.merged && b.doc.version == V10 {
		return nil
	}
	return b.identity(b.tm, m.ItemIdentifiers, m.Reifier, m.Pos)
}

// mergeMap reads another document into the same map.
func (b *builder) mergeMap(m *MergeMap) error {
	loc, limits := document(m.Locator), b.doc.o.Limits.withDefaults()
	if b.visited[loc] {
		return nil
	}
	b.visited[loc] = true
	if len(b.visited) > limits.Documents {
		return b.doc.errorAt(m.Pos, nil, "<mergeMap> brings in more than %d documents", limits.Documents)
	}
	themes, err := b.topics(m.Themes, m.Pos)
	if err != nil {
		return err
	}
	themes = append(themes, b.doc.themes...)
	if len(themes) > limits.Themes {
		return b.doc.errorAt(m.Pos, nil, "<mergeMap> adds more than %d topics to every scope", limits.Themes)
	}
	r, err := b.doc.o.Loader(loc)
	if err != nil {
		return b.doc.errorAt(m.Pos, err, "<mergeMap> could not load %s: %v", loc, err)
	}
	o := b.doc.o
	o.Base, o.URI = loc, string(loc)
	err = b.document(r, o, themes)
	if closing := r.Close(); err == nil && closing != nil {
		err = fmt.Errorf("xtm: reading %s: %w", loc, closing)
	}
	return err
}

// document returns l without its fragment: documents are merged as wholes.
func document(l tmdm.Locator) tmdm.Locator {
	doc, _, _ := strings.Cut(string(l), "#")
	return tmdm.Locator(doc)
}

func (b *builder) topic(e *Topic) error {
	t, err := b.identify(e)
	if err != nil {
		return err
	}
	for _, r := range e.Types {
		class, err := b.ref(r, e.Pos)
		if err != nil {
			return err
		}
		t.AddType(class)
	}
	for i := range e.Names {
		if err := b.name(t, &e.Names[i], e.Pos); err != nil {
			return err
		}
	}
	for i := range e.Occurrences {
		if err := b.occurrence(t, &e.Occurrences[i], e.Pos); err != nil {
			return err
		}
	}
	return nil
}

// identify returns the topic of e with all identifiers of e. Topics that have
// some of them become one.
func (b *builder) identify(e *Topic) (*tmdm.Topic, error) {
	tm := b.tm
	var t *tmdm.Topic
	join := func(other *tmdm.Topic) {
		switch {
		case other == nil || other == t:
		case t == nil:
			t = other
		default:
			t = merge(t, other)
		}
	}
	for _, l := range e.ItemIdentifiers {
		known := tm.TopicByIdentifier(l)
		if known == nil {
			if c := tm.ConstructByItemIdentifier(l); c != nil { // before a topic is made that cannot have it
				return nil, b.identityError(&tmdm.IdentityError{Existing: c, Locator: l}, e.Pos)
			}
		}
		join(known)
	}
	for _, l := range e.SubjectIdentifiers {
		join(tm.TopicByIdentifier(l))
	}
	for _, l := range e.SubjectLocators {
		join(tm.TopicBySubjectLocator(l))
	}
	if t == nil {
		t = tm.CreateTopic()
	}
	if err := addIdentity(t, e); err != nil {
		return nil, b.identityError(err, e.Pos)
	}
	return t, nil
}

// addIdentity gives t the identifiers of e.
func addIdentity(t *tmdm.Topic, e *Topic) error {
	for _, l := range e.ItemIdentifiers {
		if err := tmdm.AddItemIdentifier(t, l); err != nil {
			return err
		}
	}
	for _, l := range e.SubjectIdentifiers {
		if err := t.AddSubjectIdentifier(l); err != nil {
			return err
		}
	}
	for _, l := range e.SubjectLocators {
		if err := t.AddSubjectLocator(l); err != nil {
			return err
		}
	}
	return nil
}

// merge makes one topic of two and returns it. The one with less to move is
// moved. No reifiers are set as long as a document is read, so that nothing can
// keep the topics apart.
func merge(t, other *tmdm.Topic) *tmdm.Topic {
	if size(other) > size(t) {
		t, other = other, t
	}
	_ = t.Merge(other) // fails for reifiers only
	return t
}

func size(t *tmdm.Topic) int {
	return len(t.Names()) + len(t.Occurrences()) + len(t.SubjectIdentifiers()) + len(t.SubjectLocators()) + len(t.ItemIdentifiers())
}

func (b *builder) name(t *tmdm.Topic, e *Name, pos Position) error {
	typ, themes, err := b.typeAndScope(e.Type, e.Scope, pos)
	if err != nil {
		return err
	}
	n := t.AddName(e.Value, typ, themes...)
	if err := b.identity(n, e.ItemIdentifiers, e.Reifier, pos); err != nil {
		return err
	}
	for i := range e.Variants {
		v := &e.Variants[i]
		themes, err := b.topics(v.Scope, pos)
		if err != nil {
			return err
		}
		variant := n.AddVariant(v.Value, v.Datatype, themes...)
		if err := b.identity(variant, v.ItemIdentifiers, v.Reifier, pos); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) occurrence(t *tmdm.Topic, e *Occurrence, pos Position) error {
	typ, themes, err := b.typeAndScope(e.Type, e.Scope, pos)
	if err != nil {
		return err
	}
	o := t.AddOccurrence(e.Value, e.Datatype, typ, themes...)
	return b.identity(o, e.ItemIdentifiers, e.Reifier, pos)
}

func (b *builder) association(e *Association) error {
	typ, themes, err := b.typeAndScope(e.Type, e.Scope, e.Pos)
	if err != nil {
		return err
	}
	a := b.tm.CreateAssociation(typ, themes...)
	reified := 0
	for i := range e.Roles {
		var player *tmdm.Topic
		typ, err := b.ref(e.Roles[i].Type, e.Pos)
		if err == nil {
			player, err = b.ref(e.Roles[i].Player, e.Pos)
		}
		if err != nil {
			a.Remove() // with some of its roles it would say something else
			return err
		}
		a.AddRole(typ, player)
		if !e.Roles[i].Reifier.IsZero() {
			reified++
		}
	}
	// Only now is the association complete, on which its equality depends.
	for i, r := range a.Roles() {
		if err := b.identity(r, e.Roles[i].ItemIdentifiers, e.Roles[i].Reifier, e.Pos); err != nil {
			return err
		}
	}
	if reified > 1 {
		b.assocs = append(b.assocs, reifiedRoles{a, b.doc, e.Pos})
	}
	return b.identity(a, e.ItemIdentifiers, e.Reifier, e.Pos)
}

// typeAndScope resolves the type and the themes of a statement, to which come
// those of the mergeMap that the document was brought in by.
func (b *builder) typeAndScope(typ Ref, scope []Ref, pos Position) (*tmdm.Topic, []*tmdm.Topic, error) {
	t, err := b.ref(typ, pos)
	if err != nil {
		return nil, nil, err
	}
	themes, err := b.topics(scope, pos)
	if limit := b.doc.dec.limits.Themes; err == nil && len(themes)+len(b.doc.themes) > limit {
		err = b.doc.errorAt(pos, nil, "a scope of more than %d topics, with those that a <mergeMap> adds", limit)
	}
	return t, append(themes, b.doc.themes...), err
}

func (b *builder) topics(refs []Ref, pos Position) ([]*tmdm.Topic, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	topics := make([]*tmdm.Topic, 0, len(refs)+len(b.doc.themes))
	for _, r := range refs {
		t, err := b.ref(r, pos)
		if err != nil {
			return nil, err
		}
		topics = append(topics, t)
	}
	return topics, nil
}

// ref returns the topic that r refers to, and creates it where it has not been
// seen yet.
func (b *builder) ref(r Ref, pos Position) (*tmdm.Topic, error) {
	switch r.Kind {
	case BySubjectIdentifier:
		return b.tm.CreateTopicBySubjectIdentifier(r.Locator), nil
	case BySubjectLocator:
		return b.tm.CreateTopicBySubjectLocator(r.Locator), nil
	}
	t, err := b.tm.CreateTopicByItemIdentifier(r.Locator)
	if err != nil {
		return nil, b.identityError(err, pos)
	}
	return t, nil
}

// identityError makes a syntax error of a tmdm.IdentityError.
func (b *builder) identityError(err error, pos Position) error {
	var e *tmdm.IdentityError
	if errors.As(err, &e) {
		err = b.doc.errorAt(pos, e, "%s identifies %s, so it cannot identify a topic", e.Locator, tmdm.Describe(e.Existing))
	}
	return err
}
