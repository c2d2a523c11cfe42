package resources_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/files"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/pgserver"
	"github.com/tmshare/tmshare/merge"
)

// process is one of the processes that share a store.
type process struct {
	t testing.TB
	*store.DB
	*resources.Folder
}

func newProcess(t testing.TB, engine kv.Engine) *process { return newProcessAt(t, engine, time.Now) }

// newProcessAt is newProcess with a clock.
func newProcessAt(t testing.TB, engine kv.Engine, now func() time.Time) *process {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Engine: engine, Logger: slog.New(slog.DiscardHandler), Now: now})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &process{t, db, &resources.Folder{Store: db, Sizes: sizes}}
}

func (p *process) view(f func(v *store.View, site *resources.Site)) {
	p.t.Helper()
	require.NoError(p.t, p.DB.View(p.t.Context(), "m", func(v *store.View) error {
		f(v, siteOf(&v.Collection))
		return nil
	}))
}

// sets returns the numbers of the sets that a process sees, and reads all of them.
func (p *process) sets(t *testing.T) (all []uint64) {
	t.Helper()
	p.view(func(v *store.View, site *resources.Site) {
		sets, err := p.Sets(v, site)
		require.NoError(t, err)
		for _, set := range sets {
			checkSet(t, p.Folder, set)
			all = append(all, set.Seq)
		}
	})
	return all
}

func (p *process) build() (set *resources.Set) {
	p.t.Helper()
	p.view(func(v *store.View, site *resources.Site) {
		var err error
		set, err = p.Build(p.t.Context(), site, v)
		require.NoError(p.t, err)
	})
	return set
}

func (p *process) publish(round int) {
	p.t.Helper()
	next, err := mapOf(200, fmt.Sprint("name ", round))
	require.NoError(p.t, err)
	_, err = p.Publish(p.t.Context(), "m", func(_ store.Collection, prior merge.State) (*fragment.Change, error) {
		return fragment.Diff(p.t.Context(), prior, next)
	})
	require.NoError(p.t, err)
}

// A set that one process has made is there for the others at once. Two that make the same at the same time do no
// harm, and none removes a set that another is making.
func TestProcessesShareWhatIsMade(t *testing.T) {
	t.Parallel()
	engines := map[string]func(t *testing.T) (one, other kv.Engine){
		"memory": func(*testing.T) (one, other kv.Engine) { e := memory.New(); return e, e },
		"postgres": func(t *testing.T) (one, other kv.Engine) {
			s := pgserver.Start(t, "fsync=off")
			o := s.Store(t)
			return pgserver.Open(t, o), pgserver.Open(t, o)
		},
	}
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := open(t)
			a, b := newProcess(t, first), newProcess(t, second)
			content, err := mapOf(200, "first")
			require.NoError(t, err)
			_, err = a.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, content, nil)
			require.NoError(t, err)
			require.Empty(t, b.sets(t))
			set := a.build()
			require.Equal(t, []uint64{set.Seq}, b.sets(t), "without another commit")
			require.Equal(t, set.Seq, b.build().Seq, "it is made once")

			b.publish(1)
			done := make(chan *resources.Set)
			go func() { done <- b.build() }()
			again := a.build()
			require.Equal(t, again.Seq, (<-done).Seq)
			require.Equal(t, []uint64{again.Seq, set.Seq}, a.sets(t))
			require.Equal(t, []uint64{again.Seq, set.Seq}, b.sets(t))

			requireParts(t, a, b, set)
			a.publish(2)
			last := b.build()
			require.Equal(t, []uint64{last.Seq, again.Seq}, a.sets(t), "the oldest is removed")
			all, err := files.All(t.Context(), a.Files(), files.Resources+"/")
			require.NoError(t, err)
			groups := map[string]bool{}
			for _, f := range all {
				groups[path.Dir(f.Name)] = true
			}
			require.Len(t, groups, 2, "two sets; the parts are dropped: %v", groups)
		})
	}
}

