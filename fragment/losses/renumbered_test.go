package losses_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// numbered is a topic with its id in the document.
type numbered struct{ id, name string }

// towns returns n topics. The id of each is its number in the document.
func towns(topics int) (all []numbered) {
	for i := range topics {
		all = append(all, numbered{fmt.Sprintf("id%d", i), fmt.Sprintf("Town %d", i)})
	}
	return all
}

// anew numbers topics as programs do that number them with each export.
func anew(names []numbered) []numbered {
	all := make([]numbered, len(names))
	for i := range names {
		all[i] = numbered{fmt.Sprintf("id%d", i), names[i].name}
	}
	return all
}

// document is a map of such topics. Each has the next one as its neighbour; those with a subject identifier have it by
// their names.
func document(all []numbered, identified bool) func(draft) {
	return func(m draft) {
		var last *tmdm.Topic
		for _, n := range all {
			t, err := m.CreateTopicByItemIdentifier(tmdm.Locator(sp + "#" + n.id))
			if err != nil {
				panic(err)
			}
			if identified {
				if err := t.AddSubjectIdentifier(si(n.name)); err != nil {
					panic(err)
				}
			}
			if n.name != "" {
				t.AddName(n.name, nil)
			}
			if last != nil {
				m.Associate(si("neighbour"), last, t)
			}
			last = t
		}
	}
}

// change publishes two versions, and returns the changes of the second one.
func change(t testing.TB, before, after func(draft)) *fragment.Change {
	t.Helper()
	prior := published(t, nil, before)
	c, err := losses.Diff(t.Context(), prior, published(t, prior, after), losses.All())
	require.NoError(t, err)
	return c
}

func TestTopicsThatWereNumberedAnew(t *testing.T) {
	before := towns(60)
	for name, after := range map[string][]numbered{
		"one more in front":      anew(append([]numbered{{"", "New town"}}, before...)),
		"one less in the middle": anew(append(append([]numbered{}, before[:20]...), before[21:]...)),
		"one more, and many new": anew(append(append([]numbered{{"", "New town"}}, before...), func() (more []numbered) {
			for i := range 500 {
				more = append(more, numbered{"", fmt.Sprintf("Village %d", i)})
			}
			return more
		}()...)),
		"ids made up": func() (all []numbered) {
			for i, n := range before {
				all = append(all, numbered{fmt.Sprintf("x%d", i*7919), n.name})
			}
			return all
		}(),
		"in another order": func() []numbered {
			all := append([]numbered{}, before...)
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			return anew(all)
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			c := change(t, document(before, false), document(after, false))
			assert.Greater(t, c.Renumbered, 35)
			assert.Contains(t, losses.RenumberedWarning(c.Renumbered), fmt.Sprint(c.Renumbered, " topics have other ids"))
			assert.Zero(t, change(t, document(before, true), document(after, true)).Renumbered, "subject identifiers tell which topic is which")
		})
	}
}

// An edit is none, however large it is.
func TestAnEditIsNoRenumbering(t *testing.T) {
	before := towns(60)
	edited := func(edit func(all []numbered) []numbered) []numbered { return edit(append([]numbered{}, before...)) }
	for name, after := range map[string][]numbered{
		"nothing": before,
		"all names": edited(func(all []numbered) []numbered {
			for i := range all {
				all[i].name += "!"
			}
			return all
		}),
		"half of them deleted": before[:30],
		"all of them deleted":  nil,
		"many new": edited(func(all []numbered) []numbered {
			for i := range 300 {
				all = append(all, numbered{fmt.Sprintf("v%d", i), fmt.Sprintf("Village %d", i)})
			}
			return all
		}),
		"another map": edited(func(all []numbered) []numbered {
			for i := range all {
				all[i].name = fmt.Sprintf("River %d", i)
			}
			return all
		}),
		"two exchanged": edited(func(all []numbered) []numbered { all[3].name, all[7].name = all[7].name, all[3].name; return all }),
		"some moved among many edits": edited(func(all []numbered) []numbered {
			for i := range all {
				all[i].name += "!"
			}
			for i := range 10 {
				all[i].name = before[i+10].name
			}
			return all
		}),
		"all get one name": edited(func(all []numbered) []numbered {
			for i := range all {
				all[i].name = "Town"
			}
			return all
		}),
		"all lose their names": edited(func(all []numbered) []numbered {
			for i := range all {
				all[i].name = ""
			}
			return all
		}),
	} {
		assert.Zero(t, change(t, document(before, false), document(after, false)).Renumbered, name)
	}
	same := make([]numbered, 60)
	for i := range same {
		same[i] = numbered{fmt.Sprintf("id%d", i), "Town"}
	}
	assert.Zero(t, change(t, document(same, false), document(anew(same[1:]), false)).Renumbered, "names that all have tell nothing")
	colours := []string{"red", "green", "blue", "white", "black"}
	painted := func(shift int) (all []numbered) {
		for i := range 60 {
			all = append(all, numbered{fmt.Sprintf("id%d", i), colours[(i+shift)%len(colours)]})
		}
		return all
	}
	assert.Zero(t, change(t, document(painted(0), false), document(painted(1), false)).Renumbered, "values that several have tell nothing")
}

