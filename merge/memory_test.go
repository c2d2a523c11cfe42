package merge_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// What every state must do, Memory included, is checked by
// internal/store/storetest. The tests here cover the features of Memory alone.

func identity(sis ...tmdm.Locator) fragment.Identity {
	return fragment.Identity{SubjectIdentifiers: sis}
}

func TestTheZeroMemoryIsEmptyAndReady(t *testing.T) {
	var m merge.Memory
	require.Empty(t, dump(t, &m))
	require.False(t, has(t, &m, a))
	n, err := m.Mentions(a)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, m.DeleteTopic(&fragment.Topic{Identity: identity(a)}))
	require.NoError(t, m.DeleteAssociation(&fragment.Association{Type: a, Roles: []fragment.Role{{Type: a, Player: b}}}))
	require.NoError(t, m.PutTopic(&fragment.Topic{Identity: identity(a)}))
	require.True(t, has(t, &m, a))
}

func TestLoadAddsAllRecords(t *testing.T) {
	h := newHistory(t)
	h.version(func(m draft) {
		m.Associate(x, m.Named("A", a), m.Topic(b, c))
		m.Topic(d).AddType(m.Topic(a))
	})
	for _, src := range []fragment.Source{&h.state, h.snapshot()} {
		var m merge.Memory
		require.NoError(t, m.Load(src))
		require.Equal(t, dump(t, &h.state), dump(t, &m))
	}
	boom := errors.New("boom")
	for n := range 2 {
		var m merge.Memory
		require.ErrorIs(t, m.Load(&failing{State: &h.state, after: n, err: boom}), boom)
	}
}

// An association without roles belongs to no topic: there is nothing that could
// find it again, so it must leave nothing behind either.
func TestAnAssociationWithoutRolesIsNotKept(t *testing.T) {
	var m merge.Memory
	require.NoError(t, m.PutAssociation(&fragment.Association{Type: a}))
	require.Empty(t, dump(t, &m))
	n, err := m.Mentions(a)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestReferred(t *testing.T) {
	topic := &fragment.Topic{Identity: identity(a, b)}
	class := func(instance, class tmdm.Locator) *fragment.Association {
		return &fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
			{Type: tmdm.PSIInstance, Player: instance}, {Type: tmdm.PSIType, Player: class}}}
	}
	for name, refer := range map[string]any{
		"":                               nil,
		"a type":                         &fragment.Topic{Identity: identity(c), Names: []fragment.Name{{Value: "n", Type: a}}},
		"a type, by another identifier":  &fragment.Topic{Identity: identity(c), Names: []fragment.Name{{Value: "n", Type: b}}},
		"an association":                 &fragment.Association{Type: c, Roles: []fragment.Role{{Type: d, Player: b}}},
		"the type of a role":             &fragment.Association{Type: c, Roles: []fragment.Role{{Type: b, Player: d}}},
		"an instance":                    class(c, a),
		"a class":                        class(a, c),
		"a class, by another identifier": class(b, c),
	} {
		t.Run(name, func(t *testing.T) {
			var m merge.Memory
			require.NoError(t, m.PutTopic(topic))
			switch refer := refer.(type) {
			case *fragment.Topic:
				require.NoError(t, m.PutTopic(refer))
			case *fragment.Association:
				require.NoError(t, m.PutAssociation(refer))
			}
			referred, err := merge.Referred(&m, topic)
			require.NoError(t, err)
			require.Equal(t, name != "", referred)
		})
	}
	boom := errors.New("boom")
	for n := range 2 {
		_, err := merge.Referred(&failing{State: &merge.Memory{}, after: n, err: boom}, topic)
		require.ErrorIs(t, err, boom)
	}
}

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
