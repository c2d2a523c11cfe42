package nodepages

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/plot"
)

// published is a collection of the node.
type published struct {
	layout.Link // to its page; without URL if it has none
	status.Published
	Origin  *layout.Link // of a replica
	Inputs  []layout.Link
	Filling bool
}

// followed is a subscription.
type followed struct {
	layout.Link // to its page
	*status.Status
	From   layout.Link // the feed that was followed last
	Seen   *status.Seen
	Error  string
	Trying bool // a round is running
}

// worse orders subscriptions: first those that need attention, then by age of the copy, the oldest first.
func worse(a, b followed) int {
	oldest := func(f followed) float64 {
		if f.Status.Lag == nil {
			return math.Inf(1)
		}
		return *f.Status.Lag
	}
	return cmp.Or(cmp.Compare(a.concern(), b.concern()), cmp.Compare(oldest(b), oldest(a)), cmp.Compare(a.Name, b.Name))
}

// concern returns the urgency of a subscription; the least number is the most urgent.
func (f *followed) concern() int {
	concerns := []bool{f.Refused, f.Missing != "" || f.LastError != "", f.Doubt != nil, f.Quarantined > 0, f.Differs,
		f.Unproven != ""}
	if first := slices.Index(concerns, true); first >= 0 {
		return first
	}
	return len(concerns)
}

// most is the number of items that a page lists.
const most = 100

// node answers with the page of the node.
func (s *Site) node(w http.ResponseWriter, r *http.Request) error {
	n, err := s.Source.Node(r.Context())
	if err != nil {
		return err
	}
	data := struct {
		*status.Node
		Publishes []published
		Follows   []followed
		Find      string
		Programs  []layout.Link
		Now       time.Time
	}{Node: n, Find: s.Find, Programs: s.Programs, Now: s.Now()}
	pages := s.pagesOf(n)
	for i := range n.Publishes {
		data.Publishes = append(data.Publishes, s.published(&n.Publishes[i], pages))
	}
	for i := range n.Follows {
		data.Follows = append(data.Follows, s.followed(&n.Follows[i]))
	}
	slices.SortFunc(data.Follows, worse)
	return s.Write(w, r, http.StatusOK, nodeTemplate, s.toNode(r).Title, s.path(r), data)
}

// pagesOf returns the addresses of the pages of collections and subscriptions, by name.
func (s *Site) pagesOf(n *status.Node) map[string]string {
	pages := map[string]string{}
	for i := range n.Follows {
		pages[n.Follows[i].Name] = s.Root + SubscriptionPath(n.Follows[i].Name)
	}
	if s.Maps {
		for i := range n.Publishes {
			pages[n.Publishes[i].Name] = s.Root + "/topicmaps/" + n.Publishes[i].Name + ending
		}
	}
	return pages
}

func (s *Site) published(p *status.Published, pages map[string]string) published {
	row := published{Published: *p, Filling: p.BeingFilled, Link: layout.Link{Title: p.Name}}
	if s.Maps {
		row.URL = pages[p.Name]
	}
	if p.Origin != "" {
		origin := layout.LinkTo(p.Origin)
		row.Origin = &origin
	}
	for _, name := range p.DerivedFrom {
		row.Inputs = append(row.Inputs, layout.Link{Title: name, URL: pages[name]})
	}
	return row
}

func (s *Site) followed(st *status.Status) followed {
	f := followed{
		Link: layout.Link{Title: st.Name, URL: s.Root + SubscriptionPath(st.Name)}, Status: st,
		From: layout.LinkTo(st.Feed), Seen: s.Seen(st.Name), Error: layout.Message(st.LastError),
	}
	if st.Missing != "" {
		f.Error = layout.Message(st.Missing)
	} else if st.Doubt != nil {
		f.Error = layout.Message(st.Doubt.String())
	}
	f.Error = layout.Sentence(f.Error, st.Name)
	f.Trying = f.Seen != nil && f.Seen.Running
	return f
}

// day is the period that plots cover.
const day = 24 * time.Hour // the period that samples are kept

// lag returns a plot of how old the copy was at most, up to now.
func (s *Site) lag(st *status.Status, id string) *plot.Line {
	now := s.Now()
	p := &plot.Line{ID: id, Unit: plot.Seconds, From: now.Add(-day), To: now}
	for i := range st.History {
		if sample := &st.History[i]; sample.Lag != nil {
			p.Points = append(p.Points, plot.Point{Time: sample.Last, Value: *sample.Lag})
		}
	}
	if st.Lag != nil && len(p.Points) > 0 {
		p.Points = append(p.Points, plot.Point{Time: now, Value: *st.Lag})
	}
	return p
}

// proof returns a plot of the age of the last proof of equality at the end of each round. It has gaps before the first
// proof.
func (s *Site) proof(st *status.Status, id string) *plot.Line {
	now := s.Now()
	p := &plot.Line{ID: id, Unit: plot.Seconds, From: now.Add(-day), To: now}
	var last *time.Time
	for i := range st.History {
		sample := &st.History[i]
		if sample.Proven != nil {
			last = sample.Proven
		}
		if last != nil {
			p.Points = append(p.Points, plot.Point{Time: sample.Last, Value: max(0, sample.Last.Sub(*last).Seconds())})
		}
	}
	if last != nil {
		p.Points = append(p.Points, plot.Point{Time: now, Value: max(0, now.Sub(*last).Seconds())})
	}
	return p
}

// applied returns a plot of the number of applied entries.
func (s *Site) applied(st *status.Status, id string) *plot.Bars {
	now := s.Now()
	p := &plot.Bars{ID: id, Period: time.Hour, From: now.Add(-day), To: now}
	for i := range st.History {
		hour := st.History[i].From.UTC().Truncate(time.Hour)
		if n := len(p.Points); n == 0 || !p.Points[n-1].Time.Equal(hour) {
			p.Points = append(p.Points, plot.Point{Time: hour})
		}
		p.Points[len(p.Points)-1].Value += float64(st.History[i].Applied)
	}
	return p
}
