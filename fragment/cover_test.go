package fragment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// small is a map that is made of topics a to d and of associations of the type "r".
type small struct {
	*tmdm.TopicMap
	t *testing.T
}

func (s small) topic(id string) *tmdm.Topic {
	return s.CreateTopicBySubjectIdentifier(tmdm.Locator("http://x/" + id))
}

// relate adds an association in which the topics play one role each.
func (s small) relate(players ...string) *tmdm.Association {
	a := s.CreateAssociation(s.topic("r"))
	for _, p := range players {
		a.AddRole(s.topic("role"), s.topic(p))
	}
	return a
}

// covered returns the entries of the change from one map to another that are covered, and those that are not.
func covered(t *testing.T, before, after func(small)) (covered, others []string) {
	build := func(make func(small), prior fragment.Source) *fragment.Map {
		tm := tmdm.New()
		s := small{tm, t}
		for _, id := range []string{"a", "b", "c", "d"} {
			s.topic(id).AddName(id, nil)
		}
		make(s)
		require.NoError(t, tm.Normalize(t.Context()))
		m, err := fragment.NameTopics(t.Context(), tm, "http://x/map/", prior)
		require.NoError(t, err)
		return m
	}
	prior := build(before, nil)
	change, err := fragment.Diff(t.Context(), prior, build(after, prior))
	require.NoError(t, err)
	require.NoError(t, change.Cover(prior, func(like *fragment.Association) (*fragment.Association, error) {
		for a, err := range prior.Associations() {
			if err != nil || a.Key() == like.Key() {
				return a, err
			}
		}
		return nil, nil
	}))
	for _, e := range change.Entries {
		id := string(e.TopicSI[len("http://x/"):])
		if e.Covered {
			covered = append(covered, id)
		} else {
			others = append(others, id)
		}
	}
	slices.Sort(covered)
	slices.Sort(others)
	return covered, others
}

// Each clause of the definition of covered entries is tested by a change that would lose something without it.
func TestWhatIsCovered(t *testing.T) {
	nothing := func(small) {}
	for name, c := range map[string]struct {
		before, after   func(small)
		covered, others []string
	}{
		"a new topic carries the statements that its hub gains": {
			func(s small) { s.relate("a", "b"); s.relate("a", "c") },
			func(s small) {
				s.relate("a", "b")
				s.relate("a", "c")
				s.topic("new").AddName("new", nil)
				s.relate("a", "new")
			}, []string{"a"}, []string{"new"},
		},
		"a deletion carries the statements that its hub loses": {
			func(s small) { s.topic("old").AddName("old", nil); s.relate("a", "old"); s.relate("a", "b") },
			func(s small) { s.relate("a", "b") }, []string{"a"}, []string{"old"},
		},
		"of two that could cover each other, the one with the fewest associations carries": {
			func(s small) { s.relate("a", "c"); s.relate("a", "d"); s.relate("b", "c") },
			func(s small) { s.relate("a", "c"); s.relate("a", "d"); s.relate("b", "c"); s.relate("a", "b") }, []string{"a"}, []string{"b"},
		},
		"of two that are equal, the one with the least TopicSI carries": {
			nothing, func(s small) { s.relate("a", "b") }, []string{"b"}, []string{"a"},
		},
		"one that carries already carries more": {
			nothing, func(s small) { s.relate("a", "b"); s.relate("a", "c"); s.relate("a", "d") }, []string{"b", "c", "d"}, []string{"a"},
		},
		"removed statements are carried as well": {
			func(s small) { s.relate("a", "b") }, nothing, []string{"b"}, []string{"a"},
		},
		"an association with itself alone is carried": {
			func(s small) { s.relate("a", "a") }, nothing, nil, []string{"a"},
		},
		"whose own statements have changed carries": {
			nothing, func(s small) { s.relate("a", "b"); s.topic("a").AddName("A", nil) }, []string{"b"}, []string{"a"},
		},
		"whose identifiers have changed carries": {
			nothing, func(s small) {
				s.relate("a", "b")
				require.NoError(s.t, s.topic("a").AddSubjectIdentifier("http://x/z"))
			}, []string{"b"}, []string{"a"},
		},
		"a reifier is a change": {
			func(s small) { s.relate("a", "b") }, func(s small) { require.NoError(s.t, tmdm.SetReifier(s.relate("a", "b"), s.topic("d"))) }, []string{"b"}, []string{"a"},
		},
		"a class does not carry its instances": {
			func(s small) { s.topic("a").AddType(s.topic("b")) }, nothing, nil, []string{"a"},
		},
		"nor where the relation is reified": {
			func(s small) { require.NoError(s.t, tmdm.SetReifier(s.topic("a").AddType(s.topic("b")), s.topic("d"))) }, nothing, []string{"b"}, []string{"a"},
		},
		"a class that is deleted does not carry": {
			func(s small) {
				s.topic("old").AddName("old", nil)
				s.topic("a").AddType(s.topic("old"))
			}, nothing, nil, []string{"a", "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is, others := covered(t, c.before, c.after)
			require.Equal(t, c.covered, is)
			others = slices.DeleteFunc(others, func(id string) bool { // the topics that associations are of
				return id == "r" || id == "role" || strings.Contains(id, "/")
			})
			require.Equal(t, c.others, others)
		})
	}
}
