package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/merge"
)

// MomentAt returns the state at a time that a parameter of a request gives, as pages show times or fields have them.
func MomentAt(v *store.View, parameter, text string) (m history.Moment, t time.Time, err error) {
	if t, err = history.ParseTime(strings.TrimSuffix(strings.TrimSpace(text), " UTC")); err != nil {
		return m, t, web.Problemf(http.StatusBadRequest, "?%s= cannot be read: %s", parameter, err)
	}
	m, err = history.Asked(v, t, time.Now())
	return m, t, err
}

// topicAt serves the page of a topic in its state at a time. Topics that it mentions have their present names.
func (p *Pages) topicAt(w http.ResponseWriter, r *http.Request, v *store.View, last *store.Entry, at string) error {
	moment, t, err := MomentAt(v, "at", at)
	if err != nil {
		return err
	}
	var moved *history.MovedError
	was, err := history.Was(v, last.TopicSI, moment)
	if errors.As(err, &moved) {
		return p.SeeOther(w, r, p.URLs.Topic(&v.Collection, moved.Topic)+Ending+"?at="+url.QueryEscape(at))
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
	then, err := v.Past(moment.Seq)
	if err != nil {
		return err
	}
	d := p.describer(v, r)
	d.past, d.around, d.self = src, moment.Seq, now
	names := fragment.Names{In: then, Languages: d.languages}
	if err := d.asked(r); err != nil {
		return err
	}
	return p.write(w, r, v, "topic", d.fitting(r, func() (*page, error) {
		earlier, err := d.topic(was.Topic)
		if err != nil {
			return nil, err
		}
		self := link{URL: now}
		if err := d.call(&self, last.TopicSI, was.Topic, &names); err != nil {
			return nil, err
		}
		earlier.At, earlier.Now, earlier.Picture, earlier.When = &t, now, pictureOf(self, earlier), forField(t)
		if earlier.History, err = d.history(earlier, last); err != nil {
			return nil, err
		}
		markShown(earlier.History, t)
		return &page{Title: self.Title, Self: self, Path: p.Trail(r, c, self), Of: earlier}, d.missing()
	}))
}

// markShown marks the change that led to the topic's state at a time; history is sorted from the newest.
func markShown(history []change, t time.Time) {
	if i := slices.IndexFunc(history, func(c change) bool { return !c.Updated.After(t) }); i >= 0 {
		history[i].Shown = true
	}
}

// Differences holds the statements that a change added and removed, prepared for a page.
type Differences struct {
	Turned         []Statement // of which only values have changed: with those of before
	Added, Removed []Statement
	More           int    // statements that are not listed
	Missing        string // why the differences are not known
}

// Bytes returns the approximate length of the differences in HTML, in bytes.
func (d *Differences) Bytes() (n int) {
	for _, s := range slices.Concat(d.Turned, d.Added, d.Removed) {
		n += s.bytes()
	}
	return n
}

// Fit removes the statements after the given number of bytes of HTML, and reports whether there were any.
func (d *Differences) Fit(bytes int) (full bool) {
	for _, list := range []*[]Statement{&d.Turned, &d.Added, &d.Removed} {
		kept := 0
		for kept < len(*list) && bytes >= (*list)[kept].bytes() {
			bytes -= (*list)[kept].bytes()
			kept++
		}
		if left := len(*list) - kept; left > 0 {
			d.More, bytes, full, *list = d.More+left, 0, true, (*list)[:kept]
		}
	}
	return full
}

// InWords prepares the changes of a topic for a page: at most a number of statements of each kind. A function returns
// the titles of topics.
func InWords(in *texts.Language, self fragment.Ref, added, removed []mapdiff.Statement, most int,
	name func(fragment.Ref) (Link, error)) (d Differences, err error) {
	pairs, added, removed := pair(added, removed)
	cut := func(list []mapdiff.Statement) []mapdiff.Statement {
		list = distinct(self, list)
		d.More += max(len(list)-most, 0)
		return list[:min(len(list), most)]
	}
	for _, p := range pairs[:min(len(pairs), most)] {
		both, err := Statements(in, self, []mapdiff.Statement{p.is, p.was}, name)
		if err != nil {
			return d, err
		}
		if len(both) == 2 {
			d.Turned = append(d.Turned, both[0].since(both[1]))
		}
	}
	d.More += max(len(pairs)-most, 0)
	if d.Added, err = Statements(in, self, cut(added), name); err == nil {
		d.Removed, err = Statements(in, self, cut(removed), name)
	}
	return d, err
}

// turned is a statement in which only values have changed.
type turned struct{ was, is mapdiff.Statement }

// pair finds the statements that only differ in their values, where it is certain which has become which: one of each
// side is of that kind, type and scope.
func pair(added, removed []mapdiff.Statement) (pairs []turned, come, gone []mapdiff.Statement) {
	same := map[string]*[2][]int{}
	var all [2][]*[2][]int // the statements of one kind
	for side, list := range [2][]mapdiff.Statement{added, removed} {
		for i := range list {
			key := withoutValues(&list[i])
			if same[key] == nil {
				same[key] = &[2][]int{}
			}
			same[key][side] = append(same[key][side], i)
			all[side] = append(all[side], same[key])
		}
	}
	paired := func(s *mapdiff.Statement, both *[2][]int) bool {
		return len(both[0]) == 1 && len(both[1]) == 1 && hasValue(s)
	}
	for i, both := range all[0] {
		if paired(&added[i], both) {
			pairs = append(pairs, turned{removed[both[1][0]], added[i]})
		} else {
			come = append(come, added[i])
		}
	}
	for i, both := range all[1] {
		if !paired(&removed[i], both) {
			gone = append(gone, removed[i])
		}
	}
	return pairs, come, gone
}

func hasValue(s *mapdiff.Statement) bool {
	return slices.ContainsFunc(s.Parts, func(p mapdiff.Part) bool { return p.Kind == mapdiff.Value })
}

// withoutValues returns a key that is equal for statements that differ in values only.
func withoutValues(s *mapdiff.Statement) string {
	var b strings.Builder
	b.WriteString(string(s.Kind))
	for _, p := range s.Parts {
		fmt.Fprintf(&b, "\x00%v\x00%s", p.Kind, p.Identifier)
		if p.Kind != mapdiff.Value {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// whatChanged returns the differences between a topic before an entry and after it.
func (p *Pages) whatChanged(r *http.Request, v *store.View, e *store.Entry) (made Differences, err error) {
	list, err := history.Changes(r.Context(), v,
		history.Query{TopicSI: e.TopicSI, Before: e.Seq + 1, Limit: 1, Words: true, Languages: LanguagesOf(r, &v.Collection)})
	if err != nil || len(list.Changes) == 0 {
		return made, err
	}
	c := &list.Changes[0]
	d := p.describer(v, r)
	d.around = e.Seq
	made, err = InWords(d.in, fragment.Ref(c.TopicSI), c.Added, c.Removed, most, d.link)
	made.Fit(mostBytes)
	made.Missing = c.Missing
	return made, err
}
