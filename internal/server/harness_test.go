package server_test

import (
	"testing"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// node is a server with helpers of tests.
type node struct{ *served.Node }

// start starts a server. What it publishes to this test is validated against
// the schemas when the test ends.
func start(t testing.TB, configure ...func(*server.Config)) *node {
	t.Helper()
	return &node{served.Start(t, configure...)}
}

// startOn starts a server on the store that the options describe.
func startOn(t testing.TB, o store.Options, configure ...func(*server.Config)) *node {
	t.Helper()
	return &node{served.StartOn(t, o, configure...)}
}
