package ldes_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// randomStream makes pages of members: versions and deletions in any order, with blank nodes, graphs, types, further
// identifiers, transactions that end and that do not, and resources that say nothing.
func randomStream(r *rand.Rand, members, resources int, plain bool) (pages []string) {
	pages = make([]string, 1+r.IntN(4))
	for i := range pages {
		pages[i] = fmt.Sprintf("<p%d> a tree:Node .\n", i)
	}
	for i := range members {
		id, resource := fmt.Sprint("m", i), fmt.Sprint("r", r.IntN(resources))
		other, says := fmt.Sprint(":r", r.IntN(resources)), ""
		most := 11
		if plain {
			most = 8
		}
		for range 1 + r.IntN(3) {
			says += "; " + []string{
				fmt.Sprintf(":n %d", r.IntN(4)), "skos:broader " + other, "a skos:Concept , " + other, ":parts [ :in " + other + " ; :and ( 1 2 ) ]",
				`skos:prefLabel "name"@en , "Name"@de`, ":self :" + resource, fmt.Sprintf(`:in%d "x"`, r.IntN(3)), "a as:Delete",
				"tmshare:subjectIdentifier " + other, "tmshare:subjectLocator " + other, ":in \"t\"",
			}[r.IntN(most)]
		}
		one := version(id, r.IntN(60), resource, says)
		switch r.IntN(12) {
		case 0:
			one += fmt.Sprintf("<%s> { :%s :graph 1 . %s :not :read . }\n", id, resource, other)
		case 1:
			one = version(id, r.IntN(60), resource, "")
		case 2:
			one = version(id, r.IntN(60), resource, fmt.Sprintf(`; :in "u" ; :last %t`, r.IntN(2) == 0))
		}
		pages[r.IntN(len(pages))] += one
	}
	return pages
}

// A first round loads a stream in one piece. The result equals that of the same members that come to a source that is
// followed already, and are applied one by one.
func TestFirstRoundsAreAsLaterOnes(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			h, f := host(t), newFollower(t, func(c *client.Config) { c.Batch = 1 + r.IntN(3) })
			root := own + stream +
				"<s> ldes:transactionPath :in ; ldes:transactionFinalizedPath :last .\n"
			h.has("/root", root)
			f.follow(h.URL+"/root", "later", client.SubscribeOptions{Protocol: "ldes"})
			f.quarantines("later")
			var names []string
			for i, page := range randomStream(r, 3+r.IntN(40), 2+r.IntN(12), seed%2 == 0) {
				names = append(names, fmt.Sprint("p", i))
				h.has("/"+names[i], own+page)
			}
			h.has("/root", root+leads("root", names...))
			f.quarantines("later")
			first := newFollower(t, func(c *client.Config) { c.Batch = 1 + r.IntN(3) })
			first.follow(h.URL+"/root", "first", client.SubscribeOptions{Protocol: "ldes"})
			first.quarantines("first")
			followtest.SameRecords(t, f.all("later"), first.all("first"), "records")
			require.Equal(t, f.held("later"), first.held("first"))
			require.Zero(t, first.quarantines("first").Applied)
		})
	}
}

const own = "@prefix tmshare: <" + iri.Own + "> .\n"

// quarantines syncs, where members may be no good.
func (f *follower) quarantines(as string) *client.Round {
	f.t.Helper()
	r, err := f.Client.Sync(f.t.Context(), as)
	require.NoError(f.t, err)
	return r
}

// all are the records of a subscription.
func (f *follower) all(as string) (all map[string]string) {
	f.t.Helper()
	require.NoError(f.t, f.db.ReadParts(f.t.Context(), func(parts []store.Part) error {
		for _, p := range parts {
			if p.Name == as {
				all = followtest.Contents(f.t, p.Source)
			}
		}
		return nil
	}))
	return all
}

// held is the known state of the members of a subscription.
func (f *follower) held(as string) map[string]store.Held {
	f.t.Helper()
	all := map[string]store.Held{}
	require.NoError(f.t, f.db.HeldRecords(f.t.Context(), as, nil, func(h store.Held) error { all[h.ID] = h; return nil }))
	return all
}

// dying is a store that ends a load behind some of its items, or the commit behind it.
type dying struct {
	client.Store
	left  int  // items of a load
	after bool // the load is whole, and the next commit fails
	died  bool
}

var errDied = errors.New("the process has died")

func (d *dying) StageRecords(
	ctx context.Context, name string, all iter.Seq2[sources.Stated, error], change func(*sources.Progress),
) error {
	err := d.Store.StageRecords(ctx, name, func(yield func(sources.Stated, error) bool) {
		for one, err := range all {
			if d.left--; d.left == 0 {
				d.died = true
				yield(sources.Stated{}, errDied)
				return
			}
			if !yield(one, err) {
				return
			}
		}
	}, change)
	d.died = d.died || d.after
	return err
}

func (d *dying) ApplyEntries(ctx context.Context, name string, f func(*store.Applying) error) error {
	if d.died {
		return errDied
	}
	return d.Store.ApplyEntries(ctx, name, f)
}

func (d *dying) SwitchSource(ctx context.Context, name string, generation uint32, note string) error {
	if d.died {
		return errDied
	}
	return d.Store.SwitchSource(ctx, name, generation, note)
}

// A first round that dies in the load, or behind it, shows nothing, and the next one brings the source in step: also
// where the stream is another one by then.
func TestFirstRoundsDie(t *testing.T) {
	t.Parallel()
	for seed := range 30 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 2))
			h := host(t)
			pages := randomStream(r, 30, 10, true)
			put := func(root string, pages []string) { h.has("/root", root+strings.Join(pages, "\n")) }
			put(stream, pages)
			d := &dying{left: 1 + r.IntN(60), after: seed%3 == 0}
			if d.after {
				d.left = -1
			}
			f := newFollower(t, func(c *client.Config) { d.Store, c.Store = c.Store, d })
			f.follow(h.URL+"/root", "s", client.SubscribeOptions{Protocol: "ldes"})
			_, err := f.Client.Sync(t.Context(), "s")
			if !d.died { // the load was shorter
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errDied)
			require.Empty(t, f.all("s"))
			root := stream
			if seed%2 == 0 {
				root, pages = strings.ReplaceAll(stream, "<s>", "<t>"), randomStream(r, 20, 10, true)
				for i := range pages {
					pages[i] = strings.ReplaceAll(pages[i], "<s>", "<t>")
				}
				put(root, pages)
			}
			d.died, d.left, d.after = false, -1, false
			f.sync("s")
			fresh := newFollower(t)
			fresh.follow(h.URL+"/root", "fresh", client.SubscribeOptions{Protocol: "ldes"})
			fresh.sync("fresh")
			followtest.SameRecords(t, fresh.all("fresh"), f.all("s"), "records")
			require.Equal(t, fresh.held("fresh"), f.held("s"))
		})
	}
}
