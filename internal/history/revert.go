package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// ConflictError says that topics of a commit have changed again since, so that it cannot be taken back by itself.
type ConflictError struct {
	Commit uint64
	Topics []fragment.Ref
}

// mostNamed is how many topics a ConflictError names in words.
const mostNamed = 5

func (e *ConflictError) Error() string {
	names := make([]string, 0, mostNamed+1)
	for i, ref := range e.Topics {
		if i == mostNamed {
			names = append(names, fmt.Sprintf("and %d more", len(e.Topics)-mostNamed))
			break
		}
		names = append(names, string(ref))
	}
	return fmt.Sprintf("commit %d cannot be reverted by itself: later ones have changed %s; revert these first, or single topics", e.Commit, strings.Join(names, ", "))
}

// Without returns the present state without a commit: its topics are what they were before, all others what they
// are. The commit is that of the entry with a sequence. Where later commits have changed its topics the error is
// a [*ConflictError]. The state must be closed.
func Without(ctx context.Context, v *store.View, scratch string, commit uint64) (*Past, error) {
	e, err := v.Entry(commit)
	if err != nil {
		return nil, err
	}
	first := cmp.Or(e.Commit, e.Seq)
	if first <= v.Horizon {
		return nil, fmt.Errorf("%w: a part of commit %d; the history of %s before %s is pruned", store.ErrGone, first, v.Name, feeds.FormatTime(v.HorizonTime))
	}
	end, err := whole(v, first)
	if err != nil {
		return nil, err
	}
	conflict := &ConflictError{Commit: first}
	for e, err := range v.Entries(first) {
		if err != nil {
			return nil, err
		}
		if e.Seq > end.Seq {
			break
		}
		last, err := v.LastOf(e.TopicSI)
		if err != nil {
			return nil, err
		}
		if last.Seq != e.Seq {
			conflict.Topics = append(conflict.Topics, e.TopicSI)
		}
	}
	if len(conflict.Topics) > 0 {
		return nil, conflict
	}
	return open(ctx, v, scratch, Moment{Seq: first - 1}, end.Seq)
}

// Taken returns the change that makes a document which [Past.Write] has written the present state, unless that loses more
// than it may. All topics have their names already: to choose names as for a new version could join topics that a commit has divided.
func Taken(ctx context.Context, sp string, prior fragment.Source, document *tmdm.TopicMap, limit losses.Limit) (*fragment.Change, error) {
	next, err := fragment.NewMap(document, sp)
	if err != nil {
		return nil, err
	}
	return losses.Diff(ctx, prior, next, limit)
}

// Was returns what a topic was in a state, or nil where there was none with that TopicSI. A topic that was known under another TopicSI
// then is a [*MovedError].
func Was(ctx context.Context, v *store.View, ref fragment.Ref, at Moment) (*fragment.Fragment, error) {
	e, err := Version(v, fragment.Key(ref), at)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case e.Deleted:
		return nil, nil
	case !e.Lives():
		return nil, &MovedError{ref, e.Topic}
	}
	return Read(ctx, v, e)
}

// MovedError says that an identifier belongs to a topic with another TopicSI.
type MovedError struct{ Identifier, Topic fragment.Ref }

func (e *MovedError) Error() string {
	return fmt.Sprintf("the identifier %s belongs to the topic %s: revert that, or the commit that has joined the two", e.Identifier, e.Topic)
}

// Back returns the change that makes a topic what it was: said, or nil where it was not there. An identifier that it had and another topic has
// by now is a [*MovedError].
func Back(ctx context.Context, sp string, prior fragment.Published, ref fragment.Ref, said *fragment.Fragment) (*fragment.Change, error) {
	is, err := prior.Topic(ref)
	if err != nil {
		return nil, err
	}
	if is != nil && is.TopicSI() != ref {
		return nil, &MovedError{ref, is.TopicSI()}
	}
	if said == nil {
		if is == nil {
			return &fragment.Change{}, nil
		}
		mentions, err := prior.Mentions(ref)
		if err != nil {
			return nil, err
		}
		return fragment.Delete(prior, ref, mentions)
	}
	if err := stillOwn(ref, said.Topic.SubjectIdentifiers, prior.Topic); err != nil {
		return nil, err
	}
	if err := stillOwn(ref, said.Topic.SubjectLocators, prior.TopicBySubjectLocator); err != nil {
		return nil, err
	}
	tm, err := differ{ctx, sp}.topicMap(said)
	if err != nil {
		return nil, err
	}
	return fragment.Replace(ctx, prior, tm, sp, ref)
}

// stillOwn checks that no other topic has one of the locators of a topic.
func stillOwn(ref fragment.Ref, locators []tmdm.Locator, find func(tmdm.Locator) (*fragment.Topic, error)) error {
	for _, l := range locators {
		owner, err := find(l)
		if err != nil {
			return err
		}
		if owner != nil && owner.TopicSI() != ref {
			return &MovedError{l, owner.TopicSI()}
		}
	}
	return nil
}
