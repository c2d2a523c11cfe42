package folder

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	rs "github.com/tmshare/tmshare/internal/follow/resourcesync"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
)

// mirror is a folder that follows a Source.
type mirror struct {
	t       tester
	dir     string
	url     string
	noDumps bool
	Options
	reports []string
}

// try does a round as a new process would.
func (m *mirror) try() (*Round, error) {
	m.t.Helper()
	m.Mirror = true
	f, err := Open(m.dir, m.Options)
	require.NoError(m.t, err)
	f.durable = false // the machine does not fail
	s := &rs.Source{Fetcher: m.Fetcher, Report: func(line string) { m.reports = append(m.reports, line) }}
	if !m.noDumps {
		s.Temp = m.dir
	}
	r, err := f.Harvest(context.Background(), s, m.url)
	require.NoError(m.t, s.Close())
	require.Empty(m.t, f.state.Unfinished)
	require.NoError(m.t, f.Close())
	return r, err
}

func (m *mirror) round() *Round {
	m.t.Helper()
	r, err := m.try()
	require.NoError(m.t, err)
	return r
}

// files returns what is in the folder, by name.
func (m *mirror) files() map[string]string {
	m.t.Helper()
	files := map[string]string{}
	require.NoError(m.t, filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == StateFile {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(m.dir, path)
		files[name] = string(b)
		return err
	}))
	return files
}

func (m *mirror) state() *State {
	c := copyOf{t: m.t, dir: m.dir}
	return c.state()
}

// records returns the contents of the files by the URIs of their resources. There is no
// other file in the folder, nor an empty folder in it.
func (m *mirror) records() map[string]string {
	m.t.Helper()
	files, records, folded := m.files(), map[string]string{}, map[string]bool{}
	for id, held := range m.state().Records {
		if held.File != "" {
			content, ok := files[held.File]
			require.True(m.t, ok, "%s is not there", held.File)
			require.Equal(m.t, held.SHA256, sha(content), held.File)
			require.False(m.t, folded[strings.ToLower(held.File)], "%s is the name of two files on some file systems", held.File)
			folded[strings.ToLower(held.File)] = true
			records[id] = content
			delete(files, held.File)
		}
	}
	require.Empty(m.t, files, "these are of no resource")
	require.NoError(m.t, filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path != m.dir {
			within, _ := os.ReadDir(path)
			require.NotEmpty(m.t, within, "%s is empty", path)
		}
		return err
	}))
	return records
}

func drawStyle(t *rapid.T) rsStyle {
	yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
	s := rsStyle{
		LastMod: yes("lastmod"), Hashes: yes("hashes"), Lengths: yes("lengths"), Coarse: yes("coarse"), Zoneless: yes("zoneless"), Prefixes: yes("prefixes"),
		ListIndex: yes("list index"), Awkward: yes("awkward"), ChangeDump: yes("change dump"), DumpOnly: rapid.IntRange(0, 4).Draw(t, "dump only") == 0,
		Plain:   rapid.IntRange(0, 7).Draw(t, "plain") == 0,
		Changes: rapid.SampledFrom([]string{"", "open", "index", "bareIndex", "closed", "closedIndex"}).Draw(t, "changes"),
		Dump:    rapid.SampledFrom([]string{"", "plain", "copies", "index"}).Draw(t, "dump"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "times of changes") {
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
	s.DumpOnly = s.DumpOnly && s.Dump != ""
	return s
}

// Whatever happens to the resources of a Source, and in whatever style it publishes what it
// has, a mirror holds them byte for byte after a round in which nothing happens: also after
// rounds in which something did, and in which the Source did not work.
//
//	go test ./internal/follow/folder -run MirrorHistories -rounds 10000
func TestMirrorHistories(t *testing.T) {
	dir := t.TempDir()
	n, packages := 0, 0
	socket := anyhost.Serve(t, http.NotFoundHandler())
	testenv.Check(t, 25, 200, func(t *rapid.T) {
		n++
		style := drawStyle(t)
		s := newRSSource(t, rapid.Uint64().Draw(t, "seed"), style)
		handler := http.Handler(s)
		socket.Handle(handler)
		m := &mirror{t: t, dir: filepath.Join(dir, strconv.Itoa(n)), url: s.url(), noDumps: rapid.Bool().Draw(t, "no dumps") && (!style.DumpOnly || style.Dump == "copies")}
		m.Fetcher, m.Parallel = socket.Fetcher(), rapid.IntRange(1, 3).Draw(t, "parallel")
		defer os.RemoveAll(m.dir)
		s.publish()
		for range rapid.IntRange(1, 10).Draw(t, "rounds") {
			for range rapid.IntRange(0, 6).Draw(t, "events") {
				s.event()
				switch rapid.IntRange(0, 5).Draw(t, "published") {
				case 0:
					s.publishLists()
				case 1, 2:
					s.publishChanges()
				case 3:
					s.publishDump()
					s.publishCapabilities()
				}
			}
			switch rapid.IntRange(0, 7).Draw(t, "round") {
			case 0:
				s.mu.Lock()
				s.events = 3
				s.mu.Unlock()
				_, _ = m.try()
				s.mu.Lock()
				s.events = 0
				s.mu.Unlock()
			case 1:
				if !style.Coarse || style.Hashes { // else who is interrupted between two versions of a second cannot tell them apart
					s.fault = s.lie
					_, _ = m.try()
					_, _ = m.try()
					s.fault = nil
				}
			case 2:
				s.prune()
			case 3:
				if !style.Plain {
					s.move()
				}
			}
			s.publishChanges()
			if style.Changes == "" || style.Changes == "closed" || rapid.Bool().Draw(t, "all") {
				s.publish()
			}
			r, err := m.try()
			require.NoError(t, err)
			require.Empty(t, r.Failed)
			require.Empty(t, r.Gone)
			require.Equal(t, s.pool, m.records())
			for _, path := range s.seen() {
				if strings.HasSuffix(path, ".zip") {
					packages++
				}
			}
		}
	})
	t.Logf("%d histories, %d packages fetched", n, packages)
	if n >= 100 {
		require.NotZero(t, packages)
	}
}

// lie answers wrongly now and then: with errors, half of what there is and, where hashes tell,
// something else.
func (s *rsSource) lie(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.rng.IntN(12) {
	case 0:
		w.WriteHeader(http.StatusNotFound)
	case 1:
		w.WriteHeader(http.StatusInternalServerError)
	case 2:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
	case 3:
		if !s.Hashes || strings.HasPrefix(r.URL.Path, s.home) {
			return false
		}
		_, _ = io.WriteString(w, "something else")
	default:
		return false
	}
	return true
}
