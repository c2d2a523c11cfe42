package server

import "time"

// Idle waits until the keeper has looked after all collections that have changed.
func (s *Server) Idle() { s.keeper.Wait() }

// SearchWithin bounds the time of searches.
func (s *Server) SearchWithin(d time.Duration) { s.pages.SearchWithin = d }
