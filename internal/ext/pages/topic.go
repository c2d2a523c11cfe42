package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// topic is the data of the page of a topic. Lists have [most] items at most, and further pages.
type topic struct {
	Pages map[string]*pager // of lists; nil: the page has all of one
	Whole bool              // the page is the first one of the topic, which has something of each list
	Self  string            // that page

	SubjectIdentifiers []identifying
	SubjectLocators    []identifying
	Types              []typed
	Deprecated         bool        // it is no longer to be used
	Instead            []link      // the topics that replace it
	Stands             []*typeNode // where it stands among others; nil: alone
	Lead               *value      // its description; nil: it has none
	Labels             labelTable
	Names              []name // the others
	Occurrences        []occurrences
	Associations       []associations
	Instances          []typed
	Reifies            []reified    // the statements that it is about
	More               []texts.Text // the lists that have more than any page shows
	Next               []link       // the rows after the first [mostSorted]
	History            []change     // the newest first
	Picture            *picture     // nil: it has no neighbours

	Reject string     // the page on which claims about it can be rejected; "": the reader may not
	Edit   string     // the form to edit it; "": the reader may not
	Add    string     // the form of a narrower concept; "": no concept, or not allowed
	Move   string     // that by which it gets another place; likewise
	At     *time.Time // nil: now
	When   string     // the time of the state that the page shows, for a field of a form
	Now    string     // page of the topic as it is
	Forms  []link
	Graphs []alternate // the topic in RDF
}

// address is a locator, and where it leads to: nowhere, if that is no document of the web.
type address struct{ Locator, URL string }

type identifying struct {
	address
	By []string // the inputs of a derived map that state it; none in other maps, or if secret. So below
}

type typed struct {
	link
	By []string

	ref fragment.Ref
}

type name struct {
	Value    value
	By       []string
	Type     *link // nil: the default one
	Scope    []link
	Variants []variant
	About    *link // the topic that reifies it (ISO 13250-2 §5.1); so below

	label int // index in [kindsOfLabels], counted from 1; 0: no label
}

// kind is the title of the type, and those of the themes.
func (n *name) kind() string {
	kind := ""
	if n.Type != nil {
		kind = n.Type.Title
	}
	for _, theme := range n.Scope {
		kind += " " + theme.Title
	}
	return kind
}

type variant struct {
	Value value
	By    []string
	Scope []link
}

// occurrences are those of a type.
type occurrences struct {
	Type  link
	Items []occurrence
}

type occurrence struct {
	Value    value
	By       []string
	URL      string // where a locator leads to
	Datatype string // "": it adds nothing to the value
	Scope    []link
	About    *link
}

type role struct {
	Type, Player link
	Node         *node // the player, where it has no name

	ref fragment.Ref // the player
}

// value is text of a map. It may be very long.
type value struct {
	Text string
	Lang string // the tag of its language; "": it is not known
	Cut  int    // bytes of the whole; 0: it is the whole
}

func valueOf(text string, scope []fragment.Ref) value {
	v := value{Text: layout.Cut(text)}
	for _, theme := range scope {
		if l, ok := titles.LanguageOf(theme); ok {
			v.Lang = l.String()
			break
		}
	}
	if v.Text != text {
		v.Cut = len(text)
	}
	return v
}

// LastOf returns the last entry of the topic with a key. If there is none, the error is a message for people.
func LastOf(v *store.View, key string) (*store.Entry, error) {
	last, err := v.Last(key)
	if err == nil && last == nil {
		err = web.Problemf(http.StatusNotFound, "there is no topic with the key %s in %s", key, v.Name)
	}
	return last, err
}

