package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// topicAt answers with the page of what a topic was at a time. Topics that it mentions are called what they are called
// now.
func (p *Pages) topicAt(w http.ResponseWriter, r *http.Request, v *store.View, last *store.Entry, at string) error {
	t, err := history.ParseTime(strings.TrimSuffix(strings.TrimSpace(at), " UTC")) // as pages show times
	if err != nil {
		return web.Problemf(http.StatusBadRequest, "?at= cannot be read: %s", err)
	}
	moment, err := history.Asked(v, t, time.Now())
	if err != nil {
		return err
	}
	var moved *history.MovedError
	was, err := history.Was(v, last.TopicSI, moment)
	if errors.As(err, &moved) {
		return SeeOther(w, r, p.URLs.Topic(&v.Collection, moved.Topic)+Ending+"?at="+url.QueryEscape(at))
	}
	if err != nil {
		return err
	}
	c, now := &v.Collection, p.URLs.Topic(&v.Collection, last.TopicSI)+Ending
	if was == nil {
		return web.Problemf(http.StatusNotFound, "no topic of %s was %s at %s; what became of it is at %s", v.Name,
			last.TopicSI, feeds.FormatTime(t), now)
	}
	src := &merge.Memory{}
	if err := merge.Apply(src, was); err != nil {
		return err
	}
	d := p.describer(v, r)
	d.past, d.around = src, moment.Seq
	if err := d.asked(r); err != nil {
		return err
	}
	return p.write(w, r, c, "topic", func() (*page, error) {
		of, err := d.topic(was.Topic)
		if err != nil {
			return nil, err
		}
		self := link{Title: Called(was.Topic, d.languages...), URL: now}
		if !named(was.Topic) {
			if err := d.unnamed(&self, last.TopicSI); err != nil {
				return nil, err
			}
		}
		of.At, of.Now, of.Picture, of.When = &t, now, pictureOf(self.Title, of), forField(t)
		of.History, err = p.history(v, last)
		markShown(of.History, t)
		return &page{Title: self.Title, Path: p.Trail(c, self), Of: of}, err
	})
}

// markShown marks the change of a history, the newest first, that made the topic what it was at a time.
func markShown(history []change, t time.Time) {
	if i := slices.IndexFunc(history, func(c change) bool { return !c.Updated.After(t) }); i >= 0 {
		history[i].Shown = true
	}
}

// PastStatement is what a change has changed, in words.
type PastStatement struct {
	Added, Removed []Statement
	Missing        string // why that is not known
}

// InWords prepares what a change has changed for a page, so many statements of each. Topics are called as the function
// says.
func InWords(added, removed []mapdiff.Statement, most int,
	name func(fragment.Ref) (Link, error)) (said PastStatement, err error) {
	if said.Added, err = Statements(added[:min(len(added), most)], name); err == nil {
		said.Removed, err = Statements(removed[:min(len(removed), most)], name)
	}
	return said, err
}

// whatChanged compares what a topic was before an entry with what it was after it.
func (p *Pages) whatChanged(r *http.Request, v *store.View, e *store.Entry) (of PastStatement, err error) {
	list, err := history.Changes(r.Context(), v,
		history.Query{TopicSI: e.TopicSI, Before: e.Seq + 1, Limit: 1, Words: true})
	if err != nil || len(list.Changes) == 0 {
		return of, err
	}
	c := &list.Changes[0]
	d := p.describer(v, r)
	d.around = e.Seq
	of, err = InWords(c.Added, c.Removed, most, d.link)
	of.Missing = c.Missing
	return of, err
}
