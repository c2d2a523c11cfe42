package tmdm

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// workshop changes a map at random. Few identifiers and values, so that much
// collides and becomes equal.
type workshop struct {
	tm *TopicMap
	// Topics that were ever created and not removed. Those merged into others
	// stay in it, since callers hold on to topics too.
	topics []*Topic
}

func newWorkshop() *workshop {
	w := &workshop{tm: New()}
	w.startAgain()
	return w
}

// startAgain provides the one topic that the actions need.
func (w *workshop) startAgain() { w.topics = append(w.topics, si(w.tm, "first")) }

func (w *workshop) topic(t *rapid.T, label string) *Topic {
	return rapid.SampledFrom(w.topics).Draw(t, label)
}

func (w *workshop) themes(t *rapid.T) []*Topic {
	return rapid.SliceOfN(rapid.SampledFrom(w.topics), 0, 2).Draw(t, "themes")
}

func locator(t *rapid.T) Locator {
	return Locator(fmt.Sprint(ex, rapid.IntRange(1, 12).Draw(t, "locator")))
}

func value(t *rapid.T) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value") }

// construct draws one of the items of type C, and false where there is none.
func construct[C Construct](t *rapid.T, w *workshop) (C, bool) {
	var all []C
	for _, c := range itemsOf(w.tm) {
		if c, ok := c.(C); ok {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		var none C
		return none, false
	}
	return rapid.SampledFrom(all).Draw(t, "construct"), true
}

func (w *workshop) createTopic(t *rapid.T) {
	loc := locator(t)
	var topic *Topic
	switch rapid.IntRange(0, 2).Draw(t, "kind of identifier") {
	case 0:
		topic = w.tm.CreateTopicBySubjectIdentifier(loc)
		require.Same(t, topic, w.tm.TopicBySubjectIdentifier(loc))
	case 1:
		topic = w.tm.CreateTopicBySubjectLocator(loc)
		require.Same(t, topic, w.tm.TopicBySubjectLocator(loc))
	case 2:
		before, topics := canonical(w.tm), len(slices.Collect(w.tm.Topics()))
		var err error
		if topic, err = w.tm.CreateTopicByItemIdentifier(loc); err != nil {
			w.refused(t, before, loc, err)
			require.Len(t, slices.Collect(w.tm.Topics()), topics)
			return
		}
		require.Same(t, topic, w.tm.ConstructByItemIdentifier(loc))
	}
	w.topics = append(w.topics, topic)
}

// refused checks an IdentityError.
func (w *workshop) refused(t *rapid.T, before string, loc Locator, err error) *IdentityError {
	var identity *IdentityError
	require.ErrorAs(t, err, &identity)
	require.Equal(t, loc, identity.Locator)
	require.Contains(t, identity.Error(), string(loc))
	require.Contains(t, []Construct{w.tm.TopicBySubjectIdentifier(loc), w.tm.TopicBySubjectLocator(loc), w.tm.ConstructByItemIdentifier(loc)}, identity.Existing)
	require.Equal(t, before, canonical(w.tm), "nothing was changed")
	return identity
}

// identify adds an identifier, and merges topics that it identifies as one.
func (w *workshop) identify(t *rapid.T) {
	topic, loc, before := w.topic(t, "topic"), locator(t), canonical(w.tm)
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "kind of identifier") {
	case 0:
		err = topic.AddSubjectIdentifier(loc)
	case 1:
		err = topic.AddSubjectLocator(loc)
	case 2:
		err = AddItemIdentifier(topic, loc)
	}
	if err == nil {
		return
	}
	if other, ok := w.refused(t, before, loc, err).Existing.(*Topic); ok {
		w.merge(t, topic, other)
	}
}

func (w *workshop) merge(t *rapid.T, topic, other *Topic) {
	before := canonical(w.tm)
	topic, other = topic.live(), other.live()
	err := topic.Merge(other)
	if err == nil {
		require.Same(t, topic, other.live())
		return
	}
	var reifier *ReifierError
	require.ErrorAs(t, err, &reifier)
	require.Same(t, topic.Reified(), reifier.Existing)
	require.Same(t, other.Reified(), reifier.Construct)
	require.Equal(t, before, canonical(w.tm), "nothing was changed")
}

