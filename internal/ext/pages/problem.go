package pages

import (
	"net/http"
	"strings"

	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Problem answers a browser with a page that says what is wrong, and reports whether it did. Others get what programs
// get.
func (p *Pages) Problem(w http.ResponseWriter, r *http.Request, problem *web.Problem) bool {
	if !ForPeople(r) {
		return false
	}
	shown := struct {
		*web.Problem
		Detail  string
		Origin  address // of a map that is written elsewhere
		Missing bool
		Maps    string
	}{
		Problem: problem, Origin: addressOf(problem.Origin), Missing: problem.Status == http.StatusNotFound, Maps: p.URLs.Overview() + Ending,
		Detail: strings.TrimPrefix(problem.Detail, store.ErrNotFound.Error()+": "), // the title says that it is not there
	}
	head(w)
	w.WriteHeader(problem.Status)
	if r.Method != http.MethodHead {
		_ = p.execute(w, "problem", &page{Title: problem.Title, Path: p.Trail(nil), Of: shown}) // the client has gone
	}
	return true
}
