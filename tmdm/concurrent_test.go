package tmdm_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
)

// readEverything reads each property of each item, looks identifiers up and walks
// all relations. It returns how much it has met.
func readEverything(tm *tmdm.TopicMap) (n int) {
	var topics []*tmdm.Topic
	for t := range tm.Topics() {
		topics = append(topics, t)
	}
	for c := range tm.Constructs() {
		n += len(c.ItemIdentifiers())
		for _, l := range c.ItemIdentifiers() {
			if tm.ConstructByItemIdentifier(l) == c {
				n++
			}
		}
		if p := tmdm.Parent(c); p != nil {
			n += len(p.ItemIdentifiers())
		}
		if c, ok := c.(tmdm.Reifiable); ok && c.Reifier() != nil && c.Reifier().Reified() == c {
			n++
		}
		if c, ok := c.(tmdm.Typed); ok {
			n += len(c.Type().SubjectIdentifiers())
		}
		if c, ok := c.(tmdm.Scoped); ok {
			n += len(c.Scope().Themes())
			if c.Scope().ValidIn(topics...) && c.Scope().Contains(c.Scope()) {
				n++
			}
		}
		switch c := c.(type) {
		case *tmdm.Topic:
			n += readTopic(tm, c)
		case *tmdm.TopicName:
			n += len(c.SortKey()) + len(c.Variants())
		case *tmdm.Variant:
			n += len(c.Datatype())
		case *tmdm.Occurrence:
			n += len(c.Datatype())
		case *tmdm.Association:
			if _, _, ok := c.TypeInstance(); ok {
				n++
			}
		case *tmdm.AssociationRole:
			n += len(c.Player().RolesPlayed()) + len(list(c.Others()))
		}
	}
	for c := range tm.Constructs() {
		n += len(tmdm.Describe(c)) // last, as formatting puts goroutines into an order
	}
	return n
}

func readTopic(tm *tmdm.TopicMap, t *tmdm.Topic) (n int) {
	for _, l := range t.SubjectIdentifiers() {
		n += len(tm.TopicBySubjectIdentifier(l).Names())
	}
	for _, l := range t.SubjectLocators() {
		n += len(tm.TopicBySubjectLocator(l).Occurrences())
	}
	if t.DisplayName("en") != nil {
		n++
	}
	n += len(list(t.Types())) + len(list(t.Instances())) + len(list(t.AllTypes())) + len(list(t.AllInstances()))
	n += len(list(t.AllSupertypes())) + len(list(t.AllSubtypes()))
	for class := range t.AllTypes() {
		if t.IsInstanceOf(class) {
			n++
		}
	}
	n += len(list(t.NamesByType(t))) + len(list(t.OccurrencesByType(t))) + len(list(t.RolesPlayedByType(nil, t)))
	return n + len(list(tm.AssociationsByType(t)))
}

const readers = 4

// together calls read in several goroutines. They begin together, and none ends
// before all are through, as the race detector soon forgets who has ended.
func together(read func(i int)) {
	var ready, through, ended sync.WaitGroup
	ready.Add(readers)
	through.Add(readers)
	for i := range readers {
		ended.Go(func() {
			ready.Done()
			ready.Wait()
			read(i)
			through.Done()
			through.Wait()
		})
	}
	ended.Wait()
}

