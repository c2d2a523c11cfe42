package storetest

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// bySI and bySL check that a look-up finds the record, or nothing for nil.
func (c *checker) bySI(s merge.State, si tmdm.Locator, want *fragment.Topic) {
	c.Helper()
	got, err := s.Topic(si)
	require.NoError(c, err)
	c.sameTopic(si, want, got)
}

func (c *checker) bySL(s merge.State, sl tmdm.Locator, want *fragment.Topic) {
	c.Helper()
	got, err := s.TopicBySubjectLocator(sl)
	require.NoError(c, err)
	c.sameTopic(sl, want, got)
}

func (c *checker) sameTopic(l tmdm.Locator, want, got *fragment.Topic) {
	c.Helper()
	if want == nil {
		require.Nil(c, got, "nothing has %s", l)
		return
	}
	require.NotNil(c, got, "%s finds its topic", l)
	require.Equal(c, topicBytes(want), topicBytes(got), "%s", l)
}

// topics checks which topics there are, in order.
func (c *checker) topics(s merge.State, want ...tmdm.Locator) {
	c.Helper()
	var got []tmdm.Locator
	for _, t := range collect(c, s.Topics()) {
		got = append(got, t.TopicSI())
	}
	require.Equal(c, want, got, "the topics by TopicSI, ascending")
}

