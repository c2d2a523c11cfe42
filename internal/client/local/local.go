// Package local changes the statements of a node's own. They are a source among the others, which
// no subscription touches.
package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Name is the name of the source of local statements: a collection of the node's own, which a server on the same data
// folder publishes like any other, and which no subscription touches.
const Name = "local"

// Statements are the local statements of a store.
type Statements struct {
	Store  *store.DB
	Author string // of the changes
}

// Edit is the result of a change of local statements.
type Edit struct {
	SP      string `json:"sourceLocatorPrefix"` // of the local statements
	Added   int    `json:"added"`               // topics
	Updated int    `json:"updated"`
	Deleted int    `json:"deleted"`
}

// Ensure makes the source of local statements if there is none, with a prefix ("" makes one up). It returns the prefix,
// which does not change while there are local statements.
func (s Statements) Ensure(ctx context.Context, sp string) (string, error) {
	has, empty, err := Prefix(ctx, s.Store)
	if err != nil {
		return "", err
	}
	if sp, err = choosePrefix(has, empty, sp); sp == has || err != nil {
		return sp, err
	}
	if has != "" { // nothing has been said under it
		if err := s.Store.DeleteCollection(ctx, Name, ""); err != nil {
			return "", err
		}
	}
	_, err = s.Store.CreateCollection(ctx, store.Collection{Name: Name, SP: sp}, &merge.Memory{}, nil)
	if !errors.Is(err, store.ErrExists) {
		return sp, err
	}
	if has, _, err = Prefix(ctx, s.Store); has == "" && err == nil { // else another command was faster
		err = fmt.Errorf(
			"the name %q is taken by a collection that cannot be written: remove that with \"tmshare-server collections "+
				"delete %[1]s\", and derive or replicate it under another name", Name)
	}
	return has, err
}

// choosePrefix returns the prefix for the local statements, which have the prefix has ("": none yet) if sp is
// requested.
func choosePrefix(has string, empty bool, sp string) (string, error) {
	switch {
	case has != "" && (sp == "" || sp == has):
		return has, nil
	case has != "" && !empty:
		return "", fmt.Errorf("the prefix of the local statements is %s, and cannot change as long as there are any", has)
	case sp == "": // with a hierarchy, so that relative references in files have something to resolve against
		sp = "x-tmshare://" + uuid.NewString() + "/"
	}
	return sp, fragment.ValidatePrefix(sp)
}

// Prefix returns the prefix of the local statements, "" without a source of them, and whether there are none.
func Prefix(ctx context.Context, r *store.DB) (sp string, empty bool, err error) {
	empty = true
	err = r.ReadParts(ctx, func(parts []store.Part) error {
		for _, p := range parts {
			if !isLocal(p) {
				continue
			}
			sp = p.SP
			for _, err := range p.Source.Topics() {
				empty = false
				return err
			}
		}
		return nil
	})
	return sp, empty, err
}

// isLocal reports whether a source is that of the local statements.
func isLocal(p store.Part) bool { return p.Own && p.Name == Name }

