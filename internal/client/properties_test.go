package client_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// action is one step of a history: of a server's map, or of its subscriber.
type action int

const (
	edits action = iota
	bridge
	snapshot
	syncs
	syncsPartly
	syncsTwice
	replaces
	resubscribes
	restarts
	numberOfActions
)

type step struct {
	action action
	server int
	n      int // how often, or how far
}

func (s step) String() string {
	names := [...]string{"edit", "bridge", "snapshot", "sync", "sync partly", "sync twice", "replace", "subscribe again", "restart"}
	return fmt.Sprintf("%s %d (%d)", names[s.action], s.server, s.n)
}

// TestSourcesFollowTheirServers runs random histories of edits on one to four
// servers that speak of the same subjects, and a subscriber to all of them with a
// random schedule. After each step the source that it concerns is, record for
// record, what the algorithm of package merge makes of the same fragments in
// memory, and the others are as they were; in the end each is equal to its
// server's map, and the merged view to the maps joined.
func TestSourcesFollowTheirServers(t *testing.T) {
	steps := rapid.Custom(func(t *rapid.T) step {
		return step{action(rapid.IntRange(0, int(numberOfActions)-1).Draw(t, "action")), rapid.IntRange(0, 3).Draw(t, "server"), rapid.IntRange(1, 6).Draw(t, "n")}
	})
	applied := 0
	testenv.Check(t, 4, 20, func(r *rapid.T) {
		servers, seed := rapid.IntRange(1, 4).Draw(r, "servers"), rapid.Uint64().Draw(r, "seed")
		plan := rapid.SliceOfN(steps, 10, 40).Draw(r, "steps")
		if !t.Run("", func(t *testing.T) { applied += followHistory(t, servers, seed, plan) }) {
			r.FailNow()
		}
	})
	require.NotZero(t, applied, "no fragment was applied to a source that was there")
}

// followHistory runs one history, and returns how many fragments were applied.
func followHistory(t *testing.T, servers int, seed uint64, plan []step) (applied int) {
	s := newSubscriber(t)
	var all []*followed
	for i := range servers {
		all = append(all, newFollowed(t, s, i, seed+uint64(i)))
	}
	for _, step := range plan {
		f := all[step.server%servers]
		others := map[string]map[string]string{}
		for _, o := range all {
			if o != f {
				others[o.name] = o.here(t)
			}
		}
		applied += f.do(t, step)
		f.check(t, step)
		for name, before := range others {
			s.source(name, func(_ store.Subscription, src fragment.Source) {
				sameRecords(t, before, contents(t, src), "%s, after: %v", name, step)
			})
		}
	}
	var parts []merge.Part
	for _, f := range all {
		f.sync(t, f.client.Sync)
		again := f.sync(t, f.client.Sync)
		require.Equal(t, client.Round{Name: f.name, Mark: again.Mark}, *again)
		f.check(t, step{action: syncs})
		sameRecords(t, f.published(t), f.here(t), "%s in the end", f.name)
		sp, m := f.origin.sp(f.name), f.edited(t)
		own, _, err := s.Merged(s.t.Context(), false, f.name)
		require.NoError(t, err)
		require.Equal(t, canonical(t, m.TopicMap(), sp), canonical(t, own, sp))
		parts = append(parts, merge.Part{SP: sp, Source: m})
	}
	joined, _, err := merge.Join(t.Context(), parts...)
	require.NoError(t, err)
	merged, _, err := s.Merged(s.t.Context(), false)
	require.NoError(t, err)
	require.Equal(t, canonical(t, joined, ""), canonical(t, merged, ""))
	return applied
}

// followed is a server with a map, and what the algorithm in memory makes of what
// it has published up to the mark of the subscriber.
type followed struct {
	name   string
	origin *origin
	tm     *tmdm.TopicMap
	editor *testedit.Editor
	client *subscriber
	memory *merge.Memory // nil: not loaded yet
	mark   time.Time
}

// shared are the subjects of which all servers speak.
func shared(i int) string { return fmt.Sprintf("http://psi.example.org/shared/%d", i) }

func newFollowed(t *testing.T, s *subscriber, i int, seed uint64) *followed {
	f := &followed{name: fmt.Sprintf("m%d", i), client: s, origin: newOrigin(t, documentSize(3))}
	var topics strings.Builder
	for n := range 4 {
		fmt.Fprintf(&topics, `<topic id="t%d"><subjectIdentifier href="%s"/><name><value>%d of %d</value></name></topic>`, n, shared(i+n), n, i)
	}
	text := doc(topics.String(), `<topic id="own"><instanceOf><topicRef href="#t0"/></instanceOf></topic>`)
	f.origin.create(f.name, text)
	sp := f.origin.sp(f.name)
	tm, err := xtm.Read(t.Context(), strings.NewReader(text), xtm.Options{Base: tmdm.Locator(sp)})
	require.NoError(t, err)
	f.tm, f.editor = tm, testedit.New(tm, sp, seed)
	f.subscribe(t)
	return f
}

func (f *followed) subscribe(t *testing.T) {
	_, err := f.client.Subscribe(context.Background(), f.origin.feedURL(f.name), client.SubscribeOptions{})
	require.NoError(t, err)
	f.memory = nil
}

func (f *followed) document(t *testing.T) string {
	var b bytes.Buffer
	_, err := xtm.Write(&b, f.tm, xtm.WriteOptions{Version: xtm.V21, Base: tmdm.Locator(f.origin.sp(f.name))})
	require.NoError(t, err)
	return b.String()
}

