package folder_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
)

func (m *mirror) audit() *Audit {
	m.t.Helper()
	a, err := AuditMirror(m.t.(*testing.T).Context(), m.dir, &destination.Source{Fetcher: m.Fetcher}, "", nil)
	require.NoError(m.t, err)
	return a
}

func idsOf(a *Audit) (missing, different, superfluous []string) {
	identify := func(all []Difference) (ids []string) {
		for _, d := range all {
			ids = append(ids, d.ID[len(rsHost):])
		}
		return ids
	}
	return identify(a.Missing), identify(a.Different), identify(a.Superfluous)
}

// An audit finds files that were tampered with, whatever the Source states, and changes nothing.
func TestAudit(t *testing.T) {
	for _, style := range []rsStyle{careful, {LastMod: true, Changes: "index"}, {LastMod: true, Hashes: true, Plain: true}, {Hashes: true, Dump: "copies", DumpOnly: true, Lengths: true}} {
		s, m := newMirror(t, style, 8)
		m.round()
		a := m.audit()
		require.True(t, a.Equal(), "%+v", a)
		require.Equal(t, 8, a.Compared)
		require.Equal(t, map[bool]int{true: 0, false: 8}[style.Hashes], a.Unstated)

		file := func(name string) string { return filepath.Join(m.dir, "example.org", "r", name) }
		b, err := os.ReadFile(file("1.txt"))
		require.NoError(t, err)
		b[0] ^= 1
		require.NoError(t, os.WriteFile(file("1.txt"), b, 0o666)) // as long as before
		require.NoError(t, os.WriteFile(file("2.txt"), nil, 0o666))
		require.NoError(t, os.Remove(file("3.txt")))
		require.NoError(t, os.Remove(file("4.txt")))
		require.NoError(t, os.Symlink("5.txt", file("4.txt")))
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "mine"), nil, 0o666))
		before := m.files()
		missing, different, superfluous := idsOf(m.audit())
		require.Equal(t, []string{"/r/3.txt"}, missing)
		require.Equal(t, []string{"/r/1.txt", "/r/2.txt", "/r/4.txt"}, different)
		require.Empty(t, superfluous)
		require.Equal(t, []string{"mine"}, m.audit().Others)
		require.Equal(t, before, m.files())

		// Changes at the Source since.
		require.NoError(t, os.Remove(filepath.Join(m.dir, "mine")))
		for _, name := range []string{"1.txt", "2.txt", "4.txt"} {
			require.NoError(t, os.Remove(file(name)))
		}
		require.Equal(t, 4, m.round().New, "to mend a file is to remove it")
		require.True(t, m.audit().Equal())
		s.put(rsHost+"/r/1.txt", "new")
		s.put(rsHost+"/r/new", "new")
		s.change(rsHost+"/r/2.txt", "", resourcesync.Deleted)
		s.publish()
		missing, different, superfluous = idsOf(m.audit())
		require.Equal(t, []string{"/r/new"}, missing)
		require.Equal(t, []string{"/r/1.txt"}, different)
		require.Equal(t, []string{"/r/2.txt"}, superfluous)
		m.round()
		require.True(t, m.audit().Equal())
	}
	s, m := newMirror(t, careful, 1)
	require.NoError(t, os.MkdirAll(m.dir, 0o777))
	_, err := AuditMirror(t.Context(), m.dir, &destination.Source{Fetcher: m.Fetcher}, s.url(), nil)
	require.ErrorContains(t, err, "is no mirror yet")
	m.round()
	_, err = AuditMirror(t.Context(), m.dir, &destination.Source{Fetcher: m.Fetcher}, rsHost+"/other", nil)
	require.ErrorContains(t, err, "is a mirror of http://example.org/, not of http://example.org/other")
}