// Import makes local statements of a document, which read reads with the prefix of the local statements: the document's
// statements replace the local ones about each topic that it describes (with a name, an occurrence or a type). With
// whole, the document replaces all local statements, unless that loses more than limit allows (a
// [*losses.TooManyError]). sp is the prefix if there are none yet.
func (s Statements) Import(ctx context.Context, sp string, whole bool, limit losses.Limit,
	read func(base tmdm.Locator) (*tmdm.TopicMap, error)) (*Edit, error) {
	has, empty, err := Prefix(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	if sp, err = choosePrefix(has, empty, sp); err != nil {
		return nil, err
	}
	tm, err := read(tmdm.Locator(sp))
	if err != nil {
		return nil, err
	}
	if _, err := s.Ensure(ctx, sp); err != nil { // not before the document is known to be good
		return nil, err
	}
	return s.edit(ctx, func(col store.Collection, state merge.State) (*fragment.Change, error) {
		if !whole {
			change, err := fragment.Replace(ctx, state, tm, sp)
			if _, ok := errors.AsType[*fragment.DocumentError](err); ok {
				return nil, fmt.Errorf("%w (a document that takes the place of all local statements may have such topics)", err)
			}
			return change, err
		}
		next, err := fragment.NameTopics(ctx, tm, sp, state)
		if err != nil {
			return nil, err
		}
		return losses.Diff(ctx, state, next, limit)
	})
}

// EditTopic changes the local statements about one topic. ref is one of its subject identifiers; f gets the topic in a
// map with the present local statements. A topic of other sources is referred to by their identifier only, so that it
// can still be split (protocol: local edits about a foreign topic assert one identifier).
func (s Statements) EditTopic(ctx context.Context, ref, sp string,
	f func(tm *tmdm.TopicMap, topic *tmdm.Topic) error) (*Edit, error) {
	si, err := s.reference(ctx, ref)
	if err != nil {
		return nil, err
	}
	if _, err := s.Ensure(ctx, sp); err != nil {
		return nil, err
	}
	var mentioned []tmdm.Locator
	return s.editTidily(ctx, &mentioned, func(col store.Collection, state merge.State) (*fragment.Change, error) {
		tm, err := described(ctx, col.SP, state, si)
		if err != nil {
			return nil, err
		}
		topic := tm.TopicBySubjectIdentifier(si)
		mentioned = others(tm, topic)
		if err := f(tm, topic); err != nil {
			return nil, err
		}
		if err := xtm.Check(tm); err != nil {
			return nil, err
		}
		if bare(topic) {
			if gone, err := deleteUnused(state, topic); gone != nil || err != nil {
				return gone, err
			}
		}
		return fragment.Replace(ctx, state, tm, col.SP, topic.SubjectIdentifiers()[0])
	})
}

// others returns how the other topics of a map are referred to.
func others(tm *tmdm.TopicMap, topic *tmdm.Topic) []tmdm.Locator {
	var out []tmdm.Locator
	for t := range tm.Topics() {
		if t != topic && len(t.SubjectIdentifiers()) > 0 {
			out = append(out, t.SubjectIdentifiers()[0])
		}
	}
	return out
}

// editTidily is edit. Then it removes those of the mentioned topics that have no statements and no references any more,
// and counts them.
func (s Statements) editTidily(ctx context.Context, mentioned *[]tmdm.Locator,
	decide func(store.Collection, merge.State) (*fragment.Change, error)) (*Edit, error) {
	e, err := s.edit(ctx, decide)
	if err != nil {
		return nil, err
	}
	for _, si := range *mentioned {
		removed, err := s.edit(ctx, func(_ store.Collection, state merge.State) (*fragment.Change, error) {
			t, err := state.Topic(si)
			if err != nil || t == nil || len(t.Names)+len(t.Occurrences)+len(t.SubjectLocators) > 0 ||
				len(t.SubjectIdentifiers) > 1 {
				return &fragment.Change{}, err
			}
			if used, err := merge.Referred(state, t); used || err != nil {
				return &fragment.Change{}, err
			}
			return fragment.Delete(state, t.TopicSI(), 0)
		})
		if err != nil {
			return e, err
		}
		e.Deleted += removed.Deleted
	}
	return e, nil
}

// RemoveTopic removes all local statements about the topic with a subject identifier, including its associations. A
// [*fragment.InUseError] names remaining uses.
func (s Statements) RemoveTopic(ctx context.Context, ref string) (*Edit, error) {
	si, err := s.reference(ctx, ref)
	if err != nil {
		return nil, err
	}
	var mentioned []tmdm.Locator
	return s.editTidily(ctx, &mentioned, func(col store.Collection, state merge.State) (*fragment.Change, error) {
		t, err := state.Topic(si)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, notLocal(ref)
		}
		tm, err := described(ctx, col.SP, state, t.TopicSI())
		if err != nil {
			return nil, err
		}
		mentioned = others(tm, tm.TopicBySubjectIdentifier(t.TopicSI()))
		n, err := state.Mentions(t.TopicSI())
		if err != nil {
			return nil, err
		}
		return fragment.Delete(state, t.TopicSI(), n)
	})
}

