package nodepages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/plot"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
)

// quarantined is a change that could not be applied.
type quarantined struct {
	store.Quarantined
	Document *layout.Link // nil: not known
	Why      string
}

// done is something that was done with a subscription.
type done struct {
	store.Activity
	More int // number of entries that are not shown
}

// subscription is the data of its page.
type subscription struct {
	followed
	Addresses          []layout.Link
	Derived            []layout.Link
	Lag, Proof         *plot.Line
	Applied            *plot.Bars
	Rounds             []sources.Sample // the newest first
	Quarantine         []quarantined
	More               int // number in quarantine that are not shown
	Repairs, Activity  []done
	Acts               bool   // the page has buttons
	Token              string // of their forms
	Retried, Forgotten bool
	Signer             string
	Find               string
	Now                time.Time
}

// mostEntries is the number of entries shown of an activity, mostActivities the number of activities.
const (
	mostEntries    = 10
	mostActivities = 50
	mostRounds     = 24
)

// named returns the subscription of a request.
func (s *Site) named(ctx context.Context, r *http.Request) (*status.Status, error) {
	name, ok := strings.CutSuffix(r.PathValue("page"), ending)
	if !ok {
		return nil, &Problem{Status: http.StatusNotFound, Text: texts.NoPage}
	}
	st, err := s.Source.Subscription(ctx, name)
	if st == nil && err == nil {
		err = &Problem{http.StatusNotFound, texts.NoSubscription, []any{layout.Cut(name)}}
	}
	return st, err
}

// subscription answers with the page of a subscription.
func (s *Site) subscription(w http.ResponseWriter, r *http.Request) error {
	st, err := s.named(r.Context(), r)
	if err != nil {
		return err
	}
	row := subscription{
		followed: s.followed(st), Find: s.Find, Now: s.Now(),
		Retried: r.URL.Query().Get("done") == "retry", Forgotten: r.URL.Query().Get("done") == "forget",
	}
	if s.Actions != nil {
		row.Acts, row.Token = true, s.Token(r)
	}
	row.Signer, _, _ = strings.Cut(st.Key, "+")
	for _, a := range st.Addresses {
		row.Addresses = append(row.Addresses, layout.LinkTo(a))
	}
	for _, a := range st.DerivedFrom {
		row.Derived = append(row.Derived, layout.LinkTo(a))
	}
	for i := range st.Quarantine[:min(len(st.Quarantine), most)] {
		q := quarantined{Quarantined: st.Quarantine[i], Why: layout.Message(st.Quarantine[i].Error)}
		if q.Quarantined.Document != "" {
			a := layout.LinkTo(q.Quarantined.Document)
			q.Document = &a
		}
		row.Quarantine = append(row.Quarantine, q)
	}
	row.More = len(st.Quarantine) - len(row.Quarantine)
	row.Rounds = slices.Clone(st.History[max(0, len(st.History)-mostRounds):])
	slices.Reverse(row.Rounds)
	row.Lag, row.Proof, row.Applied = s.lag(st, "lag"), s.proof(st, "proof"), s.applied(st, "applied")
	log, err := s.Log(r.Context(), st.Name, mostActivities)
	if err != nil {
		return err
	}
	for i, a := range log {
		d := done{Activity: a, More: len(a.Entries) - min(len(a.Entries), mostEntries)}
		d.Entries = a.Entries[:len(a.Entries)-d.More]
		d.Note = layout.Message(a.Note)
		row.Activity = append(row.Activity, d)
		switch a.Kind {
		case store.ActivityRepaired, store.ActivityMended:
			row.Repairs = append(row.Repairs, d)
		case store.ActivityReplaced:
			first := !slices.ContainsFunc(log[i+1:], func(a store.Activity) bool { return a.Kind != store.ActivitySubscribed })
			if !first || len(log) == mostActivities { // otherwise the copy was loaded, not repaired
				row.Repairs = append(row.Repairs, d)
			}
		}
	}
	return s.Write(w, r, http.StatusOK, subscriptionTemplate, st.Name, s.path(r, s.toNode(r)), row)
}

// act executes the action of a form and redirects to the page.
func (s *Site) act(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &Problem{Status: http.StatusBadRequest, Text: texts.FormUnread}
	}
	st, err := s.named(r.Context(), r)
	if err != nil {
		return err
	}
	var topics []string
	if r.PostForm.Get("all") == "" {
		if topics = r.PostForm["topic"]; len(topics) == 0 || topics[0] == "" {
			return &Problem{Status: http.StatusBadRequest, Text: texts.FormNoTopic}
		}
	}
	what := r.PostForm.Get("do")
	switch what {
	case "retry":
		err = s.Actions.Retry(r.Context(), st.Name, topics...)
	case "forget":
		err = s.Actions.Forget(r.Context(), st.Name, topics...)
	default:
		return &Problem{Status: http.StatusBadRequest, Text: texts.FormNoAction}
	}
	if err != nil {
		return err
	}
	to := s.Root + SubscriptionPath(st.Name) + "?" + url.Values{"done": {what}}.Encode() + "#quarantine"
	http.Redirect(w, r, layout.ToPage(r, to), http.StatusSeeOther)
	return nil
}
