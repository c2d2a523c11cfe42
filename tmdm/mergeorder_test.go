package tmdm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// plan says how to build a map with many statements that a merge makes equal.
// It is built twice, and the same set of topics merged in two orders.
type plan struct {
	topics     int
	statements []statementPlan
	set        []int // the topics to merge
}

// statementPlan has topics by their numbers. Its reifier is a topic of its own.
type statementPlan struct {
	kind                       int
	topic, typ, theme, another int
	value                      string
	reified, identified        bool
}

func drawPlan(t *rapid.T) plan {
	p := plan{topics: rapid.IntRange(2, 7).Draw(t, "topics")}
	number := rapid.IntRange(0, p.topics-1)
	statement := rapid.Custom(func(t *rapid.T) statementPlan {
		return statementPlan{
			kind:  rapid.IntRange(0, 3).Draw(t, "kind"),
			topic: number.Draw(t, "topic"), typ: number.Draw(t, "type"), theme: number.Draw(t, "theme"), another: number.Draw(t, "another"),
			value:   rapid.SampledFrom([]string{"x", "y"}).Draw(t, "value"),
			reified: rapid.Bool().Draw(t, "reified"), identified: rapid.Bool().Draw(t, "identified"),
		}
	})
	p.statements = rapid.SliceOfN(statement, 1, 15).Draw(t, "statements")
	p.set = rapid.SliceOfNDistinct(number, 2, p.topics, rapid.ID[int]).Draw(t, "set")
	return p
}

// build returns the map and its topics; where it can, it refers to reifiers as
// well, so that joining those makes further statements equal.
func (p plan) build(t require.TestingT) (*TopicMap, []*Topic) {
	tm := New()
	var topics []*Topic
	for i := range p.topics {
		topics = append(topics, si(tm, fmt.Sprint("topic", i)))
	}
	for i, s := range p.statements {
		topic, typ, theme, another := topics[s.topic], topics[s.typ], topics[s.theme], topics[s.another]
		var c Reifiable
		switch s.kind {
		case 0:
			n := topic.AddName(s.value, typ, theme)
			n.AddVariant(s.value, XSDString, another)
			c = n
		case 1:
			c = topic.AddOccurrence(s.value, XSDString, typ, theme, another)
		case 2:
			a := tm.CreateAssociation(typ, theme)
			a.AddRole(typ, topic)
			a.AddRole(theme, another)
			c = a
		case 3:
			c = topic.AddName(s.value, typ).AddVariant(s.value, XSDString, theme)
		}
		if s.identified {
			require.NoError(t, AddItemIdentifier(c, Locator(fmt.Sprint(ex, "item", i))))
		}
		if s.reified {
			reifier := si(tm, fmt.Sprint("reifier", i))
			require.NoError(t, SetReifier(c, reifier))
			topic.AddOccurrence(s.value, XSDString, reifier)
		}
	}
	return tm, topics
}

// mergeSet merges the set in an order and in directions that it draws, with
// Normalize in between now and then.
func (p plan) mergeSet(t *rapid.T) *TopicMap {
	tm, topics := p.build(t)
	order := rapid.Permutation(p.set).Draw(t, "order")
	for i, number := range order[1:] {
		// Any of those that are one already, held since before they were.
		a, b := topics[rapid.SampledFrom(order[:i+1]).Draw(t, "with")], topics[number]
		if rapid.Bool().Draw(t, "swap") {
			a, b = b, a
		}
		require.NoError(t, a.Merge(b))
		if rapid.IntRange(0, 3).Draw(t, "normalize") == 0 {
			require.NoError(t, tm.Normalize(t.Context()))
		}
		checkInvariants(t, tm)
	}
	require.NoError(t, tm.Normalize(t.Context()))
	return tm
}

func TestMergeOrderDoesNotMatter(t *testing.T) {
	testenv.Check(t, 50, 300, func(t *rapid.T) {
		p := drawPlan(t)
		one, two := p.mergeSet(t), p.mergeSet(t)
		require.Equal(t, canonical(one), canonical(two))
		checkNormal(t, one)
	})
}