var topicRules = []rule{
	{"an empty source has nothing", func(c *checker) {
		c.after(func(merge.State) {}, func(s merge.State) {
			c.bySI(s, "http://a", nil)
			c.bySL(s, "http://a", nil)
			c.topics(s)
			require.Empty(c, collect(c, s.Associations()))
			c.mentions(s, "http://a", 0)
		})
	}},
	{"a topic is found by each of its identifiers, complete", func(c *checker) {
		t := full()
		c.after(func(s merge.State) { c.put(s, t) }, func(s merge.State) {
			for _, si := range t.SubjectIdentifiers {
				c.bySI(s, si, t)
				c.bySL(s, si, nil)
			}
			for _, sl := range t.SubjectLocators {
				c.bySL(s, sl, t)
				c.bySI(s, sl, nil)
			}
			c.topics(s, "http://full")
		})
	}},
	{"an identifier may be a subject identifier of one topic and a locator of another", func(c *checker) {
		a, b := topic("http://a"), located(topic("http://b"), "http://a")
		c.after(func(s merge.State) { c.put(s, a, b) }, func(s merge.State) {
			c.bySI(s, "http://a", a)
			c.bySL(s, "http://a", b)
		})
	}},
	{"topics come by TopicSI whatever the order of writing", func(c *checker) {
		sis := []tmdm.Locator{"http://a", "http://a#b", "http://a/b", "http://aa", "http://é", "urn:x"}
		written := slices.Clone(sis)
		slices.Reverse(written)
		c.after(func(s merge.State) {
			for _, si := range written {
				c.put(s, topic(si))
			}
		}, func(s merge.State) { c.topics(s, sis...) })
	}},
	{"a beginning of an identifier finds nothing", func(c *checker) {
		c.after(func(s merge.State) {
			c.put(s, located(topic("http://a/b", "http://c/d"), "http://e/f"))
		}, func(s merge.State) {
			c.bySI(s, "http://a/", nil)
			c.bySI(s, "http://c", nil)
			c.bySL(s, "http://e/", nil)
		})
	}},
	{"a provisional topic stays provisional until it is announced", func(c *checker) {
		provisional := topic("http://a")
		provisional.Provisional = true
		c.after(func(s merge.State) { c.put(s, provisional) }, func(s merge.State) { c.bySI(s, "http://a", provisional) })
		c.after(func(s merge.State) {
			c.put(s, topic("http://a"))
		}, func(s merge.State) { c.bySI(s, "http://a", topic("http://a")) })
	}},
	{"a record replaces the one with its TopicSI, identifiers included", func(c *checker) {
		old := located(topic("http://a", "http://x", "http://y"), "http://l", "http://m")
		now := named(located(topic("http://a", "http://y", "http://z"), "http://m"), "new")
		c.given(func(s merge.State) { c.put(s, old) })
		c.after(func(s merge.State) { c.put(s, now) }, func(s merge.State) {
			c.bySI(s, "http://x", nil)
			c.bySL(s, "http://l", nil)
			c.bySI(s, "http://a", now)
			c.bySI(s, "http://y", now)
			c.bySI(s, "http://z", now)
			c.bySL(s, "http://m", now)
			c.topics(s, "http://a")
		})
	}},
	{"a deleted topic is found by nothing", func(c *checker) {
		t := full()
		c.given(func(s merge.State) { c.put(s, t, topic("http://stays")) })
		c.after(func(s merge.State) { c.delete(s, topic("http://full")) }, func(s merge.State) { // the TopicSI is enough
			for _, si := range t.SubjectIdentifiers {
				c.bySI(s, si, nil)
			}
			for _, sl := range t.SubjectLocators {
				c.bySL(s, sl, nil)
			}
			c.topics(s, "http://stays")
		})
	}},
	{"deleting a topic that is not there does nothing", func(c *checker) {
		a := topic("http://a", "http://x")
		c.given(func(s merge.State) { c.put(s, a) })
		c.after(func(s merge.State) {
			c.delete(s, topic("http://x"), topic("http://b", "http://a")) // x is no TopicSI
		}, func(s merge.State) {
			c.bySI(s, "http://a", a)
			c.bySI(s, "http://x", a)
		})
	}},
	{"a deleted topic can come back", func(c *checker) {
		c.given(func(s merge.State) { c.put(s, topic("http://a", "http://x")) })
		c.given(func(s merge.State) { c.delete(s, topic("http://a")) })
		again := topic("http://a", "http://y")
		c.after(func(s merge.State) { c.put(s, again) }, func(s merge.State) {
			c.bySI(s, "http://a", again)
			c.bySI(s, "http://x", nil)
			c.topics(s, "http://a")
		})
	}},
	{"identifiers move from one topic to another", func(c *checker) {
		c.given(func(s merge.State) {
			c.put(s, located(topic("http://a", "http://x"), "http://l"), topic("http://b", "http://y"))
		})
		a, b := topic("http://a", "http://y"), located(topic("http://b", "http://x"), "http://l")
		c.after(func(s merge.State) {
			c.delete(s, a, b)
			c.put(s, a, b)
		}, func(s merge.State) {
			c.bySI(s, "http://x", b)
			c.bySI(s, "http://y", a)
			c.bySL(s, "http://l", b)
		})
	}},
	{"a TopicSI becomes another topic's identifier and its own again", func(c *checker) {
		c.given(func(s merge.State) { c.put(s, topic("http://a"), topic("http://b")) })
		merged := topic("http://b", "http://a")
		c.after(func(s merge.State) {
			c.delete(s, topic("http://a"), topic("http://b"))
			c.put(s, merged)
		}, func(s merge.State) {
			c.bySI(s, "http://a", merged)
			c.topics(s, "http://b")
		})
		c.after(func(s merge.State) {
			c.delete(s, merged)
			c.put(s, topic("http://a"), topic("http://b"))
		}, func(s merge.State) {
			c.bySI(s, "http://a", topic("http://a"))
			c.bySI(s, "http://b", topic("http://b"))
			c.topics(s, "http://a", "http://b")
		})
	}},
	{"a record of megabytes is kept", func(c *checker) {
		large := named(topic("http://large"), strings.Repeat("word ", 1<<20))
		c.after(func(s merge.State) { c.put(s, large, topic("http://small")) }, func(s merge.State) {
			c.bySI(s, "http://large", large)
			c.topics(s, "http://large", "http://small")
		})
		c.after(func(s merge.State) { c.delete(s, large) }, func(s merge.State) { c.topics(s, "http://small") })
	}},
	{"an iteration over topics can be left", func(c *checker) {
		c.given(func(s merge.State) { c.put(s, topic("http://a"), topic("http://b"), topic("http://c")) })
		c.given(func(s merge.State) {
			c.put(s, topic("http://bb"))
			for t, err := range s.Topics() {
				require.NoError(c, err)
				if t.TopicSI() == "http://b" {
					break
				}
			}
			c.topics(s, "http://a", "http://b", "http://bb", "http://c")
		})
	}},
}
