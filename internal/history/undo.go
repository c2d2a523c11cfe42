package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/tmdm"
)

// Kept is a statement of a commit that cannot be undone.
type Kept struct {
	About  string `json:"about"` // a TopicSI, or the players of an association
	Reason string `json:"reason"`
}

// ConflictError names the parts of a commit that cannot be undone: changed ones, or with removed references.
type ConflictError struct {
	Commit uint64
	Kept   []Kept
}

// mostNamed is the number of parts that a ConflictError names.
const mostNamed = 10

func (e *ConflictError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"commit %d cannot be taken back as a whole, and nothing was changed; to take back the rest send it with force "+
			"(--force). These would stay:", e.Commit)
	for i, k := range e.Kept {
		if i == mostNamed {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Kept)-mostNamed)
			break
		}
		fmt.Fprintf(&b, "\n  %s: %s", k.About, k.Reason)
	}
	return b.String()
}

// HTTPStatus is the status of the answer.
func (e *ConflictError) HTTPStatus() int { return http.StatusConflict }

// Undone holds the options for undoing a commit.
type Undone struct {
	Force bool         // undo what is possible, even if parts remain
	Limit losses.Limit // of its losses
}

// Undo returns the change that restores each record changed by the commit of an entry to its version before. The view
// is the state to change. It keeps a record that has changed since, or that would refer to a removed topic, take an
// identifier from another topic, or remove a topic with references. Without Force, the error is a [*ConflictError] if
// there is any of these.
func Undo(ctx context.Context, v *store.View, commitOf uint64, o Undone) (*fragment.Change, error) {
	if _, err := v.Entry(commitOf); err != nil {
		return nil, err
	}
	number, err := v.CommitOf(commitOf)
	if err != nil {
		return nil, err
	}
	b, err := commit(v, number)
	if err != nil {
		return nil, err
	}
	u := undo{between: b, v: v, now: v.State(), topics: map[fragment.Ref]*turn[fragment.Topic]{},
		associations: map[fragment.AssociationKey]*turn[fragment.Association]{}, mentioned: map[fragment.Ref]int{}}
	if err := u.gather(ctx, number); err != nil {
		return nil, err
	}
	for dropped := -1; dropped != len(u.kept); {
		dropped = len(u.kept)
		if err := u.check(); err != nil {
			return nil, err
		}
	}
	if len(u.kept) > 0 && !o.Force {
		slices.SortFunc(u.kept, func(a, b Kept) int { return strings.Compare(a.About+a.Reason, b.About+b.Reason) })
		return nil, &ConflictError{number, slices.Compact(u.kept)}
	}
	return u.change(o.Limit)
}

// turn is a record to restore: nil is none.
type turn[T any] struct{ was, is *T }

type undo struct {
	between
	v            *store.View
	now          records.State
	topics       map[fragment.Ref]*turn[fragment.Topic]
	associations map[fragment.AssociationKey]*turn[fragment.Association]
	mentioned    map[fragment.Ref]int // number of present mentions of each of these
	kept         []Kept
}

// mention counts the references of a topic and an association, which may be nil, among the changes.
func (u *undo) mention(by int, t *fragment.Topic, a *fragment.Association) {
	count := func(ref fragment.Ref) { u.mentioned[ref] += by }
	if t != nil {
		t.Mentions(count)
	}
	if a != nil {
		a.Mentions(count)
	}
}

func (u *undo) keep(about, format string, args ...any) {
	u.kept = append(u.kept, Kept{about, fmt.Sprintf(format, args...)})
}

func nameOf(a *fragment.Association) string {
	players := make([]string, 0, len(a.Roles))
	for _, p := range a.Players() {
		players = append(players, p.String())
	}
	return "the association of " + strings.Join(players, ", ")
}

const changedSince = "it has changed since"

