package losses_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/tmdm"
)

const sp = "http://sp.example.org/map/"

type draft = testedit.Draft

// published builds a map and prepares it for publication after prior.
func published(t testing.TB, prior fragment.Source, build func(draft)) *fragment.Map {
	t.Helper()
	tm := tmdm.New()
	build(draft{TopicMap: tm})
	require.NoError(t, tm.Normalize(t.Context()))
	m, err := fragment.NameTopics(t.Context(), tm, sp, prior)
	require.NoError(t, err)
	return m
}

// lost returns the losses between two states. The limit refuses any loss.
func lost(t testing.TB, before, after func(draft)) *losses.TooManyError {
	t.Helper()
	var none losses.Limit
	require.NoError(t, none.UnmarshalText([]byte("0")))
	prior := published(t, nil, before)
	next := published(t, prior, after)
	_, err := losses.Diff(t.Context(), prior, next, losses.All())
	require.NoError(t, err)
	_, err = losses.Diff(t.Context(), prior, next, none)
	var e *losses.TooManyError
	if !errors.As(err, &e) {
		require.NoError(t, err)
	}
	return e
}

func si(id string) tmdm.Locator { return tmdm.Locator("http://example.org/" + id) }

// base is a map with a topic of each sort that matters.
func base(m draft) {
	m.Named("A", si("a")).AddType(m.Named("Class", si("class")))
	m.Topic(si("a")).AddOccurrence("about a", tmdm.XSDString, m.Named("Note", si("note")))
	m.Named("B", si("b"))
	m.Topic(si("bare"))
	m.Named("Two", si("two")).AddType(m.Topic(si("class")))
	m.Topic(si("two")).AddType(m.Named("Other class", si("class2")))
	m.Associate(si("note"), m.Topic(si("b")), m.Topic(si("two")))
}

// Each case has the edit of base, and the lost topics.
func TestWhatIsALoss(t *testing.T) {
	untype := func(t *tmdm.Topic) {
		for _, r := range append([]*tmdm.AssociationRole(nil), t.RolesPlayed()...) {
			if _, instance, ok := r.Association().TypeInstance(); ok && instance == t {
				r.Association().Remove()
			}
		}
	}
	empty := func(t *tmdm.Topic) {
		for len(t.Names()) > 0 {
			t.Names()[0].Remove()
		}
		for len(t.Occurrences()) > 0 {
			t.Occurrences()[0].Remove()
		}
	}
	join := func(m draft, a, b tmdm.Locator) { require.NoError(t, m.Topic(a).Merge(m.Topic(b))) }
	for name, c := range map[string]struct {
		edit func(draft)
		lost string
	}{
		"nothing":                   {func(draft) {}, ""},
		"deleted":                   {func(m draft) { m.Topic(si("bare")).Remove() }, "bare: deleted"},
		"no name left":              {func(m draft) { empty(m.Topic(si("b"))) }, `b "B": no name and no occurrence is left`},
		"nothing of both left":      {func(m draft) { empty(m.Topic(si("a"))) }, `a "A": no name and no occurrence is left`},
		"an occurrence left":        {func(m draft) { m.Topic(si("a")).Names()[0].Remove() }, ""},
		"another name":              {func(m draft) { empty(m.Topic(si("b"))); m.Named("Bee", si("b")) }, ""},
		"the last type":             {func(m draft) { untype(m.Topic(si("a"))) }, `a "A": no type is left`},
		"another type":              {func(m draft) { untype(m.Topic(si("a"))); m.Topic(si("a")).AddType(m.Topic(si("class2"))) }, ""},
		"one of two types":          {func(m draft) { untype(m.Topic(si("two"))); m.Topic(si("two")).AddType(m.Topic(si("class2"))) }, ""},
		"all of both, counted once": {func(m draft) { empty(m.Topic(si("a"))); untype(m.Topic(si("a"))) }, `a "A": no name and no occurrence is left`},
		"an identifier more":        {func(m draft) { m.Topic(si("b"), si("b2")) }, ""},
		"an association":            {func(m draft) { m.Topic(si("b")).RolesPlayed()[0].Association().Remove() }, ""},
		"joined with another":       {func(m draft) { join(m, si("b"), si("bare")) }, ""},
		"joined, and nothing of it left": {func(m draft) {
			join(m, si("b"), si("bare"))
			empty(m.Topic(si("b")))
		}, `b "B": no name and no occurrence is left`},
		"joined into one that has less": {func(m draft) {
			join(m, si("b"), si("a"))
			empty(m.Topic(si("a")))
		}, `a "A": no name and no occurrence is left; b "B": no name and no occurrence is left`},
	} {
		t.Run(name, func(t *testing.T) {
			e := lost(t, base, func(m draft) { base(m); c.edit(m) })
			if c.lost == "" {
				assert.Nil(t, e)
				return
			}
			require.NotNil(t, e)
			assert.Equal(t, c.lost, strings.ReplaceAll(strings.Join(e.Lines(), "; "), "http://example.org/", ""))
		})
	}
}

