package folder_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// rsStyle is how a Source of ResourceSync publishes: as the specification and the known readers demand, or the
// opposite.
type rsStyle struct {
	LastMod, Hashes, Lengths bool   // stated in lists
	Coarse                   bool   // times of whole seconds
	Layout                   string // times of changes by the day, as a layout of time
	Zoneless                 bool
	Prefixes                 bool // other prefixes than usual
	ListIndex                bool
	Plain                    bool   // a Sitemap and nothing else
	Changes                  string // "", open, index, bareIndex (without times), closed, closedIndex (a closed list that leads to an index)
	OnlyDatetime             bool   // no lastmod in changes
	OnlyLastMod              bool   // no datetime: version 1.0
	Dump                     string // "", plain, copies (of manifests), index
	ChangeDump               bool
	DumpOnly                 bool // no Resource List
	Awkward                  bool // URIs with trailing slashes, that are prefixes of others, that differ by case
}

// rsSource is a Source with a history, at http://example.org.
type rsSource struct {
	rsStyle
	rng *rand.Rand
	t   require.TestingT

	faults.Front
	mu       sync.Mutex
	clock    time.Time
	version  int
	home     string            // folder of the documents
	pool     map[string]string // by URI: the current resources
	modified map[string]time.Time
	log      []rsChange
	horizon  time.Time
	sealed   []rsSealed // closed lists
	packed   int        // changes that are in packages
	dumpedAt []resourcesync.Item
	pages    map[string]string // documents, by path
	watchers []func()
	noDumps  bool         // its reader does not ask for packages
	client   *http.Client // that reaches it
	address  string       // likewise
}

type rsChange struct {
	uri, content string
	at           time.Time
	kind         resourcesync.Change
}

type rsSealed struct {
	path        string
	from, until time.Time
}

const rsHost = "http://example.org"

func newRSSource(t require.TestingT, seed uint64, style rsStyle) *rsSource {
	s := &rsSource{
		rsStyle: style, rng: rand.New(rand.NewPCG(seed, 11)), t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), home: "/d",
		pool: map[string]string{}, modified: map[string]time.Time{}, pages: map[string]string{},
	}
	s.horizon = s.now()
	return s
}

func (s *rsSource) now() time.Time {
	s.clock = s.clock.Add(time.Microsecond)
	return s.clock
}

var rsNames = []string{"/r/a", "/r/b", "/r/c.xml", "/r/d", "/q?a=1&b=../x", "/r/%2E%2E/e"}
var rsAwkward = []string{"/r", "/r/", "/r/a", "/r/a/", "/r/A", "/r/a/b", "/r//a", "/r/a/b?x=/"}

func (s *rsSource) uris() []string {
	if s.Awkward {
		return rsAwkward
	}
	return rsNames
}

// event changes a resource.
func (s *rsSource) event() {
	if s.rng.IntN(3) == 0 {
		s.clock = s.clock.Add(time.Duration(s.rng.IntN(3)) * time.Second)
	}
	uri := rsHost + s.uris()[s.rng.IntN(len(s.uris()))]
	if _, there := s.pool[uri]; there && s.rng.IntN(4) == 0 {
		s.change(uri, "", resourcesync.Deleted)
		return
	}
	s.version++
	s.put(uri, fmt.Sprintf("%s in version %d%s", uri, s.version, strings.Repeat(".", s.rng.IntN(200))))
}

func (s *rsSource) put(uri, content string) {
	kind := resourcesync.Created
	if _, there := s.pool[uri]; there {
		kind = resourcesync.Updated
	}
	s.change(uri, content, kind)
}

func (s *rsSource) change(uri, content string, kind resourcesync.Change) {
	at := s.now()
	if kind == resourcesync.Deleted {
		delete(s.pool, uri)
		delete(s.modified, uri)
	} else {
		s.pool[uri], s.modified[uri] = content, at
	}
	s.log = append(s.log, rsChange{uri, content, at, kind})
}

// prune forgets all changes: a reader that has not seen them must begin again.
func (s *rsSource) prune() {
	s.clock = s.clock.Add(2 * time.Second)
	s.forget()
	s.clock = s.clock.Add(2 * time.Second)
	s.publish()
}

func (s *rsSource) forget() {
	s.horizon = s.now()
	s.log, s.sealed, s.packed, s.dumpedAt = nil, nil, 0, nil
}

// move publishes all documents elsewhere.
func (s *rsSource) move() {
	for path := range s.pages {
		if strings.HasPrefix(path, s.home+"/") {
			delete(s.pages, path)
		}
	}
	s.home += "d"
	s.prune()
}

// url is where the Source is found.
func (s *rsSource) url() string {
	if s.Plain {
		return rsHost + "/d/list.xml"
	}
	return rsHost + "/"
}

// ServeHTTP answers, through the faults.
func (s *rsSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.dated(w)
	s.Answer(w, r, http.HandlerFunc(s.show))
}

// dated has an answer tell the time of the Source.
func (s *rsSource) dated(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", s.clock.Format(http.TimeFormat))
}

func (s *rsSource) show(w http.ResponseWriter, r *http.Request) {
	s.dated(w)
	path := r.URL.RequestURI()
	s.mu.Lock()
	content, ok := s.pages[path]
	kind := "application/xml"
	if !ok {
		content, ok = s.pool[rsHost+path]
		kind = "text/plain"
	}
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("ETag", etagOf(content))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
}

// A server that was restored after half a round does not list the changes of that round any more. The files fetched
// for them belong to a lost history.
func TestListsWithoutWhatARoundHadBegunWith(t *testing.T) {
	source, m := newMirror(t, careful, 5)
	delta := func(mark follow.Mark) *follow.Delta {
		n, err := (&destination.Source{Fetcher: m.Fetcher}).Delta(t.Context(), source.url(), follow.Look{Mark: mark}, Holding(&State{}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		return n
	}
	mark := delta(follow.Mark{}).Mark
	source.put(rsHost+"/r/0.txt", "changed")
	source.publish()
	begun := mark.Begin(delta(mark))
	require.Len(t, begun.Begun.At, 1)
	require.Empty(t, delta(begun).Reason, "the change is there")
	begun.Begun.Updated = begun.Begun.Updated.Add(time.Second)
	n := delta(begun)
	require.Equal(t, "changes of a round that was not finished are not in the Change Lists any more", n.Reason)
	require.True(t, n.Anew)
	require.True(t, n.Whole)
}