func (f *followed) do(t *testing.T, s step) (applied int) {
	switch s.action {
	case edits:
		for range s.n {
			f.editor.Edit()
		}
		f.origin.putAs(f.name, f.document(t))
	case bridge: // two subjects of which others speak become one
		topics := []*tmdm.Topic{}
		for topic := range f.tm.Topics() {
			topics = append(topics, topic)
		}
		if f.tm.TopicBySubjectIdentifier(tmdm.Locator(shared(s.n))) == nil {
			require.NoError(t, topics[s.n%len(topics)].AddSubjectIdentifier(tmdm.Locator(shared(s.n))))
		}
		f.origin.putAs(f.name, f.document(t))
	case snapshot:
		_, err := f.origin.db.TakeSnapshot(context.Background(), f.name, 2)
		require.NoError(t, err)
	case syncs:
		applied = f.sync(t, f.client.Sync).Applied
	case syncsTwice:
		applied = f.sync(t, f.client.Sync).Applied
		before := f.here(t)
		again := f.sync(t, f.client.Sync)
		require.Equal(t, client.Round{Name: f.name, Mark: again.Mark}, *again)
		require.Equal(t, before, f.here(t))
	case syncsPartly:
		until := f.somewhere(t, s.n)
		applied = f.sync(t, func(ctx context.Context, name string) (*client.Round, error) {
			return f.client.SyncUntil(ctx, name, until)
		}).Applied
	case replaces:
		f.sync(t, f.client.Replace)
	case resubscribes:
		require.NoError(t, f.client.Unsubscribe(context.Background(), f.name))
		f.subscribe(t)
	case restarts:
		f.client.restart()
	}
	return applied
}

// somewhere returns a time in the part of the log that is not applied yet.
func (f *followed) somewhere(t *testing.T, n int) (at time.Time) {
	require.NoError(t, f.origin.db.View(t.Context(), f.name, func(v *store.View) error {
		at = v.Updated
		for e, err := range v.Entries(1) {
			require.NoError(t, err)
			if e.Updated.After(f.mark) {
				if at = e.Updated; n == 0 {
					break
				}
				n--
			}
		}
		return nil
	}))
	return at
}

// sync does a round, and the same with the memory.
func (f *followed) sync(t *testing.T, round func(context.Context, string) (*client.Round, error)) *client.Round {
	r, err := round(context.Background(), f.name)
	require.NoError(t, err)
	require.Zero(t, r.Quarantined)
	require.NoError(t, f.origin.db.View(t.Context(), f.name, func(v *store.View) error {
		if f.memory == nil || r.CleanStart {
			f.memory = &merge.Memory{}
			f.mark = f.load(t, v)
		}
		for e, err := range v.Entries(1) {
			require.NoError(t, err)
			if e.Updated.After(f.mark) && !e.Updated.After(r.Mark) {
				f.apply(t, v, &e)
			}
		}
		return nil
	}))
	f.mark = r.Mark
	return r
}

// load puts the newest snapshot into the memory.
func (f *followed) load(t *testing.T, v *store.View) (mark time.Time) {
	all, err := v.Snapshots()
	require.NoError(t, err)
	text := f.origin.get(fmt.Sprintf("/topicmaps/%s/snapshots/%s.xtm21", f.name, all[0].ID))
	m, err := fragment.ReadSnapshot(t.Context(), strings.NewReader(text), f.options())
	require.NoError(t, err)
	require.NoError(t, f.memory.Load(m))
	return all[0].Updated
}

func (f *followed) options() xtm.Options {
	return xtm.Options{Base: tmdm.Locator(f.origin.sp(f.name)), DropClashes: true}
}

func (f *followed) apply(t *testing.T, v *store.View, e *store.Entry) {
	text := f.origin.get(fmt.Sprintf("/topicmaps/%s/fragments/%s.xtm21", f.name, v.ID(e)))
	read, err := fragment.ReadAs(t.Context(), strings.NewReader(text), f.options(), fragment.Named{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{e.TopicSI}}})
	require.NoError(t, err)
	read.Deleted = e.Deleted
	require.NoError(t, merge.Apply(f.memory, read))
}

// check compares the source with the memory.
func (f *followed) check(t *testing.T, after step) {
	t.Helper()
	f.client.t = t
	if f.memory == nil {
		require.Nil(t, f.client.known(f.name).State)
		return
	}
	sameRecords(t, contents(t, f.memory), f.here(t), "%s, after: %v", f.name, after)
}

// here returns the records of the source at the subscriber.
func (f *followed) here(t *testing.T) (all map[string]string) {
	f.client.source(f.name, func(_ store.Subscription, src fragment.Source) { all = contents(t, src) })
	return all
}

// published returns the records of the server.
func (f *followed) published(t *testing.T) (all map[string]string) {
	require.NoError(t, f.origin.db.View(t.Context(), f.name, func(v *store.View) error {
		all = contents(t, v.Source())
		return nil
	}))
	return all
}

// edited returns the edited input, with the subject identifiers that the server has
// assigned.
func (f *followed) edited(t *testing.T) (m *fragment.Map) {
	tm, err := xtm.Read(t.Context(), strings.NewReader(f.document(t)), f.options())
	require.NoError(t, err)
	require.NoError(t, f.origin.db.View(t.Context(), f.name, func(v *store.View) error {
		m, err = fragment.NameTopics(t.Context(), tm, v.SP, v.Source())
		return err
	}))
	return m
}
