package fragment_test

import (
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// broken is a source whose calls fail once there have been enough of them.
type broken struct {
	*fragment.Map
	after, calls int
	err          error
}

func (b *broken) fail() error {
	if b.calls++; b.calls > b.after {
		return b.err
	}
	return nil
}

func (b *broken) Topic(si fragment.Ref) (*fragment.Topic, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.Topic(si)
}

func (b *broken) Identity(si fragment.Ref) (*fragment.Identity, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.Identity(si)
}

func (b *broken) TopicBySubjectLocator(sl tmdm.Locator) (*fragment.Topic, error) {
	if err := b.fail(); err != nil {
		return nil, err
	}
	return b.Map.TopicBySubjectLocator(sl)
}

func (b *broken) Topics() iter.Seq2[*fragment.Topic, error] { return brokenSeq(b, b.Map.Topics()) }

func (b *broken) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	return brokenSeq(b, b.Map.AssociationsOf(player, part))
}

func (b *broken) Associations() iter.Seq2[*fragment.Association, error] {
	return brokenSeq(b, b.Map.Associations())
}

// brokenSeq fails before an element, or at the end.
func brokenSeq[T any](b *broken, seq iter.Seq2[*T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for x, err := range seq {
			if failed := b.fail(); failed != nil {
				yield(nil, failed)
				return
			}
			if !yield(x, err) {
				return
			}
		}
		if err := b.fail(); err != nil {
			yield(nil, err)
		}
	}
}