// gather finds the records that the commit has changed, and have not changed since.
func (u *undo) gather(ctx context.Context, commit uint64) error {
	for key, err := range u.v.Changed(commit-1, commit) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = u.record(key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *undo) record(key []byte) error {
	player, _, plays := records.Playing(key)
	if _, topic := records.TopicOf(key); !topic && !plays {
		return nil
	}
	was, err := u.before.RecordAt(key)
	if err != nil {
		return err
	}
	then, err := u.after.RecordAt(key)
	if err != nil {
		return err
	}
	some := cmp.Or(then.Association, was.Association)
	if !plays {
		return u.topic(key, was.Topic, then.Topic)
	}
	if some == nil || some.Players()[0] != player || u.associations[some.Key()] != nil {
		return nil
	}
	if was.Association, err = u.before.Stored(some); err != nil {
		return err
	}
	if then.Association, err = u.after.Stored(some); err != nil {
		return err
	}
	is, err := u.now.Stored(some)
	if err == nil && turns(was.Association, then.Association, is, fragment.SameAssociation, func() {
		u.keep(nameOf(some), changedSince)
	}) {
		u.associations[some.Key()] = &turn[fragment.Association]{was.Association, is}
		u.mention(1, nil, is)
	}
	return err
}

func (u *undo) topic(key []byte, was, then *fragment.Topic) error {
	ref, _ := records.TopicOf(key)
	is, err := u.now.RecordAt(key)
	if err == nil && turns(was, then, is.Topic, fragment.SameTopic, func() { u.keep(ref.String(), changedSince) }) {
		u.topics[ref] = &turn[fragment.Topic]{was, is.Topic}
		u.mention(1, is.Topic, nil)
	}
	return err
}

// turns reports whether a record is to be restored: not if it is already, or has changed since.
func turns[T any](was, then, is *T, equal func(a, b *T) bool, changed func()) bool {
	same := func(a, b *T) bool { return a == b || a != nil && b != nil && equal(a, b) }
	switch {
	case same(was, is):
		return false
	case same(then, is):
		return true
	}
	changed()
	return false
}

// check records the parts that cannot be restored.
func (u *undo) check() error {
	byIdentifier := map[tmdm.Locator]*fragment.Topic{} // of added topics
	for _, t := range u.topics {
		if t.was != nil {
			for _, si := range t.was.SubjectIdentifiers {
				byIdentifier[si] = t.was
			}
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(u.topics)) {
		why, err := u.unfit(ref, u.topics[ref], byIdentifier)
		if err != nil {
			return err
		}
		if why != "" {
			u.keep(ref.String(), "%s", why)
			u.mention(-1, u.topics[ref].is, nil)
			delete(u.topics, ref)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(u.associations), func(a, b fragment.AssociationKey) int {
		return strings.Compare(string(a[:]), string(b[:]))
	}) {
		a := u.associations[key].was
		if a == nil {
			continue
		}
		name := nameOf(a)
		var all []fragment.Ref
		a.Mentions(func(ref fragment.Ref) { all = append(all, ref) })
		why, err := u.refer(append(all, a.Players()...), byIdentifier, a.Refer)
		if err == nil && why == "" {
			why, err = u.reified(records.ReifiersOf(a), key)
		}
		if err != nil {
			return err
		}
		if why != "" {
			u.keep(name, "%s", why)
			u.mention(-1, nil, u.associations[key].is)
			delete(u.associations, key)
		}
	}
	return nil
}

// unfit returns the reason why a topic cannot be restored, or "".
func (u *undo) unfit(ref fragment.Ref, t *turn[fragment.Topic],
	byIdentifier map[tmdm.Locator]*fragment.Topic) (string, error) {
	if t.was == nil {
		return u.used(ref)
	}
	for _, side := range []struct {
		all  []tmdm.Locator
		find func(tmdm.Locator) (*fragment.Topic, error)
	}{{t.was.SubjectIdentifiers, u.now.Topic}, {t.was.SubjectLocators, u.now.TopicBySubjectLocator}} {
		for _, l := range side.all {
			owner, err := side.find(l)
			if err != nil {
				return "", err
			}
			if owner != nil && (u.topics[owner.TopicSI()] == nil || u.topics[owner.TopicSI()].is == nil) {
				return fmt.Sprintf("its identifier %s belongs to %s now", l, owner.TopicSI()), nil
			}
		}
	}
	var all []fragment.Ref
	t.was.Mentions(func(ref fragment.Ref) { all = append(all, ref) })
	why, err := u.refer(all, byIdentifier, t.was.Refer)
	if err == nil && why == "" {
		why, err = u.reified(records.Reifiers(t.was), fragment.AssociationKey{}, ref)
	}
	return why, err
}

// refer has a record refer to the topics that have its references by now. It returns why that cannot be, or "".
func (u *undo) refer(all []fragment.Ref, byIdentifier map[tmdm.Locator]*fragment.Topic,
	rewrite func(func(fragment.Ref) fragment.Ref)) (why string, err error) {
	others := map[fragment.Ref]fragment.Ref{}
	for _, ref := range all {
		owner := byIdentifier[ref]
		if owner == nil {
			if owner, err = u.now.Topic(ref); err != nil {
				return "", err
			}
			if owner != nil && u.topics[owner.TopicSI()] != nil { // that is removed, or loses the identifier
				owner = nil
			}
		}
		switch {
		case owner == nil:
			return fmt.Sprintf("it refers to %s, which is gone", ref), nil
		case owner.TopicSI() != ref:
			others[ref] = owner.TopicSI()
		}
	}
	if len(others) > 0 {
		rewrite(func(ref fragment.Ref) fragment.Ref {
			if to, ok := others[ref]; ok {
				return to
			}
			return ref
		})
	}
	return "", nil
}

// goes reports whether an existing association is removed or replaced.
func (u *undo) goes(key fragment.AssociationKey) bool { return u.associations[key] != nil }

// used returns a use of a topic to be removed, or "".
func (u *undo) used(ref fragment.Ref) (string, error) {
	for _, part := range fragment.Parts {
		for a, err := range u.now.AssociationsOf(ref, part) {
			if err != nil {
				return "", err
			}
			if !u.goes(a.Key()) {
				return "others refer to it by now: " + nameOf(a), nil
			}
		}
	}
	n, err := u.now.Mentions(ref)
	if n > u.mentioned[ref] {
		return "others refer to it by now", err
	}
	return "", err
}

// reified returns one of some reifiers that reifies something else that is kept, or "". what is the new item.
func (u *undo) reified(reifiers []fragment.Ref, what fragment.AssociationKey, topic ...fragment.Ref) (string, error) {
	for _, reifier := range reifiers {
		for r, err := range u.now.ReifiedBy(reifier) {
			switch {
			case err != nil:
				return "", err
			case r.Topic != nil && (slices.Contains(topic, r.Topic.TopicSI()) || u.topics[r.Topic.TopicSI()] != nil):
			case r.Association != nil && (r.Association.Key() == what || u.goes(r.Association.Key())):
			default:
				return fmt.Sprintf("its reifier %s reifies something else by now", reifier), nil
			}
		}
	}
	return "", nil
}