// A class takes the last type of its instances with it.
func TestADeletedClassLeavesItsInstancesWithoutAType(t *testing.T) {
	e := lost(t, concepts(30, 1, true), concepts(30, 1, false))
	require.NotNil(t, e)
	assert.Equal(t, []int{4, 0, 30}, []int{e.Deleted, e.Emptied, e.Untyped})
	assert.Equal(t, 34, e.Lost(), "with the three topics of the standard that make types")
	assert.Len(t, e.Lines(), losses.MostNamed+1)
	assert.Equal(t, "… and 24 more", e.Lines()[losses.MostNamed])
}

// Long values are cut in messages: a name may have megabytes, and a log has all of it.
func TestLongNamesOfLossesAreCut(t *testing.T) {
	long := strings.Repeat("ü", 4000)
	e := lost(t, func(m draft) { m.Named(long, si(long)) }, func(m draft) { m.Topic(si("other")) })
	require.NotNil(t, e)
	assert.Equal(t, fmt.Sprintf(`http://example.org/%s… "%s…": deleted`, long[:162], long[:200]), e.Lines()[0])
}

// The label of a blank node is for programs: people see that it has no name.
func TestLossesWithoutANameAreNotNamedByLabels(t *testing.T) {
	node := tmdm.Locator("http://example.org/.well-known/genid/b0")
	e := lost(t, func(m draft) {
		m.CreateTopicBySubjectIdentifier(si("a"))
		m.CreateTopicBySubjectIdentifier(node)
	}, func(m draft) { m.CreateTopicBySubjectIdentifier(si("a")) })
	require.Len(t, e.First, 1)
	assert.Equal(t, losses.Loss{TopicSI: node, Title: "something without a name", Kind: losses.Deleted}, e.First[0])
	assert.Equal(t, []string{"something without a name: deleted"}, e.Lines())
}

// concepts is a map of so many topics with so many occurrences each.
func concepts(topics, occurrences int, typed bool) func(draft) {
	return func(m draft) {
		for i := range topics {
			c := m.Named(fmt.Sprintf("Concept %03d", i), si(fmt.Sprintf("c%03d", i)))
			if typed {
				c.AddType(m.Topic(si("concept")))
			}
			for j := range occurrences {
				c.AddOccurrence(fmt.Sprint(j), tmdm.XSDString, m.Topic(si("note")))
			}
		}
	}
}

// Each topic may keep some statements, and most of them be lost nevertheless.
func TestMostStatementsGo(t *testing.T) {
	prior := published(t, nil, concepts(30, 9, true))
	thin := published(t, prior, concepts(30, 2, true))
	for _, limit := range []string{"", "0", "29", "100%"} {
		var m losses.Limit
		require.NoError(t, m.UnmarshalText([]byte(limit)))
		_, err := losses.Diff(t.Context(), prior, thin, m)
		assert.EqualError(t, err, "this version would lose 210 of 330 statements, more than half; nothing is changed", limit)
		var e *losses.TooManyError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "all", losses.Allowing(&e.Measure))
		assert.Empty(t, e.Lines())
		half := published(t, prior, concepts(30, 4, true))
		_, err = losses.Diff(t.Context(), prior, half, m)
		assert.NoError(t, err, limit)
	}
	_, err := losses.Diff(t.Context(), prior, thin, losses.All())
	assert.NoError(t, err)
}

