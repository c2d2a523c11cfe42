package history

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// MovedError is the error for an identifier of a topic with another TopicSI.
type MovedError struct{ Identifier, Topic fragment.Ref }

func (e *MovedError) Error() string {
	return fmt.Sprintf("the identifier %s belongs to the topic %s: revert that, or the commit that has joined the two",
		e.Identifier, e.Topic)
}

// HTTPStatus is the status of the answer.
func (e *MovedError) HTTPStatus() int { return http.StatusConflict }

// Back returns the change that restores a topic to the version earlier; nil: it did not exist. If another topic has one
// of its identifiers now, the error is a [*MovedError].
func Back(ctx context.Context, sp string, prior fragment.Published, ref fragment.Ref,
	earlier *fragment.Fragment) (*fragment.Change, error) {
	is, err := prior.Topic(ref)
	if err != nil {
		return nil, err
	}
	if is != nil && is.TopicSI() != ref {
		return nil, &MovedError{ref, is.TopicSI()}
	}
	if earlier == nil {
		if is == nil {
			return &fragment.Change{}, nil
		}
		mentions, err := prior.Mentions(ref)
		if err != nil {
			return nil, err
		}
		return fragment.Delete(prior, ref, mentions)
	}
	if err := stillOwn(ref, earlier.Topic.SubjectIdentifiers, prior.Topic); err != nil {
		return nil, err
	}
	if err := stillOwn(ref, earlier.Topic.SubjectLocators, prior.TopicBySubjectLocator); err != nil {
		return nil, err
	}
	tm, err := topicMap(ctx, sp, earlier)
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
