package server

// Idle waits until the keeper has looked after all collections that have changed.
func (s *Server) Idle() { s.keeper.Wait() }
