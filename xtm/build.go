package xtm

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// Read reads a document into a new topic map: it merges topics that share an identifier, reads and merges documents
// that mergeMap names, sets reifiers, and removes duplicates. If ctx ends meanwhile, the error is its cause. To stop a
// blocked read of r, the caller must close r as well.
//
// If r is long, another goroutine may read from it, but never while the Loader is called or a document of it is read,
// and not after Read has returned. Read calls the functions of o in its own goroutine.
func Read(ctx context.Context, r io.Reader, o Options) (*tmdm.TopicMap, error) {
	b := builder{tm: tmdm.New(), visited: map[tmdm.Locator]bool{document(o.Base): true}}
	if err := b.document(r, o, nil); err != nil {
		return nil, err
	}
	if err := b.finish(ctx); err != nil {
		return nil, err
	}
	return b.tm, nil
}

// builder puts elements into a map. It sets item identifiers and reifiers of statements at once if possible; finish
// sets the others, when the equality of topics and statements is known.
type builder struct {
	tm      *tmdm.TopicMap
	visited map[tmdm.Locator]bool // documents read, to read each only once
	doc     *source               // the one being read

	ids10   []identifier // item identifiers of statements in XTM 1.0, which may mean reification
	clashes []identifier // item identifiers that were already taken
	reified []reification
	assocs  []reifiedRoles
	memory  int64 // that the map takes, about
}

// source is the data about a document that reading it and later errors about its statements need.
type source struct {
	o       Options
	limits  Limits
	version Version
	merged  bool          // a mergeMap brought it in
	themes  []*tmdm.Topic // that mergeMap adds
}

// errorAt returns an error about s that came from cause, if that is not nil.
func (s *source) errorAt(p Position, cause error, format string, args ...any) *SyntaxError {
	return &SyntaxError{URI: s.o.name(), Line: p.Line, Column: p.Column, Reason: fmt.Sprintf(format, args...), Err: cause}
}

type identifier struct {
	c      tmdm.Reifiable
	loc    tmdm.Locator
	doc    *source
	pos    Position
	holder tmdm.Construct // in a clash: the item that loc identifies
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
	if outer != nil {
		o.FoundVersion = nil
	}
	defer func() { b.doc = outer }()
	elements := newReader(r, o)
	defer elements.end()
	b.doc = &source{o: o, limits: elements.dec.limits, merged: outer != nil, themes: themes}
	for {
		e, err := elements.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b.doc.version = elements.dec.Version()
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
		if limit := b.doc.limits.Memory; limit > 0 && b.memory > limit {
			return b.doc.errorAt(e.Position(), ErrMemory, "the map takes more than %d bytes of memory", limit)
		}
	}
}

// The measured sizes of items in bytes, besides their text.
const (
	topicMemory     = 180
	locatorMemory   = 50
	statementMemory = 100
	roleMemory      = 60
	themeMemory     = 20
	reifierMemory   = 100
)

// charge counts the memory of a statement.
func (b *builder) charge(text string, scope []Ref, ids []tmdm.Locator, reifier Ref) {
	n := statementMemory + len(text) + themeMemory*len(scope)
	for _, l := range ids {
		n += locatorMemory + len(l)
	}
	if !reifier.IsZero() {
		n += reifierMemory
	}
	b.memory += int64(n)
}

// mapItem gives the topic map its identity. Of a merged document it takes the item identifiers, except those of XTM
// 1.0, but never the reifier: the topic that reifies the other map is then an ordinary topic.
func (b *builder) mapItem(m *Map) error {
	switch {
	case !b.doc.merged:
		return b.identity(b.tm, m.ItemIdentifiers, m.Reifier, m.Pos)
	case b.doc.version == V10:
		return nil
	}
	if !m.Reifier.IsZero() {
		if _, err := b.ref(m.Reifier, m.Pos); err != nil {
			return err
		}
	}
	return b.identity(b.tm, m.ItemIdentifiers, Ref{}, m.Pos)
}

// mergeMap reads another document into the same map.
func (b *builder) mergeMap(m *MergeMap) error {
	loc, limits := document(m.Locator), b.doc.o.Limits.withDefaults()
	if b.visited[loc] {
		return nil
	}
	b.visited[loc] = true
	if len(b.visited) > limits.Documents {
		return b.doc.errorAt(m.Pos, ErrLimit, "<mergeMap> brings in more than %d documents", limits.Documents)
	}
	themes, err := b.topics(m.Themes, m.Pos)
	if err != nil {
		return err
	}
	themes = append(themes, b.doc.themes...)
	if len(themes) > limits.Themes {
		return b.doc.errorAt(m.Pos, ErrLimit, "<mergeMap> adds more than %d topics to every scope", limits.Themes)
	}
	r, err := b.doc.o.Loader(loc)
	if err != nil {
		return b.doc.errorAt(m.Pos, err, "<mergeMap> could not load %s: %v", loc, err)
	}
	o := b.doc.o
	o.Base, o.URI, o.ContentType = loc, string(loc), ""
	err = b.document(r, o, themes)
	if closing := r.Close(); err == nil && closing != nil {
		err = fmt.Errorf("reading %s: %w", loc, closing)
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
		b.charge("", nil, nil, Ref{})
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

func (b *builder) name(t *tmdm.Topic, e *Name, pos Position) error {
	typ, themes, err := b.typeAndScope(e.Type, e.Scope, pos)
	if err != nil {
		return err
	}
	b.charge(e.Value, e.Scope, e.ItemIdentifiers, e.Reifier)
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
		b.charge(v.Value, v.Scope, v.ItemIdentifiers, v.Reifier)
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
	b.charge(e.Value, e.Scope, e.ItemIdentifiers, e.Reifier)
	o := t.AddOccurrence(e.Value, e.Datatype, typ, themes...)
	return b.identity(o, e.ItemIdentifiers, e.Reifier, pos)
}

func (b *builder) association(e *Association) error {
	typ, themes, err := b.typeAndScope(e.Type, e.Scope, e.Pos)
	if err != nil {
		return err
	}
	b.charge("", e.Scope, e.ItemIdentifiers, e.Reifier)
	b.memory += int64(roleMemory * len(e.Roles))
	a := b.tm.CreateAssociation(typ, themes...)
	reified := 0
	for i := range e.Roles {
		var player *tmdm.Topic
		typ, err := b.ref(e.Roles[i].Type, e.Pos)
		if err == nil {
			player, err = b.ref(e.Roles[i].Player, e.Pos)
		}
		if err != nil {
			a.Remove() // with a part of its roles it would have another meaning
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

// typeAndScope resolves the type and the themes of a statement, and adds the themes of the mergeMap that named the
// document.
func (b *builder) typeAndScope(typ Ref, scope []Ref, pos Position) (*tmdm.Topic, []*tmdm.Topic, error) {
	t, err := b.ref(typ, pos)
	if err != nil {
		return nil, nil, err
	}
	themes, err := b.topics(scope, pos)
	if limit := b.doc.limits.Themes; err == nil && len(themes)+len(b.doc.themes) > limit {
		err = b.doc.errorAt(pos, ErrLimit, "a scope of more than %d topics, with those that a <mergeMap> adds", limit)
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
