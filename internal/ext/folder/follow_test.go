package folder_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/atompmh"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

// The column of the folder in the table of followtest.
var folderSink = followtest.Sink{
	Rows: append(followtest.Rows(followtest.Archived, followtest.Complete, followtest.Lists), otherFeeds, otherLists),
	Open: func(t testing.TB) followtest.Place {
		return &place{t: t, dir: t.TempDir(), followed: map[string]followed{}}
	},
	Left: []string{"files to rename", "temporary files"},
	// The metadata of a record in a feed are not in the record. Lists have hashes.
	Spare: func(k followtest.Kind, sign faults.Sign) bool { return k != followtest.Lists && sign >= faults.Content },
}

func TestHistories(t *testing.T) { followtest.Histories(t, folderSink) }

func TestFaults(t *testing.T) { followtest.Faults(t, folderSink) }

func TestDoubts(t *testing.T) {
	testenv.OnlyWithAll(t, "the engine is tested with a store")
	followtest.Doubts(t, folderSink)
}

func TestTurns(t *testing.T) { followtest.Turns(t, folderSink) }

func TestKilledProcesses(t *testing.T) { followtest.Kills(t, folderSink) }

// place has folders, by their names.
type place struct {
	t        testing.TB
	dir      string
	followed map[string]followed
}

// followed returns the source that a folder follows.
type followed struct {
	source followtest.Source
	kind   followtest.Kind
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) On(t testing.TB) { p.t = t }

func (p *place) Follow(name string, s followtest.Source, k followtest.Kind) {
	p.followed[name] = followed{s, k}
	if s, ok := s.(*producer); ok {
		s.mark = func() follow.Mark { return p.state(name).Mark }
	}
}

func (p *place) Leave(name string) { require.NoError(p.t, os.RemoveAll(p.path(name))) }

// round returns the options and the source of a round.
func (p *place) round(name string, how followtest.How) (Options, follow.Source) {
	f := anyhost.FetcherOf(&http.Client{})
	f.Tries = cmp.Or(how.Tries, 2)
	o := Options{ConfirmAfter: cmp.Or(how.After, followtest.ConfirmAfter), Confirm: how.Confirm, Fetcher: f, Parallel: how.Parallel, Formats: p.formats(name), Mirror: p.followed[name].kind == followtest.Lists}
	feed, lists := &atompmh.Source{Fetcher: f}, &destination.Source{Fetcher: f, Temp: p.path(name)}
	if how.Hasty {
		f.Stall, o.MaxSize, feed.MaxDocs = 200*time.Millisecond, 256<<10, 200
		feed.Limits.MaxBytes, lists.Limits.MaxBytes = 256<<10, 256<<10
	}
	if s, ok := p.followed[name].source.(*rsSource); ok {
		f.HTTP = s.client
		if s.noDumps {
			lists.Temp = ""
		}
	}
	if o.Mirror {
		return o, lists
	}
	return o, feed
}

func (p *place) Round(ctx context.Context, name string, how followtest.How) (o followtest.Outcome, _ error) {
	options, source := p.round(name, how)
	f, err := Open(p.path(name), options)
	require.NoError(p.t, err)
	f.LoseAtFailure() // the machine does not fail
	f.SetClock(func() time.Time { return Now().Add(how.Ahead) })
	r, err := f.Harvest(ctx, source, p.url(name))
	if s, ok := source.(*destination.Source); ok {
		require.NoError(p.t, s.Close())
	}
	require.Empty(p.t, f.State().Unfinished)
	require.NoError(p.t, f.Close())
	o.Waiting, o.Anew, o.Idle = len(r.Failed)+len(r.Gone), r.Reason != "", r.New+r.Changed+r.Removed == 0
	o.Did = fmt.Sprintf("%d new, %d changed, %d removed", r.New, r.Changed, r.Removed)
	return o, err
}

func (p *place) url(name string) string {
	f := p.followed[name]
	return f.source.URL(f.kind)
}

func (p *place) Process(name string, _ bool) *kill.Process {
	args := append([]string{p.url(name), p.path(name)}, p.formats(name)...)
	if s, ok := p.followed[name].source.(*rsSource); ok {
		args = append(args, s.address)
	}
	return kill.Start(p.t, map[bool]string{false: "harvest", true: "mirror"}[p.followed[name].kind == followtest.Lists], args...)
}

func (p *place) Held(name string) map[string]string {
	if _, err := os.Stat(p.path(name)); err != nil {
		return nil
	}
	m := mirror{t: p.t, dir: p.path(name), underWay: true}
	return m.records()
}

func (p *place) state(name string) *State {
	if _, err := os.Stat(p.path(name)); err != nil {
		return &State{}
	}
	m := mirror{t: p.t, dir: p.path(name)}
	return m.state()
}

func (p *place) Others(name string) map[string]string {
	all := map[string]string{}
	for other := range p.followed {
		if other != name {
			maps.Copy(all, p.Held(other))
		}
	}
	return all
}

func (p *place) Published(s followtest.Source, k followtest.Kind) map[string]string {
	return s.Records(k)
}

func (p *place) Waiting(name string) (all []string) {
	for id, held := range p.state(name).Records {
		if held.Missing != nil {
			all = append(all, id)
		}
	}
	return all
}

func (p *place) Left(name string) (left []string) {
	if len(p.state(name).Unfinished) > 0 {
		left = append(left, "files to rename")
	}
	for what, pattern := range map[string]string{"temporary files": follow.OwnPrefix + "-*", "packages": follow.PackagePrefix + "*"} {
		if files, err := filepath.Glob(filepath.Join(p.path(name), pattern)); err == nil && len(files) > 0 {
			left = append(left, what)
		}
	}
	return left
}

func (p *place) Exact(followtest.Kind) bool { return true }

func (p *place) InStep(followers map[string]followtest.Source) {
	for name := range followers {
		require.Empty(p.t, p.Left(name))
	}
}

func (p *place) formats(name string) []string {
	f := p.followed[name]
	if s, ok := f.source.(*producer); ok {
		return s.formats
	}
	if f.kind == followtest.Lists {
		return nil
	}
	return []string{"application/x-tm+xml;version=2.1"}
}
