package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/titles"
)

// frame is the part that all pages of a map have above the article and at the foot.
type frame struct {
	Search *searchField // nil: the page has no search field
	State  *time.Time   // when the map has changed last; nil: it is not of one map
	Part   string       // of the map, that has a tab: the first part of the address below that of the map
	Proven *time.Time   // when it was last proven equal to its source; nil: it is no copy, or never was
	mapFrame
}

// mapFrame is the part of the frame that depends on the map's content.
type mapFrame struct {
	Hierarchy string // address of the page of a hierarchy; "": the map has none
	Licences  []link // licences and rights of the map
}

// mostFrames is the number of frames that are cached: many pages are made of the same state.
const mostFrames = 1000

// recent is a cache of values. When it is full, it drops all of them. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]V
}

func (m *recent[K, V]) get(key K) (v V, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, known = m.kept[key]
	return v, known
}

func (m *recent[K, V]) put(key K, v V, most int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || len(m.kept) >= most {
		m.kept = map[K]V{}
	}
	m.kept[key] = v
}

// framed adds the frame that all pages of a map share to a page.
func (p *Pages) framed(r *http.Request, v *store.View, made *page) (err error) {
	if made.Search == nil {
		made.Search = p.searchField(&v.Collection, "")
	}
	_, below, _ := strings.Cut(r.URL.Path, "/"+v.Name+"/")
	made.Part, _, _ = strings.Cut(strings.TrimSuffix(below, ".html"), "/")
	if v.Head == 0 {
		return nil
	}
	made.State = &v.Updated
	if made.Proven, err = proven(v); err != nil {
		return err
	}
	id := web.Digest([]byte(strings.Join(append(LanguagesOf(r, &v.Collection), layout.LanguageOf(r).Tag, v.Name,
		server.StateOf(&v.Collection)), "\x00")))
	known := false
	if made.mapFrame, known = p.frames.get(id); !known {
		if made.mapFrame, err = p.describer(v, r).mapFrame(); err == nil {
			p.frames.put(id, made.mapFrame, mostFrames)
		}
	}
	return err
}

// mapFrame reads the parts of the frame that depend on the map.
func (d *describer) mapFrame() (found mapFrame, err error) {
	hierarchies, err := d.hierarchies(d)
	if err != nil {
		return found, err
	}
	if len(hierarchies) > 0 {
		found.Hierarchy = hierarchies[0].URL
	}
	found.Licences, err = d.licences()
	return found, err
}

// proven returns when a copy was last found to have the state digest that its source states. It is nil where that is
// not so now, and for other maps.
func proven(v *store.View) (*time.Time, error) {
	if v.Replica == nil {
		return nil, nil
	}
	s, err := sources.Get(v.Tx(), v.Name)
	if err != nil || s.State == nil || s.State.Proof == nil || !s.State.Proof.Equal {
		return nil, err
	}
	return &s.State.Proof.At, nil
}

// licensing are the [facts] about the licence and rights of a scheme.
var licensing = facts[:3]

// longestLicence is the number of bytes of a licence that are shown: a scheme may contain its whole text.
const longestLicence = 100

// licences returns the licences and rights that the schemes of a map state.
func (d *describer) licences() (all []link, err error) {
	schemes, err := d.wholes()
	if len(schemes) == 0 || err != nil {
		return nil, err
	}
	for _, ref := range schemes {
		t, err := d.v.Source().Topic(ref)
		if t == nil || err != nil {
			return nil, err
		}
		for _, o := range t.Occurrences {
			if !slices.Contains(licensing, o.Type) || len(all) == mostValuesOfFact {
				continue
			}
			l := link{Title: titles.Cut(o.Value, longestLicence), URL: addressOf(o.Value).URL,
				Lang: valueOf("", o.Scope).Lang}
			if l.URL != "" {
				l.Title, l.Lang = layout.Short(d.in, o.Value)
			}
			all = append(all, l)
		}
	}
	refs, err := d.standing("licences", func() ([]records.Class, bool, error) { return d.licencesOf(schemes) },
		func(s *standing, steps []step) ([]records.Class, bool, error) {
			for _, one := range steps {
				switch {
				case one.part == fragment.AsType && slices.Contains(wholes, one.player):
					return nil, false, nil
				case one.part == fragment.AsPlayer && slices.Contains(schemes, one.player):
					a, err := one.association()
					if err != nil || slices.Contains(licensing, a.Type) {
						return nil, false, err
					}
				}
			}
			return s.Classes, true, nil
		})
	for _, c := range refs {
		l, failed := d.link(c.TopicSI)
		if failed != nil {
			return nil, failed
		}
		l.URL = cmp.Or(addressOf(string(c.TopicSI)).URL, l.URL)
		all = append(all, l)
	}
	return all, err
}

// licencesOf returns the topics that schemes name as their licences.
func (d *describer) licencesOf(schemes []fragment.Ref) (all []records.Class, keep bool, err error) {
	for _, ref := range schemes {
		objects, err := d.objectsOf(ref, licensing)
		if err != nil {
			return nil, false, err
		}
		for _, licence := range slices.Concat(slices.Collect(maps.Values(objects))...) {
			all = append(all, records.Class{TopicSI: licence})
		}
	}
	slices.SortFunc(all, func(a, b records.Class) int { return cmp.Compare(a.TopicSI, b.TopicSI) })
	return slices.Compact(all), true, nil
}