// Topics that get subject identifiers at last are known by them from then on, with their ids or without.
func TestIdentifiersAreNoRenumbering(t *testing.T) {
	before := towns(60)
	assert.Zero(t, change(t, document(before, false), document(before, true)).Renumbered)
	without := change(t, document(before, false), func(m draft) {
		for _, n := range before {
			m.Named(n.name, si(n.name))
		}
	})
	assert.Equal(t, []int{60, 60}, []int{without.Added, without.Deleted - 1}, "and the type of associations")
	assert.Zero(t, without.Renumbered)
}

// A real map, as it was written with every topic 30 ids on, and as it was edited all over.
func TestARealMapThatIsNumberedAnew(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(testenv.Shared(t, "data"), "TapsasConcerts.xtm"))
	require.NoError(t, err)
	named := func(prior fragment.Source, doc string) *fragment.Map {
		tm, err := xtm.Read(t.Context(), strings.NewReader(doc), xtm.Options{Base: sp, Lenient: true})
		require.NoError(t, err)
		m, err := fragment.NameTopics(t.Context(), tm, sp, prior)
		require.NoError(t, err)
		return m
	}
	changed := func(doc string) *fragment.Change {
		prior := named(nil, string(content))
		c, err := losses.Diff(t.Context(), prior, named(prior, doc), losses.All())
		require.NoError(t, err)
		return c
	}
	var ids []string
	for _, found := range regexp.MustCompile(`<topic id="([^"]+)"`).FindAllStringSubmatch(string(content), -1) {
		ids = append(ids, found[1])
	}
	later := map[string]string{}
	for i, id := range ids {
		later[id] = fmt.Sprintf("new%d", i)
		if i+30 < len(ids) {
			later[id] = ids[i+30]
		}
	}
	mention := regexp.MustCompile(`(<topic id="|href="#)([^"]+)"`)
	c := changed(mention.ReplaceAllStringFunc(string(content), func(found string) string {
		parts := mention.FindStringSubmatch(found)
		return parts[1] + cmp.Or(later[parts[2]], parts[2]) + `"`
	}))
	t.Logf("%d added, %d updated, %d deleted, %d with other ids", c.Added, c.Updated, c.Deleted, c.Renumbered)
	assert.Greater(t, c.Renumbered, 100)
	assert.Zero(t, changed(strings.ReplaceAll(string(content), "</baseNameString>", "!</baseNameString>")).Renumbered)
}

// Edits at random, of any size, that leave each topic its id.
func TestRandomEditsAreNoRenumbering(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		before := towns(10 + rng.IntN(80))
		var after []numbered
		for i, n := range before {
			switch rng.IntN(4) {
			case 0: // deleted
			case 1:
				after = append(after, numbered{n.id, fmt.Sprintf("Town %d, formerly %d", rng.IntN(1000), i)})
			default:
				after = append(after, n)
			}
		}
		for i := range rng.IntN(50) {
			after = append(after, numbered{fmt.Sprintf("new%d", i), fmt.Sprintf("New %d", i)})
		}
		require.Zero(t, change(t, document(before, false), document(after, false)).Renumbered, "seed %d", seed)
	}
}
