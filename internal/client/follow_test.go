package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/kill"
	"github.com/tmshare/tmshare/internal/testkit/stores"
	"github.com/tmshare/tmshare/merge"
)

// The column of the store in the table of followtest.
var storeSink = followtest.Sink{
	Rows: followtest.Rows(followtest.Fragments, followtest.Archived, followtest.Complete, followtest.Lists),
	Open: openPlace,
	Left: []string{"a generation under way"},
}

func TestHistories(t *testing.T) { followtest.Histories(t, storeSink) }

func TestFaults(t *testing.T) { followtest.Faults(t, storeSink) }

func TestDoubts(t *testing.T) { followtest.Doubts(t, storeSink) }

func TestTurns(t *testing.T) { followtest.Turns(t, storeSink) }

func TestKilledProcesses(t *testing.T) {
	stores.InFolders(t)
	followtest.Kills(t, storeSink)
}

// place is a store that follows sources.
type place struct {
	*subscriber
	t    testing.TB
	open bool

	sources map[string]followtest.Source
	pasts   map[string]int // of the source, when a checkpoint was refused last
}

// own is the document of local statements.
var own = doc(topic("mine", "mine"), `<topic><subjectIdentifier href="http://psi.example.org/shared/1"/><name><value>my name for it</value></name></topic>`)

func openPlace(t testing.TB) followtest.Place {
	p := &place{subscriber: &subscriber{t: t.(*testing.T), dir: t.TempDir()}, t: t, sources: map[string]followtest.Source{}, pasts: map[string]int{}}
	t.Cleanup(p.close)
	p.opened()
	_, err := p.local().Ensure(context.Background(), localSP)
	require.NoError(t, err)
	p.importLocal(own, true)
	return p
}

// opened opens the store where it is closed.
func (p *place) opened() *subscriber {
	if !p.open {
		p.subscriber.open()
		p.configure()
		p.open = true
	}
	return p.subscriber
}

func (p *place) close() {
	if p.open {
		require.NoError(p.t, p.db.Close())
		p.open = false
	}
}

func (p *place) On(t testing.TB) { p.t, p.subscriber.t = t, t.(*testing.T) }

func (p *place) Follow(name string, s followtest.Source, k followtest.Kind) {
	p.sources[name] = s
	_, err := p.opened().Subscribe(context.Background(), s.URL(k), client.SubscribeOptions{Name: name})
	require.NoError(p.t, err)
}

func (p *place) Leave(name string) {
	require.NoError(p.t, p.opened().Unsubscribe(context.Background(), name))
}

func (p *place) Round(ctx context.Context, name string, how followtest.How) (o followtest.Outcome, err error) {
	o, err = p.round(ctx, name, how)
	var refused *client.CheckpointError
	for errors.As(err, &refused) {
		// The owner confirms this, which only a new history can be.
		now := p.sources[name].(*followtest.Publisher).Pasts()
		require.True(p.t, how.Hasty || p.pasts[name] != now, "%v", err)
		if _, err := p.Trust(ctx, name, "", true); err != nil {
			return o, err
		}
		p.pasts[name] = now
		o, err = p.round(ctx, name, how)
	}
	return o, err
}

