package pages

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// WithNode makes pages a part of a server, with something in the place of the pages of the node.
func WithNode(node func(code func(*http.Request) string) http.Handler) func(*server.Server) (*server.Part, error) {
	return func(s *server.Server) (*server.Part, error) {
		p := newPages(s, nil)
		p.node = node(p.Sessions.Code)
		return p.part(), nil
	}
}

// Tops returns the tops of each hierarchy of a map, with their numbers of instances, and the number of those found by
// a read of all associations.
func Tops(p *Pages, v *store.View) (all map[string][]string, walks int, err error) {
	d := p.describer(v, httptest.NewRequest(http.MethodGet, "/", nil))
	by, err := d.orderings()
	if err != nil {
		return nil, 0, err
	}
	types, err := d.types(true)
	if err != nil {
		return nil, 0, err
	}
	hierarchies := []*hierarchy{types}
	for i := range by {
		hierarchies = append(hierarchies, &hierarchy{d: d, by: by[i]})
	}
	all = map[string][]string{}
	for _, h := range hierarchies {
		roots, err := h.roots()
		if err != nil {
			return nil, 0, err
		}
		if h.known != nil {
			walks++
		}
		name := fmt.Sprint(h.by)
		all[name] = []string{}
		for _, ref := range roots {
			all[name] = append(all[name], fmt.Sprint(ref, " ", h.instances[ref]))
		}
		for seen := map[fragment.Ref]bool{}; len(roots) > 0; roots = roots[1:] {
			if ref := roots[0]; !seen[ref] {
				below, err := h.below(ref)
				if err != nil {
					return nil, 0, err
				}
				below = slices.DeleteFunc(slices.Sorted(slices.Values(below)), func(one fragment.Ref) bool { return one == ref }) // no page has it
				seen[ref], roots = true, append(roots, below...)
				all[name] = append(all[name], fmt.Sprint("below ", ref, ": ", below))
			}
		}
	}
	return all, walks, nil
}

// Fresh returns pages of the same server that have found nothing yet.
func Fresh(p *Pages) *Pages { return &Pages{Server: p.Server} }

// Again returns pages of the same server that know what others have found, as a row has it.
func Again(p *Pages) (*Pages, error) {
	again := Fresh(p)
	again.standings.kept = map[standingOf]*standing{}
	for id, one := range p.standings.kept {
		row, err := json.Marshal(one.found)
		if err != nil {
			return nil, err
		}
		restored := &standing{restored: true}
		if again.standings.kept[id] = restored; json.Unmarshal(row, &restored.found) != nil {
			return nil, err
		}
	}
	return again, nil
}

// Find finds the stored facts about all associations anew, as the background does.
func Find(p *Pages, v *store.View) error {
	_, err := p.find(v)
	return err
}

// Stored returns the number of rows with facts about all associations.
func Stored(v *store.View) (n int, err error) {
	for _, err := range v.Tx().Scan(v.Extension("pages"), nil) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// New returns pages of a server, and what makes them a part of it.
func New(s *server.Server) (*Pages, *server.Part) {
	p := newPages(s, nil)
	return p, p.part()
}

// Known returns how much is known of all associations of maps.
func Known(p *Pages) (n int) {
	p.standings.mu.Lock()
	defer p.standings.mu.Unlock()
	for _, one := range p.standings.kept {
		if one.mu.TryLock() {
			if one.Known {
				n++
			}
			one.mu.Unlock()
		}
	}
	return n
}