// New statements, of new topics and of others, do not compensate for losses.
func TestWhatIsNewMakesUpForNothing(t *testing.T) {
	prior := published(t, nil, concepts(30, 9, false))
	next := published(t, prior, func(m draft) {
		concepts(30, 2, false)(m)
		for i := range 300 {
			m.Named("New", si(fmt.Sprintf("n%d", i)))
			m.Topic(si("c000")).AddOccurrence(fmt.Sprint("more ", i), tmdm.XSDString, m.Topic(si("note")))
		}
	})
	_, err := losses.Diff(t.Context(), prior, next, losses.Limit{})
	assert.EqualError(t, err, "this version would lose 203 of 300 statements, more than half; nothing is changed")
}

// counting is a state that counts the queries.
type counting struct {
	fragment.Source
	asked int
}

func (c *counting) Topic(si fragment.Ref) (*fragment.Topic, error) {
	c.asked++
	return c.Source.Topic(si)
}

func (c *counting) AssociationsOf(player fragment.Ref, part fragment.Part) iter.Seq2[*fragment.Association, error] {
	c.asked++
	return c.Source.AssociationsOf(player, part)
}

// The measure is taken while the states are compared, and asks the published one for nothing more.
func TestTheMeasureReadsNothingAgain(t *testing.T) {
	prior := published(t, nil, concepts(200, 2, true))
	for name, after := range map[string]func(draft){"nothing": concepts(200, 2, true), "untyped": concepts(200, 2, false), "fewer": concepts(90, 1, true)} {
		next := published(t, prior, after)
		plain, measured := &counting{Source: prior}, &counting{Source: prior}
		_, err := fragment.Diff(t.Context(), plain, next)
		require.NoError(t, err)
		_, err = losses.Diff(t.Context(), measured, next, losses.All())
		require.NoError(t, err)
		assert.Equal(t, plain.asked, measured.asked, name)
	}
}

// The subscriber compares record by record. It finds the same losses as the publisher.
func TestRecordsAreMeasuredOneByOne(t *testing.T) {
	before := published(t, nil, base)
	var m losses.Measure
	for topic, err := range before.Topics() {
		require.NoError(t, err)
		counts, err := losses.StatementsOf(before, topic)
		require.NoError(t, err)
		m.Add(counts, nil, func() *fragment.Topic { return topic })
	}
	e := lost(t, base, func(draft) {})
	require.NotNil(t, e)
	assert.Equal(t, e.Measure, m)
	assert.Equal(t, []int{11, 11, 12}, []int{m.Topics, m.Deleted, m.Statements}, "with the four topics of the standard")

	changed := losses.Measure{Topics: 11} // The test covers reads that are limited to the changes.
	for _, id := range []string{"a", "b"} {
		topic, err := before.Topic(si(id))
		require.NoError(t, err)
		counts, err := losses.StatementsOf(before, topic)
		require.NoError(t, err)
		changed.Lose(counts, &fragment.StatementCounts{Types: counts.Types, Associations: counts.Associations}, func() *fragment.Topic { return topic })
	}
	assert.Equal(t, []int{11, 2, 3, 2}, []int{changed.Topics, changed.Emptied, changed.Gone, len(changed.Named())})
}

// The cost for topics that are all joined with one hub is proportional to their number, not to its square.
func TestManyTopicsJoinedWithOneAreLinear(t *testing.T) {
	allocated := func(topics int) float64 {
		build := func(joined bool) func(draft) {
			return func(m draft) {
				hub := m.Named("Hub", si("a-hub"))
				for i := range topics {
					m.Associate(si("related"), hub, m.Topic(si(fmt.Sprintf("player%d", i))))
					other := m.Named("Double", si(fmt.Sprintf("double%d", i)))
					if joined {
						require.NoError(t, hub.Merge(other))
					}
				}
			}
		}
		prior := published(t, nil, build(false))
		next := published(t, prior, build(true))
		return testing.AllocsPerRun(1, func() {
			c, err := losses.Diff(t.Context(), prior, next, losses.Limit{})
			require.NoError(t, err)
			require.Equal(t, topics+1, c.Updated)
		})
	}
	assert.Less(t, allocated(800)/allocated(100), 16.0)
}
