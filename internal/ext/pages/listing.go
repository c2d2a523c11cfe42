package pages

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	terms "github.com/tmshare/tmshare/internal/words"
)

// listing is the data of the page that lists the topics of a map from A to Z.
type listing struct {
	Languages []choice // in which topics are listed
	Letters   []choice
	Type      *link // the topics are its instances; nil: they are all
	All       string
	Without   string // the language in which the topics have no name; "": they are all
	Topics    []link
	Count     int // of topics under the letter
	Pager     *pager
}

// choice is a link to a page like this one.
type choice struct {
	Title, URL string
	Here       bool // it is this one
}

// mostOfType is the number of instances that a type may have for a listing of its instances alone.
const mostOfType = 10_000

// Listing serves topics from A to Z: those whose names in the language ?in= begin with ?letter=, and that are instances
// of the topic with the key ?type=. Without ?in=, it takes the first of the reader's languages that has a listing.
func (p *Pages) Listing(w http.ResponseWriter, r *http.Request, v *store.View) error {
	number, err := pageNumber(r)
	if err != nil {
		return err
	}
	return p.write(w, r, v, "listing", func() (*page, error) {
		d := p.describer(v, r)
		list := &listing{All: "?" + with(r, "type", "", "without", "", "page", ""),
			Without: d.titleOfLanguage(r.URL.Query().Get("without"))}
		tags, err := words.Languages(v.State())
		if err != nil {
			return nil, listingProblem(err)
		}
		in := d.listedIn(r, list, tags)
		letters, err := words.Letters(v.State(), in)
		if err != nil {
			return nil, err
		}
		letter := ""
		if len(letters) > 0 {
			letter = cmp.Or(r.URL.Query().Get("letter"), letters[0])
		}
		for _, l := range letters {
			list.Letters = append(list.Letters, choice{l, "?" + with(r, "letter", l, "page", ""), l == letter})
		}
		instances, err := d.instancesOf(r, list)
		if err != nil {
			return nil, err
		}
		named, err := d.namedIn(r)
		if err != nil {
			return nil, err
		}
		chosen := func(ref fragment.Ref) bool { return (instances == nil || instances[ref]) && !named[ref] }
		if err := d.under(list, in, letter, chosen, number); err != nil {
			return nil, err
		}
		list.Pager = pagerOf(number, most, list.Count, func(n int) string {
			return "?" + with(r, "page", strconv.Itoa(n))
		})
		title := d.in.Say(texts.Listing)
		if list.Type != nil {
			title = d.in.Say(texts.ListedOf, list.Type.Title)
		}
		return &page{Title: title, Path: p.Trail(r, &v.Collection), Of: list}, nil
	})
}

func listingProblem(err error) error {
	if errors.Is(err, words.ErrLeftBehind) {
		return web.Problemf(http.StatusServiceUnavailable, "%s", err)
	}
	return err
}

// titleOfLanguage returns the name of a language; "" for the empty tag.
func (d *describer) titleOfLanguage(tag string) string { return titleOfLanguage(d.in, tag) }

func titleOfLanguage(in *texts.Language, tag string) string {
	if tag == "" {
		return ""
	}
	word, _ := terms.WordIn(in.Tag, terms.LanguageNamespace+tag)
	return cmp.Or(word, tag)
}

// letters returns links to the letters under which topics are listed, for the page of the map. It returns none if the
// store lacks the index. tags are the languages that have lists.
func (d *describer) letters(r *http.Request, listing string, tags []string) (all []choice, err error) {
	in := d.listedIn(r, nil, tags)
	letters, err := words.Letters(d.v.State(), in)
	for _, l := range letters {
		all = append(all, choice{Title: l, URL: listing + "?" + url.Values{"in": {in}, "letter": {l}}.Encode()})
	}
	return all, err
}

// listedIn returns the language in which to list topics, and adds all to list.Languages unless list is nil.
func (d *describer) listedIn(r *http.Request, list *listing, all []string) (in string) {
	if len(all) == 0 {
		return ""
	}
	query := r.URL.Query()
	in, chosen := query.Get("in"), query.Has("in")
	if !chosen {
		in, chosen = d.languages.Best(all)
	}
	if !chosen {
		in = all[0] // the names without a language, if any
	}
	for _, tag := range all {
		if list == nil {
			break
		}
		list.Languages = append(list.Languages, choice{cmp.Or(d.titleOfLanguage(tag), d.in.Say(texts.NoLanguage)),
			"?" + with(r, "in", tag, layout.Lang, tag, "letter", "", "page", ""), tag == in})
	}
	return in
}

// namedIn returns the topics that have a name in the language ?without=, to be excluded.
func (d *describer) namedIn(r *http.Request) (map[fragment.Ref]bool, error) {
	tag := r.URL.Query().Get("without")
	if tag == "" {
		return nil, nil
	}
	all, labels := map[fragment.Ref]bool{}, labels{d.v, fragment.Names{In: d.v.State()}}
	for ref, err := range words.Listed(d.v.State(), tag) {
		if err == nil {
			ref, _, err = labels.listed(ref, tag)
		}
		if err != nil {
			return nil, err
		}
		all[ref] = true
	}
	return all, nil
}

// labels knows of labels that are resources, and are listed by their texts.
type labels struct {
	v     *store.View
	names fragment.Names
}

