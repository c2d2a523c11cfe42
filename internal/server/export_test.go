package server

import "time"

// Idle waits until the keeper has looked after all collections that have changed.
func (s *Server) Idle() { s.keeper.Wait() }

// Addresses returns the methods of each route, by its path.
func (s *Server) Addresses() map[string][]string {
	all := map[string][]string{}
	err := s.routes().Routes(func(path string, methods []string) {
		all[path] = append(all[path], methods...)
	})
	if err != nil {
		panic(err)
	}
	return all
}

// AnswerGuessesAfter sets the time after which requests with a wrong token are answered.
func (s *Server) AnswerGuessesAfter(d time.Duration) { s.Guesses.Slowness = d }