func (p *place) round(ctx context.Context, name string, how followtest.How) (o followtest.Outcome, err error) {
	if how.Restart {
		p.close()
	}
	s := p.opened()
	dying := &dyingStore{Store: s.db, left: math.MaxInt}
	if how.Dies > 0 {
		dying.left = how.Dies - 1
	}
	s.configure(func(c *client.Config) {
		c.ConfirmAfter, c.Now = cmp.Or(how.After, followtest.ConfirmAfter), func() time.Time { return time.Now().Add(how.Ahead) }
		c.Backoff, c.Store, c.Tries, c.Parallel, c.Batch = time.Millisecond, dying, cmp.Or(how.Tries, 2), how.Parallel, 1+how.Parallel
		if how.Hasty {
			c.Stall, c.MaxFragment, c.MaxSnapshot, c.MaxDocs = 200*time.Millisecond, 256<<10, 512<<10, 200
			c.Feed = feeds.Limits{MaxBytes: 256 << 10}
		}
	})
	s.LimitQueue(2000, 3)
	before := s.known(name)
	defer func() {
		before, now := before.State, s.known(name).State
		require.True(p.t, before == nil || s.known(name).Protocol != store.TMShare || now.Generation != before.Generation || !now.Mark.Updated.Before(before.Mark.Updated), "the mark went back from %v to %v", before, now)
	}()
	do := s.Sync
	switch {
	case how.Confirm:
		do = s.Confirm
	case how.Replace:
		do = s.Replace
	case how.Verify && s.known(name).State != nil:
		v, err := s.Verify(ctx, name, true)
		if o.Died = errors.Is(err, errDied); err != nil {
			return o, err
		}
		require.True(p.t, v.Equal || how.Hasty || len(p.Waiting(name)) > 0, "%v", v.Differences)
	}
	r, err := do(ctx, name)
	known := s.known(name)
	quarantine, listed := s.db.Quarantine(p.t.Context(), name)
	require.NoError(p.t, listed)
	if o.Died = errors.Is(err, errDied); err != nil {
		require.True(p.t, dying.last != "" || errors.Is(err, context.Canceled) || err.Error() == known.LastError, "%v stands not in the status: %s", err, known.LastError)
		return o, err
	}
	require.Len(p.t, quarantine, r.Quarantined)
	if len(quarantine) > 0 {
		require.Equal(p.t, status.Incomplete, status.Describe(&known, quarantine, time.Now()).State)
	}
	o.Anew, o.Waiting, o.Mark, o.Repaired = r.CleanStart, r.Quarantined, r.Mark, r.Repaired
	if o.Idle = *r == (client.Round{Name: name, Mark: r.Mark, Proven: known.Protocol == ""}); !o.Idle {
		o.Did = fmt.Sprintf("%+v", *r)
	}
	return o, nil
}

func (p *place) Process(name string, replace bool) *kill.Process {
	p.close()
	return kill.Start(p.t, "client", map[bool]string{false: "sync", true: "replace"}[replace], name, "--data", p.dir).Expect(3) // something is in quarantine
}

func (p *place) Held(name string) map[string]string { return p.opened().here()[name] }

// Others returns all other records, including local statements.
func (p *place) Others(name string) map[string]string {
	all := map[string]string{}
	for owner, records := range p.opened().here() {
		for id, record := range records {
			if owner != name {
				all[owner+" "+id] = record
			}
		}
	}
	return all
}

func (p *place) Published(s followtest.Source, _ followtest.Kind) (all map[string]string) {
	publisher := s.(*followtest.Publisher)
	publisher.Source(publisher.Name, func(_ *store.View, src fragment.Source) { all = followtest.Contents(p.t, src) })
	return all
}

func (p *place) Waiting(name string) (all []string) {
	list, err := p.opened().db.Quarantine(p.t.Context(), name)
	require.NoError(p.t, err)
	for _, q := range list {
		all = append(all, q.TopicSI+" "+q.Entry)
	}
	return all
}

func (p *place) Left(name string) (left []string) {
	if p.opened().known(name).Staging != nil {
		left = append(left, "a generation under way")
	}
	return left
}

func (p *place) Exact(k followtest.Kind) bool { return k == followtest.Fragments }

// InStep requires that all commands report it, and that each map, and their merge, are as published.
func (p *place) InStep(followers map[string]followtest.Source) {
	s := p.opened()
	all, err := status.Named(p.t.Context(), s.db, time.Now())
	require.NoError(p.t, err)
	for _, st := range all {
		require.Equal(p.t, status.InStep, st.State, st.Name)
	}
	ownMap, err := fragment.NameTopics(p.t.Context(), published(s.t, own, localSP), localSP, nil)
	require.NoError(p.t, err)
	parts := []merge.Part{{SP: localSP, Source: ownMap}}
	for name, source := range followers {
		v, err := s.Verify(p.t.Context(), name, true)
		require.NoError(p.t, err)
		require.True(p.t, v.Equal, "%v", v.Differences)
		publisher := source.(*followtest.Publisher)
		sp, edited := publisher.SP(publisher.Name), publisher.Edited()
		require.Equal(p.t, canonical(s.t, edited.TopicMap(), sp), s.canonicalOf(name, sp))
		parts = append(parts, merge.Part{SP: sp, Source: edited})
	}
	require.Equal(p.t, canonical(s.t, published(s.t, own, localSP), localSP), s.canonicalOf(local.Name, localSP))
	joined, _, err := merge.Join(p.t.Context(), parts...)
	require.NoError(p.t, err)
	merged, _, err := s.Merged(p.t.Context(), false)
	require.NoError(p.t, err)
	require.Equal(p.t, canonical(s.t, joined, ""), canonical(s.t, merged, ""))
}
