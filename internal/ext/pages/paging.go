package pages

import (
	"encoding/hex"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// A page of a topic has the first page of each of its lists. A further page has one list: ?list= names it, and ?page=
// is the number. mostSorted rows of a list read from the store are sorted together; addresses of later rows contain the
// key of the row before them.
const mostSorted = 10_000

// The lists of a topic. Blocks of associations have names of their own ([associations]).
const (
	typesList       = "types"
	namesList       = "names"
	occurrencesList = "occurrences"
	reifiesList     = "about"
	instancesList   = "instances"
	historyList     = "history"
	kindsList       = "kinds" // of associations: the first page of each
)

// ofTopic are the lists that are made of no associations.
var ofTopic = []string{namesList, occurrencesList, reifiesList, historyList}

// pager holds the links between the pages of a list. An address is "" if there is no such page, or it is this one.
type pager struct {
	What                        string // is listed; "": the page has one list alone
	Number, Pages               int
	From, To, Of                int
	First, Previous, Next, Last string
}

// pagerOf returns the links from a page of a list of so many items: to returns the address of the page with a number.
func pagerOf(number, size, total int, to func(number int) string) *pager {
	p := &pager{Number: number, Pages: (total + size - 1) / size, From: (number-1)*size + 1, To: min(number*size, total),
		Of: total}
	if number > 1 {
		p.First, p.Previous = to(1), to(number-1)
	}
	if number < p.Pages {
		p.Next, p.Last = to(number+1), to(p.Pages)
	}
	return p
}

// pageNumber returns the number of the requested page of a list.
func pageNumber(r *http.Request) (int, error) {
	number, err := web.Number(r, "page", 1)
	return int(min(number, 1<<30)), err
}

// place is the requested part of a topic: all lists, or one.
type place struct {
	at   string // of which time, as the request has it
	list string // "": all lists
	page int    // of the list
	size int    // rows of a list at most

	rows   fragment.Part            // the part whose rows are shown
	after  *fragment.AssociationKey // the row before the first one shown; nil: rows are shown from the start
	before uint64                   // the history begins before this entry; 0: with the newest one
	found  bool                     // the requested part exists
}

// asked reads the requested part of a topic from a request.
func (d *describer) asked(r *http.Request) error {
	q := r.URL.Query()
	page, err := pageNumber(r)
	if err != nil {
		return err
	}
	size, err := web.Number(r, "size", most)
	if err != nil {
		return err
	}
	d.place = place{at: q.Get("at"), list: q.Get("list"), page: page, size: most}
	if slices.Contains(sizes, int(size)) {
		d.size = int(size)
	}
	if d.before, err = web.Number(r, historyList, 0); err != nil {
		return err
	}
	for part, what := range parts {
		given := q.Get(what)
		if given == "" {
			continue
		}
		var key fragment.AssociationKey
		if n, err := hex.Decode(key[:], []byte(given[:min(len(given), 2*len(key))])); err != nil || n != len(key) {
			return web.Problemf(http.StatusBadRequest, "?%s= names no association: follow the links of the page", what)
		}
		d.rows, d.after = fragment.Part(part), &key
	}
	return nil
}

// first reports whether a request asks for the first page of a topic, which has a page of each list.
func (p *place) first() bool { return p.list == "" && p.after == nil && p.before == 0 }

// shows reports whether a list is on the page.
func (p *place) shows(list string) bool {
	switch {
	case p.list == kindsList:
		return list == kindsList || !slices.Contains(ofTopic, list) && list != typesList && list != instancesList
	case p.list != "":
		return p.list == list
	case p.before > 0:
		return list == historyList
	case p.after != nil:
		return !slices.Contains(ofTopic, list)
	}
	return true
}

// reads reports whether the page needs the associations of a part of the topic.
func (p *place) reads(part fragment.Part) bool {
	switch {
	case p.before > 0 || slices.Contains(ofTopic, p.list):
		return false
	case p.after != nil:
		return p.rows == part
	case p.list == typesList:
		return part == fragment.AsInstance
	case p.list == instancesList:
		return part == fragment.AsType
	}
	return p.list == "" || part == fragment.AsPlayer
}

// query returns the query of another page: that of the list from the same row on, where it is not the first one.
func (p *place) query(list string, page int) string {
	q := url.Values{}
	if p.after != nil {
		q.Set(parts[p.rows], hex.EncodeToString(p.after[:]))
	}
	if p.before > 0 {
		q.Set(historyList, strconv.FormatUint(p.before, 10))
	}
	if page > 1 {
		q.Set("list", list)
		q.Set("page", strconv.Itoa(page))
		if p.size < most {
			q.Set("size", strconv.Itoa(p.size))
		}
	}
	return p.with(q)
}

// with returns a query at the time of the page.
func (p *place) with(q url.Values) string {
	if p.at != "" {
		q.Set("at", p.at)
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// pageOf returns the shown page of a list, and its pager; nil if the list has one page.
func pageOf[T any](d *describer, list, what string, size int, all []T) ([]T, *pager) {
	if len(all) == 0 || !d.shows(list) {
		return nil, nil
	}
	d.found = true
	if size = min(size, d.size); len(all) <= size {
		return all, nil
	}
	number := 1
	if d.list == list {
		number = min(d.page, (len(all)+size-1)/size)
	}
	p := pagerOf(number, size, len(all), func(n int) string { return d.self + d.query(list, n) })
	p.What = what
	return all[p.From-1 : p.To], p
}

// sizes are the numbers of rows that lists of a topic may have, so that the page is not too long. Each is a multiple of
// the next.
var sizes = []int{most, 50, 10, 5, 1}

// fitting rebuilds a page of a topic with fewer rows in each list until it is short enough.
func (d *describer) fitting(r *http.Request, build func() (*page, error)) func() (*page, error) {
	return func() (*page, error) {
		made, err := build()
		if i := slices.Index(sizes, d.size) + 1; err == nil && i < len(sizes) {
			made.Less = func() (*page, error) {
				first := (d.page - 1) * d.size
				if err := d.asked(r); err != nil {
					return nil, err
				}
				d.size, d.page, d.labelled = sizes[i], first/sizes[i]+1, nil
				return d.fitting(r, build)()
			}
		}
		return made, err
	}
}

// missing returns the error for a request for a part that the topic does not have.
func (p *place) missing() error {
	if p.first() || p.found {
		return nil
	}
	return web.Problemf(http.StatusNotFound,
		"the topic has nothing on this page of its lists: its first page leads to those that there are")
}

// window iterates over the associations of a part of a topic, [mostSorted] at most. The remaining rows have their own
// address.
func (d *describer) window(described *topic, part fragment.Part,
	self fragment.Ref) iter.Seq2[*fragment.Association, error] {
	return func(yield func(*fragment.Association, error) bool) {
		if !d.reads(part) {
			return
		}
		n, last := 0, fragment.AssociationKey{}
		for a, err := range d.expected(d.associations(self, part, d.after)) {
			if n == mostSorted {
				described.Next = append(described.Next, link{Title: d.in.Say(partTitles[part]),
					URL: d.self + d.with(url.Values{parts[part]: {hex.EncodeToString(last[:])}})})
				return
			}
			if err == nil {
				last = a.Key()
			}
			if n++; !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// partTitles are the titles of the parts of a topic.
var partTitles = [...]texts.Text{
	fragment.AsInstance: texts.MoreTypes, fragment.AsPlayer: texts.MoreAssociations, fragment.AsType: texts.MoreInstances,
}

// parts are the query parameters for the rows after a given one.
var parts = [...]string{fragment.AsInstance: "types", fragment.AsPlayer: "associations", fragment.AsType: "instances"}

// history returns the changes of a topic up to an entry, the newest first, as far as they are kept: a page of them.
func (d *describer) history(described *topic, e *store.Entry) ([]change, error) {
	if !d.shows(historyList) {
		return nil, nil
	}
	var all []*store.Entry
	for {
		if d.before == 0 || e.Seq < d.before {
			all = append(all, e)
		}
		if e.Prior <= d.v.Horizon {
			break
		}
		if len(all) == mostSorted {
			described.Next = append(described.Next, link{Title: d.in.Say(texts.MoreHistory),
				URL: d.self + d.with(url.Values{historyList: {strconv.FormatUint(e.Seq, 10)}})})
			break
		}
		var err error
		if e, err = d.v.Entry(e.Prior); err != nil {
			return nil, err
		}
	}
	shown, pages := pageOf(d, historyList, d.in.Say(texts.MoreHistory), newest, all)
	described.Pages[historyList] = pages
	var made []change
	for _, e := range shown {
		c, err := d.changeOf(d.in, d.v, e)
		if err != nil {
			return nil, err
		}
		if d.before > 0 || e != all[0] {
			c.Since = d.URLs.Topic(&d.v.Collection, e.TopicSI) + "/compare" + Ending + "?" +
				url.Values{"from": {feeds.FormatTime(e.Updated)}}.Encode()
		}
		made = append(made, c)
	}
	return made, nil
}