// After Normalize, reading writes nothing, whatever was merged, changed and
// removed before. It takes the race detector to see that (go test -race).
func TestEverythingIsReadAtOnce(t *testing.T) {
	tm := tmdm.New()
	const n = 12
	make := func(name string) *tmdm.Topic {
		it := topic(tm, name)
		require.NoError(t, it.AddSubjectLocator(tmdm.Locator(ex+name)))
		require.NoError(t, tmdm.AddItemIdentifier(it, tmdm.Locator(ex+"item/"+name)))
		return it
	}
	sort := tm.CreateTopicBySubjectIdentifier(tmdm.PSISort)
	var topics []*tmdm.Topic
	for i := range n {
		topics = append(topics, make(fmt.Sprint(i)))
	}
	for i, it := range topics {
		next, other := topics[(i+1)%n], topics[(i+5)%n]
		it.AddType(next)
		it.AddSupertype(other)
		name := it.AddName(fmt.Sprint(i/2), next, other)
		v := name.AddVariant(fmt.Sprint("v", i/2), tmdm.XSDString, sort, next)
		o := it.AddOccurrence(fmt.Sprint(i/2), tmdm.XSDInteger, other, next, it)
		a := tm.CreateAssociation(next, other, it)
		r := a.AddRole(next, it)
		a.AddRole(other, next)
		for kind, c := range []tmdm.Reifiable{name, v, o, a, r} {
			require.NoError(t, tmdm.AddItemIdentifier(c, tmdm.Locator(fmt.Sprint(ex, "statement/", kind, "/", i))))
			require.NoError(t, tmdm.SetReifier(c, make(fmt.Sprint("reifier/", kind, "/", i))))
		}
	}
	require.NoError(t, tmdm.SetReifier(tm, make("reifier of the map")))
	topics[4].RemoveType(topics[5])
	topics[3].Names()[0].Remove()
	// Merges in chains, so that references are several steps off, those of
	// themes, types, players and reifiers among them. Nothing is read between
	// here and there, since that settles references too.
	chains := [][]*tmdm.Topic{topics[0:3], topics[6:9], {topic(tm, "reifier of the map"), make("x"), make("y")}}
	for kind := range 5 {
		chains = append(chains, []*tmdm.Topic{topic(tm, fmt.Sprint("reifier/", kind, "/9")), make(fmt.Sprint("x", kind)), make(fmt.Sprint("y", kind))})
	}
	for _, chain := range chains {
		require.NoError(t, chain[1].Merge(chain[0]))
		require.NoError(t, chain[2].Merge(chain[1]))
	}
	require.NoError(t, tm.Normalize(t.Context()))

	var met [readers]int
	together(func(i int) { met[i] = readEverything(tm) })
	assert.Greater(t, met[0], 800)
	for _, n := range met {
		assert.Equal(t, met[0], n)
	}
}

// ways are the ways in which a map can refer to a topic.
var ways = map[string]func(tm *tmdm.TopicMap, t, other *tmdm.Topic) error{
	"subject identifier": func(_ *tmdm.TopicMap, t, _ *tmdm.Topic) error { return t.AddSubjectIdentifier(ex) },
	"subject locator":    func(_ *tmdm.TopicMap, t, _ *tmdm.Topic) error { return t.AddSubjectLocator(ex) },
	"item identifier":    func(_ *tmdm.TopicMap, t, _ *tmdm.Topic) error { return tmdm.AddItemIdentifier(t, ex) },
	"topic of a name":    func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { t.AddName("N", o); return nil },
	"type of a name":     func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { o.AddName("N", t); return nil },
	"theme of a name":    func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { o.AddName("N", o, t); return nil },
	"theme of a variant": func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error {
		o.AddName("N", o).AddVariant("v", "", t, o)
		return nil
	},
	"topic of an occurrence":  func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { t.AddOccurrence("O", "", o); return nil },
	"type of an occurrence":   func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { o.AddOccurrence("O", "", t); return nil },
	"theme of an occurrence":  func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { o.AddOccurrence("O", "", o, t); return nil },
	"type of an association":  func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error { tm.CreateAssociation(t); return nil },
	"theme of an association": func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error { tm.CreateAssociation(o, t, o); return nil },
	"type of a role":          func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error { tm.CreateAssociation(o).AddRole(t, o); return nil },
	"player of a role":        func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error { tm.CreateAssociation(o).AddRole(o, t); return nil },
	"reifier of the map":      func(tm *tmdm.TopicMap, t, _ *tmdm.Topic) error { return tmdm.SetReifier(tm, t) },
	"reifier of a name":       func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error { return tmdm.SetReifier(o.AddName("N", o), t) },
	"reifier of a variant": func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error {
		return tmdm.SetReifier(o.AddName("N", o).AddVariant("v", "", o), t)
	},
	"reifier of an occurrence": func(_ *tmdm.TopicMap, t, o *tmdm.Topic) error {
		return tmdm.SetReifier(o.AddOccurrence("O", "", o), t)
	},
	"reifier of an association": func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error {
		return tmdm.SetReifier(tm.CreateAssociation(o), t)
	},
	"reifier of a role": func(tm *tmdm.TopicMap, t, o *tmdm.Topic) error {
		return tmdm.SetReifier(tm.CreateAssociation(o).AddRole(o, o), t)
	},
}

// Each kind of reference alone, so that none is settled along with another.
func TestEachReferenceIsReadAtOnce(t *testing.T) {
	for way, refer := range ways {
		t.Run(way, func(t *testing.T) {
			tm := tmdm.New()
			first, second, third, other := tm.CreateTopic(), tm.CreateTopic(), tm.CreateTopic(), topic(tm, "other")
			require.NoError(t, refer(tm, first, other))
			require.NoError(t, second.Merge(first))
			require.NoError(t, third.Merge(second))
			require.NoError(t, tm.Normalize(t.Context()))
			together(func(int) { readEverything(tm) })
			assert.Equal(t, []*tmdm.Topic{third, other}, list(tm.Topics()))
		})
	}
}
