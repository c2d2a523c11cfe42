package editing

import (
	"net/http"
	"sync"

	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/server/web"
)

// mostRemembered is how many forms that were published are remembered.
const mostRemembered = 1000

// publications remembers which forms were published lately: a form that is sent again, as by a second click, leads to
// what came of it.
type publications struct {
	mu     sync.Mutex
	byForm map[string]*publication
	order  []string // the oldest first
}

type publication struct {
	done chan struct{} // closed once the page is known
	page string        // where the topic is; "": nothing was published
}

// begin returns the publication of a form, and whether it is the first one.
func (p *publications) begin(form string) (of *publication, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of = p.byForm[form]; of != nil {
		return of, false
	}
	of = &publication{done: make(chan struct{})}
	if p.byForm == nil {
		p.byForm = map[string]*publication{}
	}
	if p.order = append(p.order, form); len(p.order) > mostRemembered {
		delete(p.byForm, p.order[0])
		p.order = p.order[1:]
	}
	p.byForm[form] = of
	return of, true
}

// end says what came of a publication.
func (p *publications) end(form string, of *publication, page string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.page = page; page == "" && p.byForm[form] == of {
		delete(p.byForm, form) // it may be sent again
	}
	close(of.done)
}

// once publishes what a form says, if the same form was not published before.
func (e *editor) once(w http.ResponseWriter, r *http.Request, d *draft) error {
	form := web.Digest([]byte(r.URL.Path + "\x00" + r.PostForm.Encode())) // with the code of the session
	of, first := e.published.begin(form)
	if first {
		defer func() { e.published.end(form, of, d.published) }()
		return e.carryOut(w, r, d, false)
	}
	select {
	case <-of.done:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if of.page != "" {
		return pages.SeeOther(w, r, of.page)
	}
	return e.carryOut(w, r, d, false)
}
