package resourcesync

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// dropping counts how often change lists are dropped.
type dropping struct {
	*store.DB
	drops atomic.Int32
}

func (d *dropping) Extend(ctx context.Context, name string, f func(*store.View) error) error {
	return d.DB.Extend(ctx, name, func(v *store.View) error {
		before, err := resources.ChangeLists(v)
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
		after, err := resources.ChangeLists(v)
		if len(after) < len(before) {
			d.drops.Add(1)
		}
		return err
	})
}

// Change lists are dropped once: nothing is written where none is left to drop.
func TestChangeListsAreDroppedOnce(t *testing.T) {
	t.Parallel()
	silent := slog.New(slog.DiscardHandler)
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: silent, Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	d := &dropping{DB: db}
	s, err := server.New(server.Config{Store: d, BaseURL: "http://localhost", Logger: silent})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	p, err := newPart(s, Options{ChangesPerList: 1})
	require.NoError(t, err)
	version := func(name, sp string) *fragment.Map {
		m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="oslo"><subjectIdentifier href="http://psi.example.org/oslo"/><name><value>`+name+`</value></name></topic></topicMap>`), xtm.Options{Base: tmdm.Locator(sp)})
		require.NoError(t, err)
		return m
	}
	const sp = "http://example.org/"
	_, err = db.CreateCollection(t.Context(), store.Collection{Name: "small", SP: sp}, version("Oslo", sp), nil)
	require.NoError(t, err)
	for i := 0; i < 12 || d.drops.Load() == 0; i++ { // sets of resources come and go, and with them the lists that lead on from them
		require.NoError(t, p.await(t.Context(), "small"))
		_, err := db.Publish(t.Context(), "small", func(_ store.Collection, before merge.State) (*fragment.Change, error) {
			return fragment.Diff(t.Context(), before, version(fmt.Sprint("name ", i), sp))
		})
		require.NoError(t, err)
		_, err = db.TakeSnapshot(t.Context(), "small", 3)
		require.NoError(t, err)
		_, err = db.Prune(t.Context(), "small", store.Retention{Entries: 1})
		require.NoError(t, err)
	}
	quiet := 0 // looks in a row that drop nothing
	for range 20 {
		before := d.drops.Load()
		require.NoError(t, p.await(t.Context(), "small"))
		if quiet++; d.drops.Load() != before {
			quiet = 0
		}
	}
	require.GreaterOrEqual(t, quiet, 15)
}
