package folder_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/follow/followtest"
)

// mirror is a folder that follows a Source.
type mirror struct {
	t       tester
	dir     string
	url     string
	noDumps bool
	ahead   time.Duration // by so much the clock of the mirror is ahead
	Options
	reports  []string
	underWay bool // packages may be there that a round has not done with
}

// try does a round as a new process would.
func (m *mirror) try() (*Round, error) {
	m.t.Helper()
	m.Mirror, m.ConfirmAfter = true, followtest.ConfirmAfter
	f, err := Open(m.dir, m.Options)
	require.NoError(m.t, err)
	f.LoseAtFailure() // the machine does not fail
	f.SetClock(func() time.Time { return Now().Add(m.ahead) })
	s := &destination.Source{Fetcher: m.Fetcher, Report: func(line string) { m.reports = append(m.reports, line) }}
	if !m.noDumps {
		s.Temp = m.dir
	}
	r, err := f.Harvest(context.Background(), s, m.url)
	require.NoError(m.t, s.Close())
	require.Empty(m.t, f.State().Unfinished)
	require.NoError(m.t, f.Close())
	return r, err
}

func (m *mirror) round() *Round {
	m.t.Helper()
	r, err := patiently(&m.Options, m.try)
	require.NoError(m.t, err)
	return r
}

// files returns the files in the folder, by name.
func (m *mirror) files() map[string]string {
	m.t.Helper()
	files := map[string]string{}
	require.NoError(m.t, filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == StateFile || m.underWay && strings.HasPrefix(e.Name(), follow.PackagePrefix) {
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