// requireParts closes change lists in one process, looks for them in the other, and drops them there.
func requireParts(t *testing.T, a, b *process, set *resources.Set) {
	t.Helper()
	a.cut(set.Seq-1, set.At, resources.Cut{Changes: 70, After: time.Hour})
	last := uint64(0)
	a.view(func(v *store.View, site *resources.Site) {
		lists, err := resources.ChangeLists(v)
		require.NoError(t, err)
		require.NotEmpty(t, lists)
		for _, list := range lists {
			_, err := a.BuildPart(t.Context(), site, v, list)
			require.NoError(t, err)
			last = list.Number
		}
	})
	b.view(func(v *store.View, site *resources.Site) {
		part, err := b.Part(v, site, last)
		require.NoError(t, err)
		require.NotNil(t, part)
		require.EqualValues(t, part.Last-part.First+1, countItems(t, b.Folder, part.ListFile()))
		require.NoError(t, b.DropParts(t.Context(), v, site, last))
	})
	a.view(func(v *store.View, site *resources.Site) {
		part, err := a.Part(v, site, last)
		require.NoError(t, err)
		require.Nil(t, part)
	})
}

// Of two sets that are made at the same time, one stays: the processes do not remove the set of each other.
func TestOfTwoSetsMadeAtTheSameTimeOneStays(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	a, b := newProcess(t, engine), newProcess(t, engine)
	content, err := mapOf(200, "first")
	require.NoError(t, err)
	_, err = a.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, content, nil)
	require.NoError(t, err)
	for round := range testenv.Rounds(20, 100) {
		a.publish(round)
		done := make(chan *resources.Set)
		go func() { done <- b.build() }()
		set := a.build()
		require.Equal(t, set.Seq, (<-done).Seq)
		require.Contains(t, a.sets(t), set.Seq)
	}
}

// A set that cannot be read any more is not offered for ever: a process that finds its files gone reads the rows
// again.
func TestWhatAnotherProcessHasRemovedIsGone(t *testing.T) {
	t.Parallel()
	engine := memory.New()
	a, b := newProcess(t, engine), newProcess(t, engine)
	content, err := mapOf(10, "first")
	require.NoError(t, err)
	_, err = a.CreateCollection(context.Background(), store.Collection{Name: "m", SP: sp}, content, nil)
	require.NoError(t, err)
	set := a.build()
	b.view(func(v *store.View, site *resources.Site) {
		sets, err := b.Sets(v, site)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(sets, func(s *resources.Set) bool { return s.Seq == set.Seq }))
	})
	require.NoError(t, a.DeleteCollection(t.Context(), "m", ""))
	require.NoError(t, a.Folder.Sweep(t.Context(), func() ([]uuid.UUID, error) { return nil, nil }))
	_, err = b.Open(t.Context(), set.ResourceList(), false)
	require.Error(t, err)
}

// Programs before this one named the groups without what tells two of the same number apart.
func TestGroupsOfEarlierProgramsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, folder, err := open(dir)
	require.NoError(t, err)
	defer db.Close()
	content, err := mapOf(10, "first")
	require.NoError(t, err)
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "m", SP: sp}, content, nil)
	require.NoError(t, err)
	p := &process{t, db, folder}
	set := p.build()
	group := filepath.Join(dir, filepath.FromSlash(path.Dir(set.ResourceList().Name)))
	before := group[:strings.LastIndexByte(group, '-')]
	require.Equal(t, fmt.Sprint("set-", set.Seq), filepath.Base(before))
	require.NoError(t, os.Rename(group, before))
	p.Folder = &resources.Folder{Store: db, Sizes: sizes}
	require.Equal(t, set.Seq, p.build().Seq)
	p.view(func(v *store.View, site *resources.Site) {
		sets, err := p.Sets(v, site)
		require.NoError(t, err)
		require.Len(t, sets, 1)
		require.Equal(t, before, filepath.Join(dir, filepath.FromSlash(path.Dir(sets[0].ResourceList().Name))))
		require.Equal(t, 11, countItems(t, p.Folder, sets[0].ResourceList()))
	})
}
