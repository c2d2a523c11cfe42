package pages

import (
	"errors"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
)

// commit is a commit as the page of a map shows it.
type commit struct {
	Updated      time.Time
	Author, Note string
	Counts       []counted // of changes, by their kinds
	Topics       []link    // where they are few
	Look, Undo   string    // page of the changes, and the form that takes them back; "": the reader may not
}

type counted struct {
	Count int
	What  texts.Text
}

// The limits of the list of the newest commits on the page of a map.
const (
	mostCommits = 10
	mostCounted = 500 // entries of one commit that are counted by kind
	fewTopics   = 3   // of a commit that are named
)

// month has the commits of one.
type month struct {
	Title   string
	Commits []commit
}

// months returns the newest commits by their months, the newest first.
func (p *Pages) months(r *http.Request, v *store.View) (all []month, err error) {
	commits, err := p.commits(r, v)
	for _, c := range commits {
		title := layout.LanguageOf(r).Date(texts.AMonthOfAYear, c.Updated)
		if len(all) == 0 || all[len(all)-1].Title != title {
			all = append(all, month{Title: title})
		}
		last := &all[len(all)-1]
		last.Commits = append(last.Commits, c)
	}
	return all, err
}

// commits returns the newest commits, the newest first.
func (p *Pages) commits(r *http.Request, v *store.View) (all []commit, err error) {
	for upTo := v.Head; upTo > v.Horizon && len(all) < mostCommits; {
		window := max(v.Horizon, upTo-min(upTo, mostCounted))
		var entries []store.Entry
		for e, err := range v.Entries(window + 1) {
			if err != nil {
				return nil, err
			}
			if e.Seq > upTo {
				break
			}
			entries = append(entries, e)
		}
		if err := v.SetCommits(entries); err != nil {
			return nil, err
		}
		for end := len(entries); end > 0 && len(all) < mostCommits; {
			first := end - 1
			for first > 0 && entries[first-1].Commit == entries[end-1].Commit {
				first--
			}
			before := history.Moment{Seq: window + uint64(first)}
			if first > 0 {
				before.Updated = entries[first-1].Updated
			} else if window == 0 {
				before.Updated = v.Created
			} else if before, err = history.BeforeCommit(v, entries[0].Seq); err != nil {
				if errors.Is(err, store.ErrGone) { // the log is pruned within it
					err = nil
				}
				return all, err
			}
			made, err := p.commit(r, v, before, entries[first:end])
			if err != nil {
				return nil, err
			}
			all, end, upTo = append(all, made), first, before.Seq
		}
	}
	return all, nil
}

// commit describes a commit by its last entries, which may be all.
func (p *Pages) commit(r *http.Request, v *store.View, before history.Moment, entries []store.Entry) (commit, error) {
	c, last := &v.Collection, &entries[len(entries)-1]
	after := history.Moment{Seq: last.Seq, Updated: last.Updated}
	made := commit{Updated: last.Updated, Author: last.Author, Note: last.Note,
		Look: p.URLs.Map(c) + "/compare" + Ending + "?" + (&comparison{From: before, To: after}).query(),
		Undo: p.toEdit(r, c, p.URLs.Fragment(c, last)+"/undo")}
	if n := int(last.Seq - before.Seq); n > len(entries) {
		if made.Counts = []counted{{n, texts.ChangesOf}}; before.Seq == 0 { // all are new
			made.Counts[0].What = texts.Added
		}
		return made, nil
	}
	counts, languages, in := map[history.Kind]int{}, otherLanguages(r, c), layout.LanguageOf(r)
	for i := range entries {
		e := &entries[i]
		counts[history.KindOf(e)]++
		if len(entries) > fewTopics {
			continue
		}
		if err := v.SetTitle(e, languages...); err != nil {
			return made, err
		}
		l, err := p.linkTo(in, v, e)
		if err != nil {
			return made, err
		}
		made.Topics = append(made.Topics, l)
	}
	for _, kind := range []history.Kind{history.Added, history.Updated, history.Deleted, history.Moved} {
		if n := counts[kind]; n > 0 {
			made.Counts = append(made.Counts, counted{n, kinds[kind]})
		}
	}
	return made, nil
}
