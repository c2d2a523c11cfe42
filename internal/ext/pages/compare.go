package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// comparison is the data of the page that compares two states of a map, or of a topic.
type comparison struct {
	From, To           history.Moment
	FromField, ToField string
	Entries            int // that lie between the states
	Changes            []compared
	TooMany            bool // for a page

	Topic         link   // the only one that is compared; its URL is "" where all are
	Before, After string // pages of the topic in both states; "": it was not there
	Restore       string // the form that restores the topic; "": the reader may not
	Next          string // the page with the next topics
}

// The limits of a page that compares two states of a map: topics, statements of each kind of one, and entries between
// the states, which all are sorted.
const (
	mostCompared = 20
	mostOfEach   = 10
	mostBytes    = 48 << 10 // of HTML for all statements
	mostEntries  = 20_000
)

// compared is how a topic differs.
type compared struct {
	link
	Differences
	Kind texts.Text
}

// span reads the states to compare from ?from= and ?to=. Without ?to=, the later state is the present one. Without
// ?from=, earlier returns the earlier one.
func span(r *http.Request, v *store.View, earlier func() (history.Moment, error)) (c *comparison, err error) {
	c = &comparison{To: history.Now(v)}
	from, to := r.URL.Query().Get("from"), r.URL.Query().Get("to")
	if to != "" {
		if c.To, _, err = MomentAt(v, "to", to); err != nil {
			return nil, err
		}
	}
	if from == "" {
		c.From, err = earlier()
	} else {
		c.From, _, err = MomentAt(v, "from", from)
	}
	if c.From.Seq > c.To.Seq {
		c.From, c.To = c.To, c.From
	}
	c.FromField, c.Entries = forField(c.From.Updated), int(c.To.Seq-c.From.Seq)
	if c.To.Seq < v.Head {
		c.ToField = forField(c.To.Updated)
	}
	return c, err
}

// Compare serves the differences of a map between two times, topic by topic in the order of the store; each page is
// sorted by itself. Without times it shows the changes of the last commit.
func (p *Pages) Compare(w http.ResponseWriter, r *http.Request, v *store.View) error {
	interval, err := span(r, v, func() (history.Moment, error) { return history.BeforeCommit(v, v.Head) })
	if err != nil {
		return err
	}
	c := &v.Collection
	return p.write(w, r, v, "compare", func() (*page, error) {
		d := p.describer(v, r)
		d.around = interval.To.Seq
		made := &page{Title: Say(r, texts.Compared, titleOf(c)), Path: p.Trail(r, c), Of: interval}
		if interval.TooMany = interval.Entries > mostEntries; interval.TooMany {
			return made, nil
		}
		last, left := "", mostBytes
		behind := fragment.Ref(r.URL.Query().Get("behind"))
		for change, err := range history.Differences(r.Context(), v, p.Store.Scratch(), interval.From, interval.To, behind,
			d.languages...) {
			if err != nil {
				return nil, err
			}
			one, err := d.compared(&change, mostOfEach)
			if err != nil {
				return nil, err
			}
			full := one.Fit(left)
			if len(interval.Changes) == mostCompared || full && len(interval.Changes) > 0 {
				q := r.URL.Query()
				q.Set("behind", last)
				interval.Next = "?" + q.Encode()
				break
			}
			last, left = change.TopicSI, left-one.Bytes()
			one.URL = p.URLs.Topic(c, fragment.Ref(change.TopicSI)) + "/compare" + Ending + "?" + interval.query()
			interval.Changes = append(interval.Changes, one)
		}
		slices.SortStableFunc(interval.Changes, func(a, b compared) int { return d.order.text(a.Title, b.Title) })
		return made, nil
	})
}

// query returns the query parameters for the two states.
func (c *comparison) query() string {
	return url.Values{"from": {feeds.FormatTime(c.From.Updated)}, "to": {feeds.FormatTime(c.To.Updated)}}.Encode()
}

// compared describes how a topic differs by the number of statements of each kind. A deleted topic has its former name.
func (d *describer) compared(c *history.Change, most int) (made compared, err error) {
	ref := fragment.Ref(c.TopicSI)
	if made.link, err = d.link(ref); err != nil {
		return made, err
	}
	is, err := d.v.Source().Topic(ref)
	if err != nil {
		return made, err
	}
	if is == nil && c.Title != "" || c.Kind == history.Deleted || c.Kind == history.Moved {
		made.Title = (&store.Entry{Title: c.Title, TopicSI: ref}).Label()
	}
	made.Kind = kinds[c.Kind]
	made.Differences, err = InWords(d.in, ref, c.Added, c.Removed, most, d.link)
	made.Missing = c.Missing
	return made, err
}

// CompareTopic serves the differences of a topic between two times. Without times it shows the topic's last change.
func (p *Pages) CompareTopic(w http.ResponseWriter, r *http.Request, v *store.View) error {
	last, err := server.LastEntry(v, r)
	if err != nil {
		return err
	}
	interval, err := span(r, v, func() (history.Moment, error) { return history.BeforeCommit(v, last.Seq) })
	if err != nil {
		return err
	}
	c, ref := &v.Collection, last.TopicSI
	return p.write(w, r, v, "compare", func() (*page, error) {
		d := p.describer(v, r)
		d.around = interval.To.Seq
		if interval.Topic, err = d.link(ref); err != nil {
			return nil, err
		}
		change, err := history.Difference(r.Context(), v, ref, interval.From, interval.To, d.languages...)
		if err != nil {
			return nil, err
		}
		title := interval.Topic.Title
		if change.Kind != "" {
			one, err := d.compared(&change, most)
			if err != nil {
				return nil, err
			}
			one.Fit(mostBytes)
			title = cmp.Or(one.Title, title)
			interval.Changes = append(interval.Changes, one)
		}
		at := func(m history.Moment) string {
			was, failed := history.Has(v, ref, m)
			if err = cmp.Or(err, failed); !was {
				return ""
			}
			return interval.Topic.URL + "?" + url.Values{"at": {feeds.FormatTime(m.Updated)}}.Encode()
		}
		interval.Before, interval.After = at(interval.From), at(interval.To)
		if err != nil {
			return nil, err
		}
		interval.Restore = p.toRestore(r, c, ref, interval.From)
		return &page{Title: Say(r, texts.Compared, title), Path: p.Trail(r, c, interval.Topic), Of: interval}, nil
	})
}

// toRestore returns the address of the form that restores a topic to a state; "" if the request may not write.
func (p *Pages) toRestore(r *http.Request, c *store.Collection, ref fragment.Ref, m history.Moment) string {
	form := p.toEdit(r, c, p.URLs.Topic(c, ref)+"/restore")
	if form != "" {
		form += "?" + url.Values{"at": {feeds.FormatTime(m.Updated)}}.Encode()
	}
	return form
}
