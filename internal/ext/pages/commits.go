package pages

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
)

// commit is what was published at once, as the page of a map shows it.
type commit struct {
	Updated      time.Time
	Author, Note string
	Counts       []counted // of changes, by their kinds
	Topics       []link    // where they are few
	Look, Undo   string    // page of what has changed, and the form that takes it back; "": who asks may not
}

type counted struct {
	Count int
	What  string
}

// The limits of what the page of a map says of the newest commits.
const (
	mostCommits = 10
	mostCounted = 500 // entries of all of them that are told apart
	fewTopics   = 3   // of a commit that are named
)

// commits returns the newest commits, the newest first, as far as the newest entries tell of them.
func (p *Pages) commits(r *http.Request, v *store.View) (all []commit, err error) {
	window := max(v.Horizon, v.Head-min(v.Head, mostCounted))
	var entries []store.Entry
	for e, err := range v.Entries(window + 1) {
		if err != nil {
			return nil, err
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
		all, end = append(all, made), first
	}
	return all, nil
}

// commit tells of a commit by its last entries, which may be all.
func (p *Pages) commit(r *http.Request, v *store.View, before history.Moment, entries []store.Entry) (commit, error) {
	c, last := &v.Collection, &entries[len(entries)-1]
	after := history.Moment{Seq: last.Seq, Updated: last.Updated}
	made := commit{Updated: last.Updated, Author: last.Author, Note: last.Note,
		Look: p.URLs.Map(c) + "/compare" + Ending + "?" + (&comparison{From: before, To: after}).query(),
		Undo: p.toEdit(r, c, p.URLs.Fragment(c, last)+"/undo")}
	if n := int(last.Seq - before.Seq); n > len(entries) {
		made.Counts = []counted{{n, texts.ChangesOf}}
		return made, nil
	}
	kinds := map[string]int{}
	for i := range entries {
		e := &entries[i]
		kinds[kindOfEntry(e)]++
		if len(entries) > fewTopics {
			continue
		}
		if err := v.SetTitle(e, otherLanguages(r, c)...); err != nil {
			return made, err
		}
		l, err := p.linkTo(v, e)
		if err != nil {
			return made, err
		}
		made.Topics = append(made.Topics, l)
	}
	for _, kind := range []string{texts.Added, texts.Changed, texts.Deleted, texts.Moved} {
		if n := kinds[kind]; n > 0 {
			made.Counts = append(made.Counts, counted{n, kind})
		}
	}
	return made, nil
}

// inLanguage says how many topics have names in a language.
type inLanguage struct {
	Title, URL   string
	Count, Fewer int    // than in the language of most
	Without      string // page of those that lack a name in it; "": it is the language of most, or none
}

// mostListed is how many names the page of a map counts.
const mostListed = 200_000

// languagesOf returns in which languages topics have names, of which the tags are given. There are none where a map
// has no languages, or too many names to be counted for a page.
func (p *Pages) languagesOf(v *store.View, tags []string) (all []inLanguage, err error) {
	if len(tags) < 2 || len(tags)*v.Topics > mostListed {
		return nil, nil
	}
	most, mostIn := 0, ""
	for _, tag := range tags {
		of := inLanguage{Title: cmp.Or(titleOfLanguage(tag), texts.NoLanguage),
			URL: p.URLs.Map(&v.Collection) + "/index" + Ending + "?in=" + tag}
		for _, err := range words.Listed(v.State(), tag) {
			if err != nil {
				return nil, err
			}
			of.Count++
		}
		if of.Count > most && tag != "" {
			most, mostIn = of.Count, tag
		}
		all = append(all, of)
	}
	for i := range all {
		if all[i].Fewer = most - all[i].Count; tags[i] != "" && all[i].Fewer > 0 {
			all[i].Without = p.URLs.Map(&v.Collection) + "/index" + Ending + "?in=" + mostIn + "&without=" + tags[i]
		}
	}
	return all, nil
}