// Topic answers with the page of a topic.
func (p *Pages) Topic(w http.ResponseWriter, r *http.Request, v *store.View) error {
	last, err := LastOf(v, web.Var(r, "key"))
	if err != nil {
		return err
	}
	if at := r.URL.Query().Get("at"); at != "" {
		return p.topicAt(w, r, v, last, at)
	}
	c, d := &v.Collection, p.describer(v, r)
	if err := d.expectMarked(last.TopicSI); err != nil {
		return err
	}
	t, err := v.Source().Topic(last.TopicSI)
	if err != nil {
		return err
	}
	if t != nil && t.TopicSI() != last.TopicSI { // it has another TopicSI now
		return p.SeeOther(w, r, p.URLs.Topic(&v.Collection, t.TopicSI())+Ending)
	}
	d.self = p.URLs.Topic(c, last.TopicSI) + Ending
	if err := d.asked(r); err != nil {
		return err
	}
	if t == nil {
		return p.write(w, r, v, "gone", func() (*page, error) {
			described := &topic{Pages: map[string]*pager{}}
			if described.History, err = d.history(described, last); err != nil {
				return nil, err
			}
			named, err := p.linkTo(d.in, v, last)
			return &page{Title: named.Title, Path: p.Trail(r, c), Of: struct {
				SI address
				*topic
			}{addressOf(string(last.TopicSI)), described}}, cmp.Or(err, d.missing())
		})
	}
	reject := ""
	if kindOf(c) == texts.Derived {
		reject = p.sayersAt(r, string(t.TopicSI()))
	}
	write := func(build func() (*page, error)) error { return p.write(w, r, v, "topic", build) }
	if kindOf(c) == texts.Derived {
		write = func(build func() (*page, error)) error { return p.writeDerived(w, r, v, build) }
	}
	return write(d.fitting(r, func() (*page, error) {
		if d.by, err = d.sayersOf(r, t); err != nil {
			return nil, err
		}
		described, err := d.topic(t)
		if err != nil {
			return nil, err
		}
		self, err := d.link(last.TopicSI)
		if err != nil {
			return nil, err
		}
		described.Picture, described.When = pictureOf(self, described), forField(v.Updated)
		described.Reject, described.Edit = reject, p.toEdit(r, c, p.URLs.Topic(c, last.TopicSI)+"/edit")
		described.Add, described.Move = d.toAdd(r, described)
		if described.History, err = d.history(described, last); err != nil {
			return nil, err
		}
		var above []link
		if above, described.Stands, err = d.stands(described, last.TopicSI); err != nil {
			return nil, err
		}
		return &page{Title: self.Title, Self: self, Path: append(p.Trail(r, c), above...), Of: described}, d.missing()
	}))
}

// toAdd returns the addresses of the forms to add a narrower concept and to move the concept; "" if the topic is no
// concept, or the request may not edit it.
func (d *describer) toAdd(r *http.Request, described *topic) (add, move string) {
	c, key := &d.v.Collection, web.Var(r, "key")
	form := d.toEdit(r, c, d.URLs.Map(c)+"/topics/new")
	if form == "" || !described.isConcept() {
		return "", ""
	}
	return form + "?under=" + key, d.URLs.Map(c) + "/topics/" + key + "/move" + Ending
}

// describer describes topics of a view and caches their titles.
type describer struct {
	*Pages
	v         *store.View
	languages titles.Languages
	in        *texts.Language // of the page
	names     fragment.Names  // of the topics as they are
	titles    map[fragment.Ref]link

	by sayers // of the statements of the topic

	nodes  *nodes.Reader // nil: no node was read
	around uint64        // the entry around which nodes are looked for first; 0: they are as they are now

	past *merge.Memory // an earlier state of a topic with its associations; nil: the state of the view

	place             // the part of the topic on the page
	self       string // URL of the page of the topic
	order      order
	properties *sides                // nil: none was read
	labelled   map[fragment.Ref]bool // labels shown as names: true for those without further statements
	replaces   *bool                 // some topics replace others; nil: not known yet
	state      *state                // of the view; nil: not known yet
	anew       map[string]found      // standings that were computed again; nil: cached ones are used
}

func (p *Pages) describer(v *store.View, r *http.Request) *describer {
	languages := LanguagesOf(r, &v.Collection)
	return &describer{Pages: p, v: v, languages: languages, in: layout.LanguageOf(r),
		names:  fragment.Names{In: v.State(), Languages: languages},
		titles: map[fragment.Ref]link{}, order: orderOf(r, &v.Collection)}
}

// LanguagesOf returns the reader's languages, the best first: ?lang=, then Accept-Language, then that of the map.
func LanguagesOf(r *http.Request, c *store.Collection) titles.Languages {
	all := titles.Accepted(r.URL.Query().Get("lang"))
	return slices.Concat(all, titles.Accepted(strings.Join(r.Header.Values("Accept-Language"), ",")), c.Languages())
}

