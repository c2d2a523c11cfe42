package server_test

import (
	"cmp"
	"sync"
	"testing"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/ext/resourcesync"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// node is a server that offers its maps by ResourceSync.
type node struct {
	*served.Node
	sync resourcesync.Options
}

// syncing has the options of servers that are being started, by their configuration.
var syncing sync.Map

func syncOf(c *server.Config) *resourcesync.Options {
	o, _ := syncing.Load(c)
	return o.(*resourcesync.Options)
}

// start starts a server. What it publishes to this test is validated against
// the schemas when the test ends.
func start(t testing.TB, configure ...func(*server.Config)) *node {
	t.Helper()
	return startOn(t, store.Options{Dir: t.TempDir()}, configure...)
}

// startOn starts a server on the store that the options describe.
func startOn(t testing.TB, o store.Options, configure ...func(*server.Config)) *node {
	t.Helper()
	n := &node{}
	n.Node = served.StartOn(t, o, func(c *server.Config) {
		syncing.Store(c, &n.sync)
		for _, f := range configure {
			f(c)
		}
		syncing.Delete(c)
		n.sync.ChangesPerList = cmp.Or(n.sync.ChangesPerList, 1000)
		for _, e := range ext.All() {
			if e.Name == "resourcesync" {
				e.Serve = resourcesync.With(n.sync)
			}
			c.Parts = append(c.Parts, extension.Parts([]extension.Extension{e})...)
		}
	})
	return n
}