// actions are the ways in which rapid changes the map, each with some chance.
func (w *workshop) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create topic": w.createTopic,
		"identify":     w.identify,
		"merge":        func(t *rapid.T) { w.merge(t, w.topic(t, "topic"), w.topic(t, "other")) },
		"identify statement": func(t *rapid.T) {
			c, _ := construct[Reifiable](t, w)
			loc, before := locator(t), canonical(w.tm)
			if err := AddItemIdentifier(c, loc); err != nil {
				w.refused(t, before, loc, err)
			}
		},
		"forget identifiers": func(t *rapid.T) {
			c, _ := construct[Construct](t, w)
			loc := locator(t)
			RemoveItemIdentifier(c, loc)
			w.topic(t, "topic").RemoveSubjectIdentifier(loc)
			w.topic(t, "topic").RemoveSubjectLocator(loc)
		},
		"add name": func(t *rapid.T) {
			n := w.topic(t, "topic").AddName(value(t), w.topic(t, "type"), w.themes(t)...)
			n.AddVariant(value(t), XSDString, w.themes(t)...)
		},
		"add occurrence": func(t *rapid.T) {
			w.topic(t, "topic").AddOccurrence(value(t), XSDString, w.topic(t, "type"), w.themes(t)...)
		},
		"add association": func(t *rapid.T) {
			a := w.tm.CreateAssociation(w.topic(t, "type"), w.themes(t)...)
			for range rapid.IntRange(0, 3).Draw(t, "roles") {
				a.AddRole(w.topic(t, "type"), w.topic(t, "player"))
			}
		},
		"add role": func(t *rapid.T) {
			if a, ok := construct[*Association](t, w); ok {
				a.AddRole(w.topic(t, "type"), w.topic(t, "player"))
			}
		},
		"add type": func(t *rapid.T) {
			topic, class := w.topic(t, "topic"), w.topic(t, "class")
			topic.AddType(class)
			require.Contains(t, slices.Collect(topic.Types()), class.live())
		},
		"copy statement": func(t *rapid.T) { // reifiers meet where statements are equal
			switch c, _ := construct[Reifiable](t, w); c := c.(type) {
			case *TopicName:
				c.Topic().AddName(c.Value(), c.Type(), c.Scope().Themes()...)
			case *Variant:
				c.Name().AddVariant(c.Value(), c.Datatype(), c.Scope().Themes()...)
			case *Occurrence:
				c.Topic().AddOccurrence(c.Value(), c.Datatype(), c.Type(), c.Scope().Themes()...)
			case *Association:
				other := w.tm.CreateAssociation(c.Type(), c.Scope().Themes()...)
				for _, r := range c.Roles() {
					other.AddRole(r.Type(), r.Player())
				}
			}
		},
		"reify": func(t *rapid.T) {
			c, _ := construct[Reifiable](t, w)
			topic, before := w.topic(t, "reifier"), canonical(w.tm)
			var reifier *ReifierError
			if err := SetReifier(c, topic); errors.As(err, &reifier) {
				require.Same(t, topic.Reified(), reifier.Existing)
				require.Equal(t, before, canonical(w.tm), "nothing was changed")
				return
			}
			require.Same(t, topic.live(), c.Reifier())
		},
		"take reifier": func(t *rapid.T) {
			c, _ := construct[Reifiable](t, w)
			require.NoError(t, SetReifier(c, nil))
			require.Nil(t, c.Reifier())
		},
		"change statement": func(t *rapid.T) {
			c, _ := construct[Reifiable](t, w)
			switch c := c.(type) {
			case *TopicName:
				c.SetValue(value(t))
				c.SetType(w.topic(t, "type"))
				c.SetScope(w.themes(t)...)
			case *Variant:
				c.SetValue(value(t), XSDAnyURI)
				c.SetScope(w.themes(t)...)
			case *Occurrence:
				c.SetValue(value(t), XSDAnyURI)
				c.SetType(w.topic(t, "type"))
				c.SetScope(w.themes(t)...)
			case *Association:
				c.SetType(w.topic(t, "type"))
				c.SetScope(w.themes(t)...)
			case *AssociationRole:
				c.SetType(w.topic(t, "type"))
				c.SetPlayer(w.topic(t, "player"))
			}
		},
		"take type": func(t *rapid.T) {
			topic, class := w.topic(t, "topic"), w.topic(t, "class")
			topic.RemoveType(class)
			require.NotContains(t, slices.Collect(topic.Types()), class.live())
		},
		"remove statement": func(t *rapid.T) {
			c, _ := construct[Reifiable](t, w)
			if c, ok := c.(interface{ Remove() }); ok {
				c.Remove()
				require.False(t, slices.Contains(itemsOf(w.tm), c.(Construct)))
			}
		},
		"remove topic": func(t *rapid.T) {
			topic, before := w.topic(t, "topic").live(), canonical(w.tm)
			var inUse *InUseError
			if errors.As(topic.Remove(), &inUse) {
				require.Equal(t, before, canonical(w.tm), "nothing was changed")
				return
			}
			w.topics = slices.DeleteFunc(w.topics, func(x *Topic) bool { return x.live() == topic })
			if len(w.topics) == 0 {
				w.startAgain()
			}
		},
		"normalize": func(t *rapid.T) {
			var conflicts Conflicts
			if err := w.tm.Normalize(t.Context()); err != nil {
				require.ErrorAs(t, err, &conflicts)
			}
			for _, conflict := range conflicts {
				require.NotEmpty(t, conflict.Error())
				require.False(t, equalStatements(conflict.Construct, conflict.Existing))
			}
			checkNormal(t, w.tm)
		},
		"": func(t *rapid.T) { checkInvariants(t, w.tm) },
	}
}

// Whatever is done to a map, its invariants hold after each step.
func TestInvariants(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		t.Repeat(newWorkshop().actions())
	})
}