func (d *describer) topic(t *fragment.Topic) (*topic, error) {
	described := &topic{Now: d.URLs.Topic(&d.v.Collection, t.TopicSI()) + Ending, Pages: map[string]*pager{},
		Whole: d.first(), Self: d.self + d.with(url.Values{})}
	for _, l := range t.SubjectIdentifiers {
		if words.IsOpaque(string(l)) {
			continue
		}
		described.SubjectIdentifiers = append(described.SubjectIdentifiers,
			identifying{addressOf(string(l)), d.by[keyOf("si", string(l), "", "", nil)]})
	}
	for _, l := range t.SubjectLocators {
		described.SubjectLocators = append(described.SubjectLocators,
			identifying{addressOf(string(l)), d.by[keyOf("sl", string(l), "", "", nil)]})
	}
	topic, query := d.URLs.Topic(&d.v.Collection, t.TopicSI()), ""
	if d.at != "" {
		query = "?at=" + url.QueryEscape(d.at)
	}
	inRDF := d.past == nil && d.v.InRDF()
	if described.Forms = d.data(topic, query, inRDF); inRDF {
		described.Graphs = d.graphs(topic)
	}
	if d.past == nil {
		changes := d.URLs.Map(&d.v.Collection) + "/history?" + url.Values{"si": {string(t.TopicSI())}}.Encode()
		described.Forms = append(described.Forms, link{Title: texts.Atom, URL: topic + ".atom"},
			link{Title: d.in.Say(texts.JSONChanges), URL: layout.ToData(changes)})
	}
	if d.after == nil && d.before == 0 {
		if err := d.expect(t.Mentions); err != nil {
			return nil, err
		}
		if err := d.statements(described, t); err != nil {
			return nil, err
		}
		if d.past == nil {
			if err := d.reifies(described, t.TopicSI()); err != nil {
				return nil, err
			}
		}
	}
	return described, d.relations(described, t.TopicSI())
}

// statements adds names and occurrences.
func (d *describer) statements(described *topic, t *fragment.Topic) (err error) {
	var names []name
	for i := range t.Names {
		n := &t.Names[i]
		shown := name{Value: valueOf(n.Value, n.Scope), By: d.by[nameKey(n)]}
		if typ := shownType(n.Type); typ != "" {
			l, err := d.link(typ)
			if err != nil {
				return err
			}
			shown.Type, shown.label = &l, slices.Index(kindsOfLabels, typ)+1
		}
		if shown.About, err = d.reifier(n.Reifier); err != nil {
			return err
		}
		themes := n.Scope
		if shown.label > 0 { // the row shows the language
			themes = slices.DeleteFunc(slices.Clone(themes), func(theme fragment.Ref) bool {
				l, ok := titles.LanguageOf(theme)
				return ok && l.String() == shown.Value.Lang
			})
		}
		if shown.Scope, err = d.links(themes); err != nil {
			return err
		}
		for _, variantOf := range atMost(described, texts.MoreVariants, n.Variants) {
			added := slices.DeleteFunc(slices.Clone(variantOf.Scope), func(theme fragment.Ref) bool {
				return slices.Contains(n.Scope, theme)
			})
			scope, err := d.links(added)
			if err != nil {
				return err
			}
			shown.Variants = append(shown.Variants, variant{valueOf(variantOf.Value, variantOf.Scope),
				d.by[variantKey(n, &variantOf)], scope})
		}
		names = append(names, shown)
	}
	labels, err := d.resources(t.TopicSI(), names)
	if err != nil {
		return err
	}
	names = append(names, labels...)
	slices.SortStableFunc(names, func(a, b name) int {
		return cmp.Or(d.byLanguage(&a, &b), d.order.text(a.kind(), b.kind()), d.order.text(a.Value.Text, b.Value.Text))
	})
	names, described.Pages[namesList] = pageOf(d, namesList, d.in.Say(texts.MoreNames), most, names)
	described.Labels, described.Names = d.labels(names)
	return d.occurrences(described, t)
}

// occurrences adds those of one type after the other.
func (d *describer) occurrences(described *topic, t *fragment.Topic) error {
	type ofType struct {
		typ link
		occurrence
	}
	var all []ofType
	lead := d.lead(t)
	described.Deprecated = isDeprecated(t)
	for i, o := range t.Occurrences {
		if i == lead && d.list == "" {
			described.Lead = new(value)
			*described.Lead = valueOf(o.Value, o.Scope)
			continue
		}
		typ, err := d.link(o.Type)
		if err != nil {
			return err
		}
		shown := occurrence{Value: valueOf(o.Value, o.Scope), By: d.by[occurrenceKey(&o)]}
		if o.Datatype == tmdm.XSDAnyURI {
			shown.URL = addressOf(o.Value).URL
		}
		if shown.URL == "" && !words.IsText(o.Datatype) {
			shown.Datatype = o.Datatype
		}
		if shown.Scope, err = d.links(o.Scope); err != nil {
			return err
		}
		if shown.About, err = d.reifier(o.Reifier); err != nil {
			return err
		}
		all = append(all, ofType{typ, shown})
	}
	slices.SortStableFunc(all, func(a, b ofType) int {
		return cmp.Or(d.order(a.typ, b.typ), d.order.text(a.Value.Text, b.Value.Text))
	})
	all, described.Pages[occurrencesList] = pageOf(d, occurrencesList, d.in.Say(texts.MoreOccurrences), most, all)
	for i, o := range all {
		if i == 0 || all[i-1].typ != o.typ {
			described.Occurrences = append(described.Occurrences, occurrences{Type: o.typ})
		}
		group := &described.Occurrences[len(described.Occurrences)-1]
		group.Items = append(group.Items, o.occurrence)
	}
	return nil
}

