package pages

import (
	"cmp"
	"errors"
	"html"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/since/position"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
)

// change is an entry of the log.
type change struct {
	link                // to its page
	Topic        string // page of the topic
	SI           address
	Kind         texts.Text
	Updated      time.Time
	Author, Note string
	Then         string // page of the topic after the change; "": the topic was deleted
	Since        string // page of the topic's changes after this one; "": there are none
	Shown        bool   // the page shows the topic as it was after this change
	Forms        []link
}

func (p *Pages) changeOf(in *texts.Language, v *store.View, e *store.Entry, languages ...string) (change, error) {
	if err := v.SetTitle(e, languages...); err != nil {
		return change{}, err
	}
	c := &v.Collection
	to, err := p.linkTo(in, v, e)
	if err != nil {
		return change{}, err
	}
	made := change{
		link: to, Topic: p.URLs.Topic(c, e.Describes()) + Ending, SI: addressOf(string(e.TopicSI)),
		Kind: kinds[history.KindOf(e)], Updated: e.Updated, Author: e.Author, Note: e.Note,
	}
	if e.Lives() {
		made.Then = p.URLs.Topic(c, e.TopicSI) + Ending + "?at=" + feeds.FormatTime(e.Updated)
	}
	made.Forms = append(p.data(p.URLs.Fragment(c, e), "", c.OffersRDF(e.Seq)),
		link{Title: texts.Atom, URL: p.URLs.Fragment(c, e) + ".atom"})
	return made, nil
}

// kinds maps kinds of changes to their texts.
var kinds = map[history.Kind]texts.Text{history.Added: texts.Added, history.Updated: texts.Changed,
	history.Deleted: texts.Deleted, history.Moved: texts.Moved}

// linkTo returns a link to the page of an entry, titled with the topic's name.
func (p *Pages) linkTo(in *texts.Language, v *store.View, e *store.Entry) (l link, err error) {
	l = link{Title: e.Label(), URL: p.URLs.Fragment(&v.Collection, e) + Ending}
	if !e.Named() {
		d := describer{Pages: p, v: v, in: in, around: e.Seq}
		err = d.unnamed(&l, e.TopicSI)
	}
	return l, err
}

// unnamed titles a link to a topic that has no name now: with its label, or the readable part of its identifier.
func (d *describer) unnamed(l *link, ref fragment.Ref) error {
	if !words.IsOpaque(string(ref)) {
		if l.Title, l.Lang = layout.Short(d.in, string(ref)); l.Title != ref.String() {
			l.Whole = layout.Cut(ref.String())
		}
		return nil
	}
	r, err := d.reader()
	if err != nil {
		return err
	}
	title, err := r.Title(ref)
	if l.Title = layout.Cut(title); title == words.Unnamed {
		l.Title = d.in.Say(words.Unnamed)
	}
	return err
}

// otherLanguages returns the reader's languages, where the first one is not that of the map: titles of entries are in
// the latter anyway.
func otherLanguages(r *http.Request, c *store.Collection) titles.Languages {
	all := LanguagesOf(r, c)
	if len(all) == 0 {
		return nil
	}
	first, _, _ := strings.Cut(all[0], "-")
	if own := c.Languages(); len(own) > 0 && (own[0] == first || strings.HasPrefix(own[0], first+"-")) {
		return nil
	}
	return all
}

// kindsAsked are the values of ?kind= by which changes are narrowed, in the order of their links.
var kindsAsked = []texts.Text{texts.Added, texts.Changed, texts.Deleted}

// mostLooked is the number of entries that a page reads to find those of one kind. mostOfChanges is the approximate
// limit of HTML on a page of changes, in bytes.
const (
	mostLooked    = 5_000
	mostOfChanges = 48 << 10
)

// bytes returns the approximate length of a change on a page, in bytes.
func (c *change) bytes() int {
	return 200 + len(c.URL) + len(c.Topic) + len(c.Whole) + len(html.EscapeString(c.Title+c.Author+c.Note))
}

// changes returns the last changes of a kind ("" for all) after one sequence number and up to another, the newest
// first. left is the last sequence number that was not read.
func (p *Pages) changes(r *http.Request, v *store.View, kind texts.Text, behind, upTo uint64) (all []change,
	left uint64, err error) {
	languages, in, bytes := otherLanguages(r, &v.Collection), layout.LanguageOf(r), 0
	full := func() bool { return len(all) == most || bytes > mostOfChanges }
	for looked := 0; upTo > behind && !full() && looked < mostLooked; looked += most {
		from := max(behind, upTo-min(upTo, most))
		var some []store.Entry
		for e, err := range v.Entries(from + 1) {
			if err != nil {
				return nil, 0, err
			}
			if e.Seq > upTo {
				break
			}
			is := kinds[history.KindOf(&e)]
			if kind == "" || is == kind || is == texts.Moved && kind == texts.Changed {
				some = append(some, e)
			}
		}
		for upTo = from; len(some) > 0; some = some[:len(some)-1] {
			e := &some[len(some)-1]
			if full() {
				upTo = e.Seq
				break
			}
			made, err := p.changeOf(in, v, e, languages...)
			if err != nil {
				return nil, 0, err
			}
			all, bytes = append(all, made), bytes+made.bytes()
		}
	}
	return all, upTo, nil
}

