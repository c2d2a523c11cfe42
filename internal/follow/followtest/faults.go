package followtest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// following returns a publisher, and a follower of it without rounds.
func following(t *testing.T, sink *Sink, row Row) (*follower, *Publisher) {
	p := NewPublisher(t, testenv.Seed())
	f := &follower{t: t, name: "one", place: sink.Open(t), source: p, kind: row.Kind}
	f.place.Follow(f.name, p, f.kind)
	return f, p
}

// publish publishes nine topics of a version.
func (p *Publisher) publish(version string) {
	p.PutAs(p.Name, docs.Map(docs.Topics(9, version)...))
	p.reread()
}

// singly has a server answer a request for a document without the fragments in it: each is fetched by itself then.
func singly(r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), feeds.MediaTypeBundle) {
		r.Header.Set("Accept", feeds.MediaTypeAtom)
	}
}

// packages reports a request for a package of records.
func packages(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, ".zip") }

// Faults makes all temporary faults in each row of a sink. The short form has a third of the faults for rows but the
// first.
//
//   - If some tries fail, the round succeeds.
//   - If one record is unavailable, only that one waits. Only a server that requests a pause gets one. Once the
//     record is available, it is added, and nothing is read again.
//   - If the documents with changes are unavailable, the round fails, and nothing changes.
func Faults(t *testing.T, sink Sink) {
	testenv.SkipUnderRace(t)
	for at, row := range sink.Rows {
		if row.Model {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			f, p := following(t, &sink, row)
			for i, lie := range faults.Lies {
				with, ok := faults.Passing()[lie.Name]
				if !ok || at > 0 && i%3 != at%3 && !testenv.Long() {
					continue
				}
				t.Run(lie.Name, func(t *testing.T) {
					f.on(t)
					if i%2 == 0 { // half of the faults meet a first round
						f.place.Leave(f.name)
						f.place.Follow(f.name, p, f.kind)
					}
					p.publish("at first " + lie.Name)
					f.cannotRead(with)
					f.settle()
					if sink.Spare == nil || !sink.Spare(row.Kind, lie.Sign) {
						p.publish("now and then " + lie.Name)
						f.triesAgain(with, row.Kind == Lists && lie.Sign >= faults.Content)
						p.publish("not at all " + lie.Name)
						f.waits(with, lie.Name == "429")
					}
				})
			}
		})
	}
}

// cannotRead requires that a round fails and changes nothing if the documents of the source are unavailable.
func (f *follower) cannotRead(with faults.Answer) {
	before := f.place.Held(f.name)
	f.source.BreakWith(faults.Some(func(r *http.Request) bool { return f.source.Record(r) == "" }, faults.Always, with))
	_, err := f.place.Round(context.Background(), f.name, How{Parallel: 4})
	require.Error(f.t, err)
	SameRecords(f.t, before, f.place.Held(f.name), "after a round that failed: %v", err)
	f.source.BreakWith(nil)
}

// triesAgain requires that a round is done whole where three in four answers are wrong.
func (f *follower) triesAgain(with faults.Answer, later bool) {
	var asked atomic.Int64
	f.source.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		singly(r)
		if packages(r) {
			w.WriteHeader(http.StatusNotFound)
		} else if f.source.Record(r) != "" && asked.Add(1)%4 != 0 {
			with(w, r, real)
		} else {
			return false
		}
		return true
	})
	o, err := f.place.Round(context.Background(), f.name, How{Parallel: 1, Tries: 4})
	require.NoError(f.t, err)
	f.source.BreakWith(nil)
	require.Greater(f.t, asked.Load(), int64(10))
	if later { // a record that differs from its list may be in the next list: then it is read again
		o = f.calm()
	}
	require.Zero(f.t, o.Waiting, "%q", f.place.Waiting(f.name))
	SameRecords(f.t, f.place.Published(f.source, f.kind), f.place.Held(f.name), "after faults that passed")
}

// waits requires that one record that cannot be had waits, and no other.
func (f *follower) waits(with faults.Answer, alone bool) {
	before, want := f.place.Held(f.name), f.place.Published(f.source, f.kind)
	f.source.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		singly(r)
		if packages(r) {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		if f.source.Record(r) == "" {
			return false
		}
		_, body := faults.Record(real, r)
		if !strings.Contains(string(body), ">Topic 5 ") {
			return false
		}
		with(w, r, real)
		return true
	})
	for range 2 {
		o, err := f.place.Round(context.Background(), f.name, How{Parallel: 2})
		held := f.place.Held(f.name)
		lacks := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(id string) bool { return held[id] == want[id] })
		for _, id := range lacks {
			require.Equal(f.t, before[id], held[id], "what is held stays")
		}
		if alone {
			require.Error(f.t, err)
			require.NotEmpty(f.t, lacks)
			continue
		}
		require.NoError(f.t, err)
		require.Equal(f.t, []int{1, 1}, []int{o.Waiting, len(lacks)})
		require.Len(f.t, f.place.Waiting(f.name), 1)
	}
	f.source.BreakWith(nil)
	o := f.calm()
	require.False(f.t, o.Anew)
	require.Zero(f.t, o.Waiting)
	SameRecords(f.t, want, f.place.Held(f.name), "once all can be had")
}
