//go:build !linux

package pgserver

import (
	"net/url"
	"testing"
)

// Server is a server of PostgreSQL.
type Server struct{}

// Start skips the test: servers are started on Linux only.
func Start(t testing.TB, _ ...string) *Server {
	t.Helper()
	t.Skip("NOT CHECKED: servers of PostgreSQL are started on Linux only. The engine for it is not tested.")
	return nil
}

// StartTLS skips the test.
func StartTLS(t testing.TB, _ string, _ ...string) *Server { return Start(t) }

// Authority returns no file.
func (s *Server) Authority() string { return "" }

// OtherAuthority returns no file.
func OtherAuthority(testing.TB) string { return "" }

// TCP returns no address.
func (s *Server) TCP(string, url.Values) string { return "" }

// Shared skips the test.
func Shared(t testing.TB) *Server { return Start(t) }

// URL returns the address of a database of the server.
func (s *Server) URL() string { return "" }

// Run starts the server.
func (s *Server) Run() {}

// Standby starts a server that follows this one.
func (s *Server) Standby(...string) *Server { return s }

// Promote has a standby take writes.
func (s *Server) Promote() {}

// Pause has a standby lag.
func (s *Server) Pause(testing.TB) {}

// Resume ends Pause.
func (s *Server) Resume(testing.TB) {}

// Freeze has connections stand still.
func (s *Server) Freeze(testing.TB) func() { return func() {} }

// Stop has all stand still.
func (s *Server) Stop(testing.TB) func() { return func() {} }

// Dump returns nothing.
func (s *Server) Dump(testing.TB, string) string { return "" }

// Restore puts a store back.
func (s *Server) Restore(testing.TB, string, string) {}

// Kill ends the server.
func (s *Server) Kill() {}

// Dir returns the folder of the server.
func (s *Server) Dir() string { return "" }

// SQL carries out statements.
func (s *Server) SQL(testing.TB, string) string { return "" }
