package merge_test

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// failing is a state whose calls fail once there have been enough of them.
type failing struct {
	merge.State
	after, calls int
	err          error
}

func (f *failing) fail() error {
	if f.calls++; f.calls > f.after {
		return f.err
	}
	return nil
}

func (f *failing) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	return f.State.Topic(si)
}

func (f *failing) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	return f.State.TopicBySubjectLocator(sl)
}

func (f *failing) Topics() iter.Seq2[*fragment.Topic, error] {
	return failingSeq(f, f.State.Topics())
}

func (f *failing) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return failingSeq(f, f.State.AssociationsOf(player, part))
}

func (f *failing) Associations() iter.Seq2[*fragment.Association, error] {
	return failingSeq(f, f.State.Associations())
}

// failingSeq fails before the first element, or else yields all.
func failingSeq[T any](f *failing, seq iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		if err := f.fail(); err != nil {
			yield(nil, err)
			return
		}
		seq(yield)
	}
}

func (f *failing) Mentions(ref fragment.Ref) (int, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.State.Mentions(ref)
}

func (f *failing) PutTopic(t *fragment.Topic) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.State.PutTopic(t)
}

func (f *failing) DeleteTopic(t *fragment.Topic) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.State.DeleteTopic(t)
}

func (f *failing) PutAssociation(a *fragment.Association) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.State.PutAssociation(a)
}

func (f *failing) DeleteAssociation(a *fragment.Association) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.State.DeleteAssociation(a)
}