// Changes serves a page of changes: the newest ones, or with ?before= those before one. ?since= limits them to changes
// since a time, and ?page= is a position among these (see [position.Parse]); the feed's addresses use both. ?kind= is
// one of [kindsAsked].
func (p *Pages) Changes(w http.ResponseWriter, r *http.Request, v *store.View) error {
	before, err := web.Number(r, "before", v.Head+1)
	if err != nil {
		return err
	}
	asked, err := position.Parse(r.URL.RawQuery)
	if err != nil {
		return err
	}
	kind := texts.Text(r.URL.Query().Get("kind"))
	if kind != "" && !slices.Contains(kindsAsked, kind) {
		return web.Problemf(http.StatusBadRequest, "?kind=%s is no kind of changes: give added, changed or deleted", kind)
	}
	upTo, behind := min(v.Head, before-1), v.Horizon
	var from *time.Time
	if asked != nil {
		from = &asked.From
		if behind, err = history.Before(v, *from); err != nil {
			return err
		}
		if asked.Epoch == v.Epoch {
			behind = max(behind, asked.After)
		}
	}
	c := &v.Collection
	return p.write(w, r, v, "changes", func() (*page, error) {
		all, left, err := p.changes(r, v, kind, behind, upTo)
		older := ""
		if left > behind {
			older = "?" + with(r, "before", strconv.FormatUint(left+1, 10))
		}
		var narrowed []choice
		for _, k := range append([]texts.Text{""}, kindsAsked...) {
			to := path.Base(r.URL.Path)
			if q := with(r, "kind", string(k), "before", ""); q != "" {
				to = "?" + q
			}
			narrowed = append(narrowed, choice{Say(r, cmp.Or(k, texts.AllKinds)), to, k == kind})
		}
		return &page{Title: Say(r, texts.Changes), Path: p.Trail(r, c), Of: struct {
			Changes []change
			Kinds   []choice
			Kind    texts.Text // "": all
			Since   *time.Time // nil: they are all
			Older   string
			Newest  string // "" on the first page
			Pruned  bool   // earlier changes are given up
			Feed    string
		}{all, narrowed, kind, from, older, newestOf(r), older == "" && v.Horizon > 0 && behind == v.Horizon,
			p.URLs.Fragments(c)}}, err
	})
}

// Document leads from the page of an archive document of the feed to the page of its changes.
func (p *Pages) Document(w http.ResponseWriter, r *http.Request, v *store.View) error {
	n, err := strconv.ParseUint(web.Var(r, "n"), 10, 63)
	c := &v.Collection
	if err != nil || n == 0 || n > c.OpenDocument() {
		return web.Problemf(http.StatusNotFound, "the feed has the documents 1 to %d", c.OpenDocument())
	}
	first, size := c.Document(n)
	return p.SeeOther(w, r, p.URLs.Fragments(c)+Ending+"?before="+strconv.FormatUint(first+size, 10))
}

// History leads from the page of a history to that of the changes, or, with ?si=, to that of the topic, which has its
// own.
func (p *Pages) History(w http.ResponseWriter, r *http.Request, v *store.View) error {
	if r.URL.Query().Has("si") {
		return p.Find(w, r, v)
	}
	to, given := p.URLs.Fragments(&v.Collection)+Ending, url.Values{}
	for _, name := range []string{"before", "since"} {
		if value := r.URL.Query().Get(name); value != "" {
			given.Set(name, value)
		}
	}
	if len(given) > 0 {
		to += "?" + given.Encode()
	}
	return p.SeeOther(w, r, to)
}

// newestOf leads from a page of older changes to the first one.
func newestOf(r *http.Request) string {
	q := r.URL.Query()
	if !q.Has("before") && !q.Has("since") && !q.Has("page") {
		return ""
	}
	if kept := with(r, "before", "", "since", "", "page", ""); kept != "" {
		return "?" + kept
	}
	return path.Base(r.URL.Path)
}

// Change answers with the page of a change.
func (p *Pages) Change(w http.ResponseWriter, r *http.Request, v *store.View) error {
	id, err := uuid.Parse(web.Var(r, "id"))
	if err != nil {
		return web.Problemf(http.StatusNotFound, "there is no such change")
	}
	e, err := v.EntryOf(id)
	if err != nil {
		return err
	}
	c := &v.Collection
	return p.write(w, r, v, "change", func() (*page, error) {
		words, err := p.whatChanged(r, v, e)
		if err != nil {
			return nil, err
		}
		made, err := p.changeOf(layout.LanguageOf(r), v, e, otherLanguages(r, c)...)
		if err != nil {
			return nil, err
		}
		data := struct {
			change
			Differences
			Commit, TakeBack, Undo string // pages of the commit, the form to restore, that to undo; "": none
		}{change: made, Differences: words}
		before, err := history.BeforeCommit(v, e.Seq)
		if err == nil {
			var after history.Moment
			after, err = history.AfterCommit(v, e.Seq)
			data.Commit = p.URLs.Map(c) + "/compare" + Ending + "?" + (&comparison{From: before, To: after}).query()
			data.Undo = p.toEdit(r, c, p.URLs.Fragment(c, e)+"/undo")
			if data.TakeBack = p.toRestore(r, c, e.TopicSI, before); before.Seq == 0 {
				data.TakeBack = "" // there was no map yet
			}
		}
		if errors.Is(err, store.ErrGone) {
			err = nil
		}
		all := link{Title: Say(r, texts.Changes), URL: p.URLs.Fragments(c) + Ending}
		return &page{Title: made.Title, Path: p.Trail(r, c, all), Of: data}, err
	})
}