func notLocal(ref string) error {
	return fmt.Errorf("there are no local statements about %s; those of other sources are theirs to change", ref)
}

// edit commits a change of the local statements.
func (s Statements) edit(ctx context.Context, decide func(col store.Collection, state merge.State) (*fragment.Change,
	error)) (*Edit, error) {
	e := &Edit{}
	_, err := s.Store.PublishLocal(ctx, Name, func(col store.Collection, state merge.State) (*fragment.Change, error) {
		change, err := decide(col, state)
		if err == nil {
			*e = Edit{SP: col.SP, Added: change.Added, Updated: change.Updated, Deleted: change.Deleted}
			change.Author = s.Author
		}
		return change, err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, errors.New("there are no local statements")
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// reference returns the subject identifier by which local statements refer to the topic with the subject identifier si:
// that of the local source if it has the topic, else that of the first other source.
func (s Statements) reference(ctx context.Context, si string) (tmdm.Locator, error) {
	meant, err := tmdm.Named(si)
	if err != nil {
		return "", cli.UsageError(fmt.Errorf(
			"%q is no subject identifier: %w; write an absolute IRI, as in http://psi.example.org/topic", si, err))
	}
	best, found := meant[len(meant)-1], false
	err = s.Store.ReadParts(ctx, func(parts []store.Part) error {
		for _, l := range meant {
			for _, p := range parts {
				t, err := p.Source.Topic(l)
				if err != nil {
					return err
				}
				if t != nil && (isLocal(p) || !found) {
					best, found = t.TopicSI(), true
				}
			}
			if found {
				break
			}
		}
		return nil
	})
	return best, err
}

// described returns a map with the statements of a source about one topic, and the mentioned topics without theirs.
func described(ctx context.Context, sp string, state merge.State, si tmdm.Locator) (*tmdm.TopicMap, error) {
	var own merge.Memory
	t, err := state.Topic(si)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{si}}}
	}
	if err := own.PutTopic(t); err != nil {
		return nil, err
	}
	for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
		if err := seq.Each(state.AssociationsOf(t.TopicSI(), part), own.PutAssociation); err != nil {
			return nil, err
		}
	}
	tm, _, err := merge.Join(ctx, merge.Part{SP: sp, Source: &own})
	return tm, err
}

// bare reports whether a topic has no statements, and at most one identifier.
func bare(t *tmdm.Topic) bool {
	return len(t.Names())+len(t.Occurrences())+len(t.RolesPlayed()) == 0 &&
		len(t.SubjectIdentifiers())+len(t.SubjectLocators()) == 1
}

// deleteUnused returns the change that deletes the record of a topic without statements; nil if something refers to it.
func deleteUnused(state merge.State, topic *tmdm.Topic) (*fragment.Change, error) {
	t, err := state.Topic(topic.SubjectIdentifiers()[0])
	if err != nil {
		return nil, err
	}
	if t == nil {
		return &fragment.Change{}, nil
	}
	n, err := state.Mentions(t.TopicSI())
	if err != nil {
		return nil, err
	}
	change, err := fragment.Delete(state, t.TopicSI(), n)
	if errors.As(err, new(*fragment.InUseError)) {
		return nil, nil
	}
	return change, err
}

// Named returns the topic of tm for the topic with a subject identifier, to use as a type, a theme or a player.
func (s Statements) Named(ctx context.Context, tm *tmdm.TopicMap, si string) (*tmdm.Topic, error) {
	ref, err := s.reference(ctx, si)
	if err != nil {
		return nil, err
	}
	return tm.CreateTopicBySubjectIdentifier(ref), nil
}

// AllNamed is Named for several.
func (s Statements) AllNamed(ctx context.Context, tm *tmdm.TopicMap, sis []string) (_ []*tmdm.Topic, err error) {
	out := make([]*tmdm.Topic, len(sis))
	for i := 0; i < len(sis) && err == nil; i++ {
		out[i], err = s.Named(ctx, tm, sis[i])
	}
	return out, err
}
