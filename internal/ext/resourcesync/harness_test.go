package resourcesync_test

import (
	"cmp"
	"testing"

	"github.com/tmshare/tmshare/internal/ext"
	rs "github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// node is a server that offers its maps by ResourceSync.
type node struct {
	*served.Node
	sync rs.Options
}

// start starts a server. Its documents for this test is validated against the schemas when the test ends.
func start(t testing.TB, configure ...func(*server.Config)) *node {
	t.Helper()
	return startWith(t, rs.Options{}, configure...)
}

// startWith starts a server that offers its maps with some options.
func startWith(t testing.TB, o rs.Options, configure ...func(*server.Config)) *node {
	t.Helper()
	return startOn(t, store.Options{Dir: t.TempDir()}, o, configure...)
}

// startOn starts a server on the store that the options describe.
func startOn(t testing.TB, on store.Options, o rs.Options, configure ...func(*server.Config)) *node {
	t.Helper()
	o.ChangesPerList = cmp.Or(o.ChangesPerList, 1000)
	all := ext.All()
	for i := range all {
		if all[i].Name == "resourcesync" {
			all[i].Serve = func(s *server.Server) (*server.Part, error) { return rs.Serve(s, o) }
		}
	}
	parts := func(c *server.Config) { c.Parts = extension.Parts(all) }
	return &node{served.StartOn(t, on, append(configure, parts)...), o}
}
