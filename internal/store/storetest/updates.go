package storetest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

var updateRules = []rule{
	{"iterations see pending changes between the records that are kept", func(c *checker) {
		c.given(func(s merge.State) {
			for _, si := range []tmdm.Locator{"http://b", "http://d", "http://f", "http://h"} {
				c.put(s, topic(si), association("http://t", "http://p", si))
			}
		})
		c.after(func(s merge.State) {
			c.put(s, topic("http://a"), topic("http://e"), topic("http://i"), named(topic("http://d"), "new"))
			c.delete(s, topic("http://b"), topic("http://h"), topic("http://e"), association("http://t", "http://p", "http://f"))
			c.put(s, topic("http://e"), association("http://t", "http://p", "http://a"))
		}, func(s merge.State) {
			c.topics(s, "http://a", "http://d", "http://e", "http://f", "http://i")
			c.bySI(s, "http://d", named(topic("http://d"), "new"))
			c.plays(s, "http://p", fragment.AsPlayer, association("http://t", "http://p", "http://a"),
				association("http://t", "http://p", "http://b"),
				association("http://t", "http://p", "http://d"), association("http://t", "http://p", "http://h"))
			c.associations(s, association("http://t", "http://p", "http://a"), association("http://t", "http://p", "http://b"),
				association("http://t", "http://p", "http://d"), association("http://t", "http://p", "http://h"))
		})
	}},
	{"an iteration goes on when what it yields is changed", func(c *checker) {
		const n = 100
		refs := crowd(n)
		c.given(func(s merge.State) {
			for i, ref := range refs {
				if i%2 == 0 {
					c.put(s, topic(ref), association("http://t", "http://hub", ref))
				}
			}
		})
		c.given(func(s merge.State) {
			for i, ref := range refs {
				if i%2 == 1 {
					c.put(s, topic(ref), association("http://t", "http://hub", ref))
				}
			}
			var seen []tmdm.Locator
			for t, err := range s.Topics() {
				require.NoError(c, err)
				switch seen = append(seen, t.TopicSI()); len(seen) % 3 {
				case 0:
					c.delete(s, t)
				case 1:
					c.put(s, named(topic(t.TopicSI()), "changed"))
				}
			}
			require.Equal(c, refs, seen, "each topic comes once")
			found := map[fragment.AssociationKey]bool{}
			for a, err := range s.AssociationsOf("http://hub", fragment.AsPlayer) {
				require.NoError(c, err)
				require.False(c, found[a.Key()], "an association comes twice")
				found[a.Key()] = true
				c.delete(s, a)
			}
			require.Len(c, found, n)
			require.Empty(c, collect(c, s.AssociationsOf("http://hub", fragment.AsPlayer)))
		})
		c.given(func(s merge.State) {
			require.Len(c, collect(c, s.Topics()), n-n/3)
			require.Empty(c, collect(c, s.Associations()))
		})
	}},
	{"iterations run side by side", func(c *checker) {
		refs := crowd(20)
		c.given(func(s merge.State) {
			for _, ref := range refs[:10] {
				c.put(s, topic(ref))
			}
		})
		c.given(func(s merge.State) {
			for _, ref := range refs[10:] {
				c.put(s, topic(ref))
			}
			pairs := 0
			for range s.Topics() {
				for _, err := range s.Topics() {
					require.NoError(c, err)
					pairs++
				}
			}
			require.Equal(c, 400, pairs)
		})
	}},
	{"what is put and deleted in one update leaves nothing", func(c *checker) {
		c.after(func(s merge.State) {
			c.put(s, full(), fullAssociation())
			c.delete(s, full(), fullAssociation())
		}, func(s merge.State) {
			require.Empty(c, Dump(c, s))
			c.mentions(s, "http://type", 0)
		})
	}},
	{"what is deleted and put in one update is as it was", func(c *checker) {
		c.given(func(s merge.State) { c.put(s, full(), fullAssociation()) })
		c.after(func(s merge.State) {
			c.delete(s, full(), fullAssociation())
			c.put(s, full(), fullAssociation())
		}, func(s merge.State) {
			c.bySI(s, "http://full/2", full())
			c.plays(s, "http://player/2", fragment.AsPlayer, fullAssociation())
			c.mentions(s, "http://theme/1", 4)
		})
	}},
	{"an update that fails changes nothing", func(c *checker) {
		d, ok := c.backend.(Durable)
		if !ok {
			c.Skip("not of this backend")
		}
		var before string
		c.given(func(s merge.State) {
			c.put(s, full(), fullAssociation())
			before = Dump(c, s) + Answers(c, s)
		})
		failed := errors.New("failed")
		holds := func(s merge.State) { require.Equal(c, before, Dump(c, s)+Answers(c, s)) }
		require.ErrorIs(c, d.Update(func(s merge.State) error {
			c.delete(s, full(), fullAssociation())
			c.put(s, topic("http://new"), association("http://t", "http://new"))
			return failed
		}), failed)
		c.given(holds)
		require.NoError(c, d.Reopen())
		c.given(holds)
	}},
	{"many records in one update are kept", func(c *checker) {
		const n = 3000
		c.after(func(s merge.State) {
			for i := range n {
				ref := fragment.Ref(fmt.Sprintf("http://topic/%05d", i))
				c.put(s, named(topic(ref), "a name"), typing("http://class", ref))
			}
		}, func(s merge.State) {
			require.Len(c, collect(c, s.Topics()), n)
			require.Len(c, collect(c, s.Associations()), n)
			require.Len(c, collect(c, s.AssociationsOf("http://class", fragment.AsType)), n)
			c.mentions(s, tmdm.PSIDefaultNameType, n)
		})
	}},
}
