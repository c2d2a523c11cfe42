package folder_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/tmshare/tmshare/internal/follow/followtest"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// otherLists is the row of [rsSource] in the table of followtest.
var otherLists = followtest.Row{Name: "other lists", Kind: followtest.Lists, Model: true, Open: func(t testing.TB, seed uint64) followtest.Source {
	s := newRSSource(t, seed, drawStyle(rand.New(rand.NewPCG(seed, 12))))
	s.noDumps = s.rng.IntN(2) == 0 && (!s.DumpOnly || s.Dump == "copies")
	s.publish()
	server := anyhost.Serve(t, s)
	s.client, s.address = server.Client, server.Address
	return s
}}

func drawStyle(rng *rand.Rand) rsStyle {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s := rsStyle{
		LastMod: one(2), Hashes: one(2), Lengths: one(2), Coarse: one(2), Zoneless: one(2), Prefixes: one(2),
		ListIndex: one(2), Awkward: one(2), ChangeDump: one(2), DumpOnly: one(5), Plain: one(8),
		Changes: []string{"", "open", "index", "bareIndex", "closed", "closedIndex"}[rng.IntN(6)],
		Dump:    []string{"", "plain", "copies", "index"}[rng.IntN(4)],
	}
	switch rng.IntN(3) { // times of changes
	case 1:
		s.OnlyDatetime = true
	case 2:
		s.OnlyLastMod = true
	}
	if s.Coarse {
		s.LastMod = s.LastMod || !s.Hashes // else two versions of a second are the same to everybody
		s.ChangeDump = false               // the writer of packages refuses two changes at one time
		if s.Changes == "closed" {
			s.Changes = "closedIndex" // a list that has forgotten the first of two changes in a second
		}
	}
	if s.Plain {
		s.Changes, s.Dump = "", ""
	}
	if one(4) && s.Changes != "closed" {
		s.Layout = []string{"2006-01-02", "2006-01-02T15:04Z"}[rng.IntN(2)]
		s.LastMod = true
	}
	s.DumpOnly = s.DumpOnly && s.Dump != ""
	return s
}

// Happen implements [followtest.Source].
func (s *rsSource) Happen(during bool) (what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.rng.IntN(16)
	switch {
	case n == 0 && !during:
		what = "prune"
		s.prune()
	case n == 1 && !during && !s.Plain:
		what = "move"
		s.move()
	default:
		s.event()
		switch n := s.rng.IntN(6); {
		case n == 0 && !(during && s.Coarse): // lists of the same second are the same to everybody
			what = ", lists"
			s.publishLists()
		case n < 3:
			what = ", changes"
			s.publishChanges()
		case n == 3 && !during:
			what = ", dump"
			s.publishDump()
			s.publishCapabilities()
		}
		what = "event" + what
	}
	for _, f := range s.watchers {
		f()
	}
	return what
}

// Much implements [followtest.Source].
func (s *rsSource) Much() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 60 {
		s.put(fmt.Sprintf("%s/more/%d/x", rsHost, s.rng.IntN(40)), fmt.Sprint("version ", s.clock.UnixMicro()))
	}
	s.publish()
	for _, f := range s.watchers {
		f()
	}
}

// Settle implements [followtest.Source]: all that has changed is published.
func (s *rsSource) Settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishChanges()
	if s.Changes == "" || s.Changes == "closed" || s.rng.IntN(2) == 0 {
		s.publish()
	}
}

func (s *rsSource) URL(followtest.Kind) string { return s.url() }

func (s *rsSource) Feed(r *http.Request) bool { return s.Record(r) == "" }

func (s *rsSource) Record(r *http.Request) string {
	uri := r.URL.RequestURI()
	for _, path := range []string{"/d", "/.well-known/", "/robots.txt"} {
		if uri == "/" || strings.HasPrefix(uri, path) {
			return ""
		}
	}
	return uri
}

// Whole implements [followtest.Source]: who is interrupted between two versions of a second, or a day, cannot tell
// them apart without hashes.
func (s *rsSource) Whole() bool { return (s.Coarse || s.Layout != "") && !s.Hashes }

func (s *rsSource) Watch(f func()) { s.watchers = append(s.watchers, f) }

// Records implements [followtest.Source]. It is called where something has happened, or nothing does.
func (s *rsSource) Records(followtest.Kind) map[string]string { return maps.Clone(s.pool) }

// Spare implements [followtest.Source].
func (s *rsSource) Spare(r *http.Request, sign faults.Sign) bool {
	return sign == faults.Old || sign == faults.Content && !s.Hashes && s.Record(r) != ""
}
