package server

import "net/http"

func writeText(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write([]byte(text))
	return err
}

// healthy says that the process runs.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error { return writeText(w, "ok\n") }

// ready says whether requests should come here.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.stopping.Load() {
		return problem(http.StatusServiceUnavailable, "the server is stopping: it finishes what runs")
	}
	if _, err := s.Store.Collections(); err != nil {
		exchangeOf(r).failure = err
		return problem(http.StatusServiceUnavailable, "the store cannot be read; the log says why")
	}
	return writeText(w, "ready\n")
}

// Stopping makes /readyz tell load balancers to send nothing more. All else goes
// on.
func (s *Server) Stopping() { s.stopping.Store(true) }