// listed returns the topic of an entry in the list of a language: the topic whose label the entry is, or the entry
// itself. ok is false if the list has the topic under a better name: its own, or its preferred label.
func (l *labels) listed(ref fragment.Ref, tag string) (topic fragment.Ref, ok bool, err error) {
	if has, err := l.names.HaveLabels(); !has || err != nil {
		return ref, true, err
	}
	t, err := l.v.State().Topic(ref)
	if t == nil || err != nil {
		return ref, true, err
	}
	for i, property := range words.LabelProperties {
		found, err := words.Labelled(l.v.State(), t, property)
		if err != nil {
			return ref, false, err
		}
		if len(found) == 0 {
			continue
		}
		labelled, err := l.v.State().Topic(found[0])
		if labelled == nil || err != nil {
			return ref, true, err
		}
		_, named := labelled.NameIn(tag)
		return labelled.TopicSI(), i == 0 && !named, nil
	}
	return ref, true, nil
}

// instancesOf returns the instances of the requested type; nil stands for all topics.
func (d *describer) instancesOf(r *http.Request, list *listing) (map[fragment.Ref]bool, error) {
	key := r.URL.Query().Get("type")
	if key == "" {
		return nil, nil
	}
	last, err := LastOf(d.v, key)
	if err != nil {
		return nil, err
	}
	typ, err := d.link(last.TopicSI)
	if err != nil {
		return nil, err
	}
	list.Type = &typ
	instances := map[fragment.Ref]bool{}
	for a, err := range d.v.Source().AssociationsOf(last.TopicSI, fragment.AsType) {
		if err != nil {
			return nil, err
		}
		if _, instance, ok := a.TypeInstance(); ok {
			instances[instance] = true
		}
		if len(instances) > mostOfType {
			return nil, web.Problemf(http.StatusBadRequest,
				"%s has more than %d instances: list all topics, or search for them", typ.Title, mostOfType)
		}
	}
	return instances, nil
}

// under adds one page of the topics under a letter to list, and counts all topics under it.
func (d *describer) under(list *listing, in, letter string, chosen func(fragment.Ref) bool, number int) error {
	var refs, by []fragment.Ref // the topics, and by which topics they are listed
	labels := labels{d.v, fragment.Names{In: d.v.State()}}
	for listed, err := range words.UnderLetter(d.v.State(), in, letter) {
		ref, ok := listed, true
		if err == nil {
			ref, ok, err = labels.listed(listed, in)
		}
		if err != nil {
			return err
		}
		if !ok || !chosen(ref) {
			continue
		}
		if list.Count >= (number-1)*most && len(refs) < most {
			refs, by = append(refs, ref), append(by, listed)
		}
		list.Count++
	}
	if err := d.v.State().ExpectNames(slices.Concat(refs, by)); err != nil {
		return err
	}
	for i, ref := range refs {
		l, err := d.link(ref)
		if err != nil {
			return err
		}
		t, err := d.v.Source().Topic(by[i])
		if err != nil {
			return err
		}
		if name, ok := words.NameIn(t, in); ok {
			l.Title, l.Lang = name, in
		}
		list.Topics = append(list.Topics, l)
	}
	return d.mark(len(refs), func(i int) (fragment.Ref, *link) { return refs[i], &list.Topics[i] })
}

// inLanguage is the number of topics with names in a language.
type inLanguage struct {
	Title, URL   string
	Count, Fewer int    // than in the language of most
	Without      string // page of the topics without a name in it; "": it is the language of most topics, or none
}

// mostListed is the number of names that the page of a map counts. mostLabels is the lower limit for maps whose labels
// are resources, because each of these must be read.
const (
	mostListed = 200_000
	mostLabels = 10_000
)

// languagesOf returns the number of topics that have names in each of the languages with the given tags. It returns
// none if a map has no languages or too many names to count for a page.
func (d *describer) languagesOf(tags []string) (all []inLanguage, err error) {
	most, mostIn, labels, atMost := 0, "", labels{d.v, fragment.Names{In: d.v.State()}}, mostListed
	has, err := labels.names.HaveLabels()
	if has {
		atMost = mostLabels
	}
	if len(tags) < 2 || len(tags)*d.v.Topics > atMost || err != nil {
		return nil, err
	}
	for _, tag := range tags {
		facet := inLanguage{Title: cmp.Or(d.titleOfLanguage(tag), d.in.Say(texts.NoLanguage)),
			URL: d.URLs.Map(&d.v.Collection) + "/index" + Ending + "?" + url.Values{"in": {tag}, layout.Lang: {tag}}.Encode()}
		for ref, err := range words.Listed(d.v.State(), tag) {
			ok := false
			if err == nil {
				_, ok, err = labels.listed(ref, tag)
			}
			if err != nil {
				return nil, err
			}
			if ok {
				facet.Count++
			}
		}
		if facet.Count > most && tag != "" {
			most, mostIn = facet.Count, tag
		}
		all = append(all, facet)
	}
	for i := range all {
		if all[i].Fewer = most - all[i].Count; tags[i] != "" && all[i].Fewer > 0 {
			all[i].Without = d.URLs.Map(&d.v.Collection) + "/index" + Ending + "?in=" + mostIn + "&without=" + tags[i]
		}
	}
	return all, nil
}

// with returns the query of a request with some parameters replaced; pairs holds names and values. An empty value
// removes the parameter, except that of a language, which may be empty.
func with(r *http.Request, pairs ...string) string {
	q := r.URL.Query()
	for i := 0; i < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" && pairs[i] != "in" {
			q.Del(pairs[i])
		}
	}
	return q.Encode()
}
