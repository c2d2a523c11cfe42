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
	mostCounted = 2000 // entries of all of them that are told apart
	fewTopics   = 3    // of a commit that are named
)

// commits returns the newest commits, the newest first.
func (p *Pages) commits(r *http.Request, v *store.View) (all []commit, err error) {
	c, left := &v.Collection, mostCounted
	for seq := v.Head; seq > v.Horizon && len(all) < mostCommits; {
		before, err := history.BeforeCommit(v, seq)
		if errors.Is(err, store.ErrGone) { // the log is pruned within it
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		last, err := v.Entry(seq)
		if err != nil {
			return nil, err
		}
		made := commit{Updated: last.Updated, Author: last.Author, Note: last.Note,
			Undo: p.toEdit(r, c, p.URLs.Fragment(c, last)+"/undo")}
		made.Look = p.URLs.Map(c) + "/compare" + Ending + "?" +
			(&comparison{From: before, To: history.Moment{Seq: seq, Updated: last.Updated}}).query()
		n := int(seq - before.Seq)
		if left -= n; left < 0 {
			made.Counts = []counted{{n, texts.ChangesOf}}
		} else if err := p.count(v, &made, before.Seq, seq); err != nil {
			return nil, err
		}
		all = append(all, made)
		seq = before.Seq
	}
	return all, nil
}

// count counts the entries of a commit by what they are, and names the topics where they are few.
func (p *Pages) count(v *store.View, made *commit, behind, upTo uint64) error {
	kinds := map[string]int{}
	for e, err := range v.Entries(behind + 1) {
		if err != nil {
			return err
		}
		if e.Seq > upTo {
			break
		}
		kinds[kindOfEntry(&e)]++
		if upTo-behind > fewTopics {
			continue
		}
		if err := v.SetTitle(&e); err != nil {
			return err
		}
		l, err := p.linkTo(v, &e)
		if err != nil {
			return err
		}
		made.Topics = append(made.Topics, l)
	}
	for _, kind := range []string{texts.Added, texts.Changed, texts.Deleted, texts.Moved} {
		if n := kinds[kind]; n > 0 {
			made.Counts = append(made.Counts, counted{n, kind})
		}
	}
	return nil
}

// inLanguage says how many topics have names in a language.
type inLanguage struct {
	Title, URL   string
	Count, Fewer int    // than in the language of most
	Without      string // page of those that lack a name in it; "": it is the language of most, or none
}

// mostListed is how many names the page of a map counts.
const mostListed = 200_000

// languagesOf returns in which languages topics have names, the one of most first. There are none where a map has no
// languages, or too many names to be counted for a page.
func (p *Pages) languagesOf(v *store.View) (all []inLanguage, err error) {
	tags, err := words.Languages(v.State())
	if err != nil || len(tags) < 2 || len(tags)*v.Topics > mostListed {
		return nil, withoutIndex(err)
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

// withoutIndex passes over the error that there is no index.
func withoutIndex(err error) error {
	if errors.Is(err, words.ErrLeftBehind) {
		return nil
	}
	return err
}
