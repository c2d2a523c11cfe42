package folder_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/tmshare/tmshare/internal/ext/folder"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/resourcesync/destination"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
)

// The packages of a Source that has nothing but a Resource Dump have all that there is,
// whatever is stated of it, and whether or not the resources are at their URIs.
func TestSourceWithADumpOnly(t *testing.T) {
	noAt := regexp.MustCompile(` at="[^"]*"`)
	for name, style := range map[string]rsStyle{
		"all is stated":                        careful,
		"whole seconds":                        {LastMod: true, Coarse: true, Dump: "copies"},
		"no times":                             {Dump: "copies"},
		"whole seconds, manifests in packages": {LastMod: true, Coarse: true, Dump: "plain"},
		"no times, manifests in packages":      {Dump: "plain"},
		"an index":                             {LastMod: true, Coarse: true, Dump: "index"},
		"changes":                              {LastMod: true, Dump: "copies", Changes: "open", ChangeDump: true},
	} {
		t.Run(name, func(t *testing.T) {
			style.DumpOnly = true
			s, m := newMirror(t, style, 12)
			for path, document := range s.pages {
				if name == "no times" && strings.HasSuffix(path, ".xml") {
					s.pages[path] = noAt.ReplaceAllString(document, "")
				}
			}
			s.BreakWith(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if strings.HasPrefix(r.URL.Path, "/r/") {
					http.NotFound(w, r)
					return true
				}
				return false
			})
			r := m.round()
			require.Equal(t, []int{12, 0, 0}, []int{r.New, len(r.Failed), len(r.Gone)}, "%v", m.reports)
			require.Equal(t, s.pool, m.records())
			require.Empty(t, m.reports)
			audit, err := AuditMirror(t.Context(), m.dir, &destination.Source{Fetcher: m.Fetcher, Temp: t.TempDir()}, "", nil)
			require.NoError(t, err)
			require.True(t, audit.Equal(), "%+v", audit)
			s.put(rsHost+"/r/3.txt", "later")
			s.publish()
			m.round()
			require.Equal(t, s.pool, m.records())
			require.Empty(t, m.reports)
		})
	}
}

// A package brings nothing of hosts that a list could not lead to.
func TestPackageOfOtherHosts(t *testing.T) {
	for _, style := range []rsStyle{careful, {Dump: "plain", DumpOnly: true}, {Dump: "copies", DumpOnly: true, Hashes: true}} {
		s := newRSSource(t, 1, style)
		for i := range 20 {
			s.put(fmt.Sprintf("%s/r/%d.txt", rsHost, i), fmt.Sprintf("content of %d", i))
		}
		want := maps.Clone(s.pool)
		s.put("http://bank.example.com/index.html", "ours")
		s.publish()
		m := &mirror{t: t, dir: filepath.Join(t.TempDir(), "m"), url: s.url()}
		m.Fetcher = anyhost.Serve(t, s).Fetcher()
		m.Fetcher.Tries = 1
		r := m.round()
		require.Len(t, r.Failed, 1)
		require.Contains(t, r.Failed[0].Reason, "bank.example.com")
		require.Contains(t, r.Failed[0].Reason, "--host")
		require.Equal(t, want, m.records())
		require.NoDirExists(t, filepath.Join(m.dir, "bank.example.com"))
	}
}
