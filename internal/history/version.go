package history

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
)

// Version returns the last entry of a topic key in a state. The error is [store.ErrNotFound] if the key had none yet,
// and [store.ErrGone] if the entry is pruned.
func Version(v *store.View, key string, at Moment) (*store.Entry, error) {
	e, err := v.Last(key)
	if err == nil && e == nil {
		err = fmt.Errorf("%w: a topic with the key %s in %s", store.ErrNotFound, key, v.Name)
	}
	for err == nil && e.Seq > at.Seq {
		if e.Prior == 0 {
			return nil, fmt.Errorf("%w: the topic %s at %s; %s has it since %s",
				store.ErrNotFound, e.TopicSI, feeds.FormatTime(at.Updated), v.Name, feeds.FormatTime(e.Updated))
		}
		if e.Prior <= v.Horizon {
			return nil, fmt.Errorf("%w: what %s was before its next change; the history of %s before %s is pruned",
				store.ErrGone, e.TopicSI, v.Name, feeds.FormatTime(v.HorizonTime))
		}
		e, err = v.Entry(e.Prior)
	}
	return e, err
}

// Was returns a topic in a state, or nil if there was none with that TopicSI. If it had another TopicSI then, the error
// is a [*MovedError].
func Was(v *store.View, ref fragment.Ref, at Moment) (*fragment.Fragment, error) {
	then, err := v.Past(at.Seq)
	if err != nil {
		return nil, err
	}
	t, err := then.Topic(ref)
	switch {
	case err != nil || t == nil:
		return nil, err
	case t.TopicSI() != ref:
		return nil, &MovedError{ref, t.TopicSI()}
	}
	return fragmentThen(then, t)
}

// Has reports whether a topic was there in a state, with that TopicSI.
func Has(v *store.View, ref fragment.Ref, at Moment) (bool, error) {
	then, err := v.Past(at.Seq)
	if err != nil {
		return false, err
	}
	t, err := topicOf(then, ref)
	return t != nil, err
}

// Read returns a live topic after the commit of an entry, without the associations that belong to its instances. The
// error is [store.ErrGone] if that is no longer stored.
func Read(ctx context.Context, v *store.View, e *store.Entry) (*fragment.Fragment, error) {
	f, err := Was(v, e.TopicSI, Moment{Seq: e.Seq})
	if err == nil && f == nil {
		err = fmt.Errorf("%w: the topic %s after entry %d of %s", store.ErrGone, e.TopicSI, e.Seq, v.Name)
	}
	return f, err
}

// fragmentThen returns the fragment of a topic as it is in a state.
func fragmentThen(then records.State, t *fragment.Topic) (*fragment.Fragment, error) {
	f := &fragment.Fragment{TopicSI: t.TopicSI(), Topic: t}
	for a, err := range then.PlayedBy(t.TopicSI()) {
		if err != nil {
			return nil, err
		}
		f.Associations = append(f.Associations, a)
	}
	return f, nil
}

// topicOf returns the topic with a TopicSI in a state, or nil.
func topicOf(then records.State, ref fragment.Ref) (*fragment.Topic, error) {
	t, err := then.Topic(ref)
	if t != nil && t.TopicSI() != ref {
		t = nil
	}
	return t, err
}