// leads are the types of occurrences that describe a topic, the best first.
var leads = []fragment.Ref{skos + "definition", "http://purl.org/dc/terms/description",
	"http://purl.org/dc/elements/1.1/description", "http://www.w3.org/2000/01/rdf-schema#comment",
	"https://schema.org/description", "http://schema.org/description"}

// lead returns the index of the occurrence that describes a topic, in the first of the reader's languages that has one;
// -1 if there is none. It skips those with a reifier or with named sources.
func (d *describer) lead(t *fragment.Topic) int {
	best, rank := -1, 0
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		kind := slices.Index(leads, o.Type)
		if kind < 0 || o.Reifier != "" || len(d.by[occurrenceKey(o)]) > 0 || !words.IsText(o.Datatype) {
			continue
		}
		if r := d.rank(valueOf("", o.Scope).Lang)*len(leads) + kind; best < 0 || r < rank {
			best, rank = i, r
		}
	}
	return best
}

// rank returns the place of a language among the reader's.
func (d *describer) rank(tag string) int {
	tag, _, _ = strings.Cut(tag, "-")
	for i, l := range d.languages {
		if primary, _, _ := strings.Cut(l, "-"); tag == primary {
			return i
		}
	}
	return len(d.languages)
}

// shownType returns the type of a name that is shown: not the default one.
func shownType(typ fragment.Ref) fragment.Ref {
	if typ == tmdm.PSIDefaultNameType {
		return ""
	}
	return typ
}

// atMost returns the first [most] items of a list.
func atMost[T any](described *topic, what texts.Text, list []T) []T {
	if len(list) <= most {
		return list
	}
	described.more(what)
	return list[:most]
}

func (t *topic) more(what texts.Text) {
	if !slices.Contains(t.More, what) {
		t.More = append(t.More, what)
	}
}

// expect prefetches the topics that mentions yields, for links to them: see [txn.Tx.Expect].
func (d *describer) expect(mentions func(yield func(fragment.Ref))) error {
	var refs []fragment.Ref
	mentions(func(ref fragment.Ref) {
		if _, known := d.titles[ref]; !known {
			refs = append(refs, ref)
		}
	})
	return d.v.State().ExpectNames(refs)
}

// link leads to the page of the topic that a reference names.
func (d *describer) link(ref fragment.Ref) (link, error) {
	if l, ok := d.titles[ref]; ok {
		return l, nil
	}
	l := link{URL: d.URLs.Topic(&d.v.Collection, ref) + Ending}
	if d.at != "" {
		l.URL += "?at=" + url.QueryEscape(d.at)
	}
	t, err := d.v.Source().Topic(ref)
	if err == nil {
		err = d.call(&l, ref, t, &d.names)
	}
	if t != nil {
		l.Notation, l.Deprecated = notationOf(t), isDeprecated(t)
	}
	d.titles[ref] = l
	return l, err
}

// call gives a link the title of a topic, which is nil if it is not there.
func (d *describer) call(l *link, ref fragment.Ref, t *fragment.Topic, names *fragment.Names) error {
	if t != nil {
		title, language, ok, err := names.Best(t)
		if ok || err != nil {
			l.Title, l.Lang = label(title), language
			return err
		}
	}
	return d.unnamed(l, ref)
}

// reifier returns a link to the topic that reifies a statement; nil if none does.
func (d *describer) reifier(ref fragment.Ref) (*link, error) {
	if ref == "" {
		return nil, nil
	}
	l, err := d.link(ref)
	return &l, err
}

func (d *describer) links(refs []fragment.Ref) (all []link, err error) {
	for _, ref := range refs[:min(len(refs), most)] {
		l, err := d.link(ref)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	if more := len(refs) - len(all); more > 0 {
		all = append(all, link{Title: d.in.Say(texts.AndMore, d.in.Count(more))})
	}
	return all, nil
}
