package storetest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// plays checks in which associations a player takes a part, by key.
func (c *checker) plays(s merge.State, player fragment.Ref, part fragment.Part, want ...*fragment.Association) {
	c.Helper()
	slices.SortFunc(want, func(a, b *fragment.Association) int {
		x, y := a.Key(), b.Key()
		return bytes.Compare(x[:], y[:])
	})
	got := collect(c, s.AssociationsOf(player, part))
	require.Equal(c, mapped(want, associationBytes), mapped(got, associationBytes), "%s as part %d, by key", player, part)
}

// associations checks that there are these associations and no others, each once.
func (c *checker) associations(s merge.State, want ...*fragment.Association) {
	c.Helper()
	got := collect(c, s.Associations())
	require.ElementsMatch(c, mapped(want, associationBytes), mapped(got, associationBytes), "all associations, each once")
}

func (c *checker) mentions(s merge.State, ref fragment.Ref, want int) {
	c.Helper()
	n, err := s.Mentions(ref)
	require.NoError(c, err)
	require.Equal(c, want, n, "mentions of %s", ref)
}

var associationRules = []rule{
	{"an association is found by each player, complete", func(c *checker) {
		a := fullAssociation()
		c.after(func(s merge.State) { c.put(s, a) }, func(s merge.State) {
			c.plays(s, "http://player/1", fragment.AsPlayer, a)
			c.plays(s, "http://player/2", fragment.AsPlayer, a)
			c.plays(s, "http://player/", fragment.AsPlayer)
			c.plays(s, "http://type", fragment.AsPlayer)
			c.associations(s, a)
		})
	}},
	{"instance and class take their own parts in a typing", func(c *checker) {
		a := typing("http://class", "http://instance")
		c.after(func(s merge.State) { c.put(s, a) }, func(s merge.State) {
			c.plays(s, "http://instance", fragment.AsInstance, a)
			c.plays(s, "http://class", fragment.AsType, a)
			for _, part := range []fragment.Part{fragment.AsPlayer, fragment.AsType} {
				c.plays(s, "http://instance", part)
			}
			for _, part := range []fragment.Part{fragment.AsInstance, fragment.AsPlayer} {
				c.plays(s, "http://class", part)
			}
			c.associations(s, a)
		})
	}},
	{"a class that is its own instance is found once", func(c *checker) {
		a := typing("http://self", "http://self")
		c.after(func(s merge.State) { c.put(s, a) }, func(s merge.State) {
			c.plays(s, "http://self", fragment.AsInstance, a)
			c.plays(s, "http://self", fragment.AsType)
			c.associations(s, a)
		})
	}},
	{"a scoped typing is an association like others", func(c *checker) {
		a := typing("http://class", "http://instance")
		a.Scope = []fragment.Ref{"http://theme"}
		c.after(func(s merge.State) { c.put(s, a) }, func(s merge.State) {
			c.plays(s, "http://instance", fragment.AsPlayer, a)
			c.plays(s, "http://class", fragment.AsPlayer, a)
			c.plays(s, "http://class", fragment.AsType)
		})
	}},
	{"the parts change when a typing is reified, and back", func(c *checker) {
		bare, reified, role := typing("http://class", "http://instance"), typing("http://class", "http://instance"),
			typing("http://class", "http://instance")
		reified.Reifier = "http://reifier"
		role.Roles[1].Reifier = "http://reifier"
		c.given(func(s merge.State) { c.put(s, bare) })
		for _, r := range []*fragment.Association{reified, bare, role, reified} {
			asInstance, asPlayer := []*fragment.Association{}, []*fragment.Association{r}
			if r == bare {
				asInstance, asPlayer = asPlayer, asInstance
			}
			c.after(func(s merge.State) { c.put(s, r) }, func(s merge.State) {
				c.plays(s, "http://instance", fragment.AsInstance, asInstance...)
				c.plays(s, "http://class", fragment.AsType, asInstance...)
				c.plays(s, "http://instance", fragment.AsPlayer, asPlayer...)
				c.plays(s, "http://class", fragment.AsPlayer, asPlayer...)
				c.associations(s, r)
			})
		}
	}},
	{"an association replaces the one with its key", func(c *checker) {
		now := fullAssociation()
		now.Reifier, now.ItemIdentifiers = "", []tmdm.Locator{"http://sp/#a2"}
		c.given(func(s merge.State) { c.put(s, fullAssociation()) })
		c.after(func(s merge.State) { c.put(s, now) }, func(s merge.State) {
			c.plays(s, "http://player/1", fragment.AsPlayer, now)
			c.plays(s, "http://player/2", fragment.AsPlayer, now)
			c.associations(s, now)
		})
	}},
	{"associations that differ in type, scope or roles are kept apart", func(c *checker) {
		a, typed, scoped, roles := association("http://t", "http://p", "http://q"),
			association("http://u", "http://p", "http://q"),
			association("http://t", "http://p", "http://q"), association("http://t", "http://p", "http://q")
		scoped.Scope = []fragment.Ref{"http://theme"}
		roles.Roles[0].Type = "http://other"
		roles.Canonical()
		c.after(func(s merge.State) { c.put(s, a, typed, scoped, roles) }, func(s merge.State) {
			c.plays(s, "http://p", fragment.AsPlayer, a, typed, scoped, roles)
			c.associations(s, a, typed, scoped, roles)
		})
		c.after(func(s merge.State) { c.delete(s, scoped) }, func(s merge.State) {
			c.plays(s, "http://q", fragment.AsPlayer, a, typed, roles)
		})
	}},
	{"an association of many players is found by each and comes once", func(c *checker) {
		for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 60} {
			players := crowd(n)
			slices.Reverse(players)
			a := association(fragment.Ref(fmt.Sprintf("http://t/%d", n)), players...)
			reified := association(a.Type, players...)
			reified.Reifier = "http://reifier"
			for _, r := range []*fragment.Association{a, reified, a} {
				c.given(func(s merge.State) { c.put(s, r) })
				holds := func(s merge.State) {
					for _, p := range players {
						c.plays(s, p, fragment.AsPlayer, r)
					}
					c.associations(s, r)
				}
				c.given(holds)
			}
			c.after(func(s merge.State) { c.delete(s, a) }, func(s merge.State) {
				for _, p := range players {
					c.plays(s, p, fragment.AsPlayer)
				}
				c.associations(s)
			})
		}
	}},
	{"large and small associations of the same players are kept side by side", func(c *checker) {
		small, large := association("http://t", crowd(4)...), association("http://t", crowd(5)...)
		huge := association("http://t", crowd(500)...)
		c.after(func(s merge.State) { c.put(s, huge, small, large) }, func(s merge.State) {
			c.plays(s, "http://crowd/003", fragment.AsPlayer, small, large, huge)
			c.plays(s, "http://crowd/004", fragment.AsPlayer, large, huge)
			c.plays(s, "http://crowd/499", fragment.AsPlayer, huge)
			c.associations(s, small, large, huge)
		})
	}},
	{"a player in several roles comes once", func(c *checker) {
		one := association("http://t", "http://p", "http://p")
		one.Roles[0].Type = "http://other"
		one.Canonical()
		many := association("http://t", append(crowd(6), crowd(6)...)...)
		for i := range 6 {
			many.Roles[i].Type = "http://other"
		}
		many.Canonical()
		c.after(func(s merge.State) { c.put(s, one, many) }, func(s merge.State) {
			c.plays(s, "http://p", fragment.AsPlayer, one)
			for _, p := range crowd(6) {
				c.plays(s, p, fragment.AsPlayer, many)
			}
			c.associations(s, one, many)
		})
	}},
	{"a deleted association is found by nobody", func(c *checker) {
		a, stays := fullAssociation(), association("http://t", "http://player/1")
		c.given(func(s merge.State) { c.put(s, a, stays) })
		bare := fullAssociation()
		bare.Reifier, bare.ItemIdentifiers, bare.Roles[0].Reifier, bare.Roles[1].Reifier = "", nil, "", ""
		c.after(func(s merge.State) { c.delete(s, bare) }, func(s merge.State) { // the key is enough
			c.plays(s, "http://player/1", fragment.AsPlayer, stays)
			c.plays(s, "http://player/2", fragment.AsPlayer)
			c.associations(s, stays)
		})
	}},
	{"deleting an association that is not there does nothing", func(c *checker) {
		a := association("http://t", "http://p", "http://q")
		c.given(func(s merge.State) { c.put(s, a) })
		c.after(func(s merge.State) {
			c.delete(s, association("http://t", "http://p"), association("http://u", "http://p", "http://q"),
				association("http://t"))
		}, func(s merge.State) { c.associations(s, a) })
	}},
	{"a player's associations are not those of a player whose name it begins", func(c *checker) {
		short, long := association("http://t", "http://p"), association("http://t", "http://p/2")
		both := association("http://t", "http://p", "http://p/2")
		c.after(func(s merge.State) { c.put(s, short, long, both) }, func(s merge.State) {
			c.plays(s, "http://p", fragment.AsPlayer, short, both)
			c.plays(s, "http://p/2", fragment.AsPlayer, long, both)
			c.associations(s, short, long, both)
		})
	}},
	{"a player needs no topic", func(c *checker) {
		a := association("http://t", "http://nobody")
		c.after(func(s merge.State) { c.put(s, a) }, func(s merge.State) {
			c.plays(s, "http://nobody", fragment.AsPlayer, a)
			c.bySI(s, "http://nobody", nil)
		})
	}},
	{"a hub's associations come by key, and can be left", func(c *checker) {
		var all []*fragment.Association
		for i := range 300 {
			all = append(all, association("http://t", "http://hub", fragment.Ref(fmt.Sprintf("http://spoke/%d", i))))
		}
		c.after(func(s merge.State) {
			for _, a := range all {
				c.put(s, a)
			}
		}, func(s merge.State) {
			c.plays(s, "http://hub", fragment.AsPlayer, all...)
			seen := 0
			for _, err := range s.AssociationsOf("http://hub", fragment.AsPlayer) {
				require.NoError(c, err)
				if seen++; seen == 10 {
					break
				}
			}
			require.Equal(c, 10, seen)
		})
	}},
	{"mentions count types, themes and reifiers, but no players", func(c *checker) {
		counts := map[fragment.Ref]int{
			"http://type": 3, "http://theme/1": 4, "http://theme/2": 3, "http://theme/3": 1, tmdm.PSIDefaultNameType: 1,
			"http://reifier/1": 1, "http://reifier/2": 1, "http://reifier/3": 1, "http://reifier/4": 1, "http://reifier/5": 1,
			"http://role/1": 1, "http://role/2": 1, "http://player/1": 0, "http://full": 0,
		}
		c.after(func(s merge.State) { c.put(s, full(), fullAssociation()) }, func(s merge.State) {
			for ref, n := range counts {
				c.mentions(s, ref, n)
			}
		})
		c.after(func(s merge.State) { c.put(s, full(), fullAssociation()) }, func(s merge.State) { // in place of themselves
			for ref, n := range counts {
				c.mentions(s, ref, n)
			}
		})
		c.after(func(s merge.State) { c.put(s, topic("http://full")) }, func(s merge.State) {
			c.mentions(s, "http://type", 1)
			c.mentions(s, "http://theme/3", 0)
		})
		c.after(func(s merge.State) { c.delete(s, topic("http://full"), fullAssociation()) }, func(s merge.State) {
			for ref := range counts {
				c.mentions(s, ref, 0)
			}
		})
	}},
	{"a reference that a record makes twice counts twice", func(c *checker) {
		t := named(named(topic("http://a"), "one"), "two")
		a := association("http://role", "http://p", "http://q")
		c.after(func(s merge.State) { c.put(s, t, a) }, func(s merge.State) {
			c.mentions(s, tmdm.PSIDefaultNameType, 2)
			c.mentions(s, "http://role", 3)
		})
	}},
}
