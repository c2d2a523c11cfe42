package nodepages

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// TopicPath is the address of the pages of topics, which take ?si=, relative to the Root of the site.
const TopicPath = "/topic.html"

// Topics shows topics of the merged map of a node with the sources of each statement, and handles the forms that reject
// statements of sources.
type Topics struct {
	folder
	site *Site // its Token proves that a form is of its pages
}

// NewTopics returns the pages of topics of the data folder that commands work on, as a part of a site, which leads to
// them.
func NewTopics(run Run, site *Site) *Topics {
	site.Find = site.Root + TopicPath
	return &Topics{folder{run, make(chan struct{}, maxCommands)}, site}
}

// Add adds the pages to routes. Requests with forms must have their PostForm parsed.
func (p *Topics) Add(routes *http.ServeMux) {
	routes.HandleFunc("GET "+TopicPath, p.site.Shown(p.page))
	routes.HandleFunc("POST "+TopicPath, p.site.Shown(p.reject))
}

var topicTemplate = layout.Parse("ui/topic.html")

// topic is the data of its page.
type topic struct {
	Identifiers, Locators, Names, Occurrences []stated
	Types, Associations, Rejected             []stated
	More                                      []texts.Text // the lists that have more items than the page shows
	Instances                                 string       // the same page with them
	Done, Undone                              bool
	Find                                      string
}

// stated is a statement of sources.
type stated struct {
	Text     string
	To       string // page of the topic, or document, that it leads to
	Cut      int    // bytes of the whole text; 0: it is the whole
	Of       string // the name that a variant is of
	Datatype string
	Type     *layout.Link
	Scope    []layout.Link
	Roles    []role
	By       []string

	// Of the forms.
	Claim             claim    // of no source
	Sources           []string // of which it can be rejected
	SI, Token, Action string

	Reason   string // why it is rejected
	Unstated bool   // the source does not state it any more
}

type role struct{ Type, Player layout.Link }

// mostBytes is the maximum length of a value that a form names, in bytes.
const mostBytes = 4 << 10

// page answers with the page of a topic.
func (p *Topics) page(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	si := strings.TrimSpace(q.Get("si"))
	if si == "" {
		return &Problem{Status: http.StatusBadRequest, Text: texts.NoTopicGiven}
	}
	instances := q.Get("instances") != ""
	t, err := p.topic(r.Context(), si, instances,
		titles.Accepted(strings.Join(r.Header.Values("Accept-Language"), ",")))
	if err != nil {
		return err
	}
	names, err := p.names(r.Context())
	if err != nil {
		return err
	}
	d := describer{func(name string) bool {
		return !slices.Contains(names, name)
	}, p.site.Find, t, p.site.Token(r)}
	page := d.topic()
	page.Find, page.Done, page.Undone = p.site.Find, q.Get("done") == "reject", q.Get("done") == "unreject"
	if !instances {
		page.Instances = p.site.Find + "?" + url.Values{"si": {t.TopicSI}, "instances": {"yes"}}.Encode()
	}
	return p.site.Write(w, r, http.StatusOK, topicTemplate, cmp.Or(t.Title, t.TopicSI),
		p.site.path(r, p.site.toNode(r)), page)
}

// describer makes pages of topics. own reports whether a source is not followed, but written here.
type describer struct {
	own     func(string) bool
	address string // of the page of topics
	about   *merged.Topic
	token   string // of forms
}

func (d describer) topic() *topic {
	page, t := &topic{}, d.about
	about := func(kind rejections.Kind, value string) claim {
		return claim{Kind: kind, Topic: t.TopicSI, Value: value}
	}
	for _, l := range first(page, texts.MoreIdentifiers, t.SubjectIdentifiers) {
		page.Identifiers = append(page.Identifiers, d.stated(about(rejections.Identifier, l.Locator), l.By))
	}
	for _, l := range first(page, texts.MoreLocators, t.SubjectLocators) {
		page.Locators = append(page.Locators, d.stated(about(rejections.Locator, l.Locator), l.By))
	}
	for i := range first(page, texts.MoreNames, t.Names) {
		n := &t.Names[i]
		page.Names = append(page.Names, d.value(about(rejections.Name, n.Value), &n.ClaimedValue))
		for _, v := range first(page, texts.MoreVariants, n.Variants) {
			c := about(rejections.Variant, v.Value)
			c.Of = n.Value
			page.Names = append(page.Names, d.value(c, &v))
		}
	}
	for i := range first(page, texts.MoreOccurrences, t.Occurrences) {
		page.Occurrences = append(page.Occurrences,
			d.value(about(rejections.Occurrence, t.Occurrences[i].Value), &t.Occurrences[i]))
	}
	for i := range first(page, texts.MoreAssociations, t.Associations) {
		a := &t.Associations[i]
		c := claim{Kind: rejections.Association, Type: a.Type, Scope: a.Scope}
		for _, r := range a.Roles {
			c.RoleTypes, c.Play = append(c.RoleTypes, r.Type), append(c.Play, r.Player)
		}
		s := d.stated(c, a.By)
		if isType(&c, t) {
			s.Roles = slices.DeleteFunc(s.Roles, func(r role) bool { return r.Type != d.topicLink(string(tmdm.PSIType)) })
			s.Type = nil // the heading names it
			page.Types = append(page.Types, s)
		} else {
			page.Associations = append(page.Associations, s)
		}
	}
	for i := range first(page, texts.MoreRejections, t.Rejected) {
		page.Rejected = append(page.Rejected, d.rejected(&t.Rejected[i]))
	}
	return page
}

// isType reports whether an association states the type of the topic.
func isType(c *claim, t *merged.Topic) bool {
	if c.Type != string(tmdm.PSITypeInstance) {
		return false
	}
	at := slices.Index(c.RoleTypes, string(tmdm.PSIInstance))
	return at >= 0 && slices.ContainsFunc(t.SubjectIdentifiers, func(l merged.ClaimedLocator) bool {
		return l.Locator == c.Play[at]
	})
}

// first returns the first [most] items of a list.
func first[T any](page *topic, what texts.Text, list []T) []T {
	if len(list) <= most {
		return list
	}
	if !slices.Contains(page.More, what) {
		page.More = append(page.More, what)
	}
	return list[:most]
}

func (d describer) value(c claim, v *merged.ClaimedValue) stated {
	c.Type, c.Datatype, c.Scope = v.Type, v.Datatype, v.Scope
	return d.stated(c, v.By)
}

// stated returns a claim with the names of its sources.
func (d describer) stated(c claim, by []string) stated {
	shown := c.Value
	if c.Kind == rejections.Identifier {
		shown = iri.Shown(shown)
	}
	s := stated{Text: layout.Cut(shown), Of: layout.Cut(c.Of), By: by, Claim: c, SI: d.about.TopicSI, Token: d.token,
		Action: d.address}
	if s.Text != shown {
		s.Cut = len(c.Value)
	}
	if c.Kind == rejections.Identifier || c.Kind == rejections.Locator || c.Datatype == tmdm.XSDAnyURI {
		s.To = layout.LinkTo(shown).URL
	}
	if s.To == "" && !words.IsText(c.Datatype) {
		s.Datatype = layout.Cut(c.Datatype)
	}
	if c.Type != "" && c.Type != defaultType {
		typ := d.topicLink(c.Type)
		s.Type = &typ
	}
	for _, theme := range c.Scope[:min(len(c.Scope), most)] {
		s.Scope = append(s.Scope, d.topicLink(theme))
	}
	for i := range c.RoleTypes[:min(len(c.RoleTypes), most)] {
		s.Roles = append(s.Roles, role{d.topicLink(c.RoleTypes[i]), d.topicLink(c.Play[i])})
	}
	if len(c.Value) <= mostBytes && len(c.Of) <= mostBytes && len(c.RoleTypes) <= most && len(c.Scope) <= most {
		for _, name := range by {
			if !d.own(name) {
				s.Sources = append(s.Sources, name)
			}
		}
	}
	return s
}

func (d describer) rejected(r *merged.Rejected) stated {
	c := claim{Kind: r.Kind, Topic: string(r.Topic), Value: r.Value, Type: string(r.Type), Datatype: r.Datatype}
	if r.Of != nil {
		c.Of = r.Of.Value
	}
	for _, theme := range r.Scope {
		c.Scope = append(c.Scope, string(theme))
	}
	for _, one := range r.Roles {
		c.RoleTypes, c.Play = append(c.RoleTypes, string(one.Type)), append(c.Play, string(one.Player))
	}
	s := d.stated(c, []string{r.By})
	s.Reason, s.Unstated = layout.Cut(r.Reason), !r.Stated
	return s
}

// topicLink leads to the page of a topic.
func (d describer) topicLink(si string) layout.Link {
	return layout.Link{Title: layout.Cut(d.about.Mentioned(si)), URL: d.address + "?" + url.Values{"si": {si}}.Encode()}
}

// reject hides a claim of a source, or shows it again, and leads back to the topic.
func (p *Topics) reject(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	c := claim{
		Kind: rejections.Kind(f.Get("kind")), Topic: f.Get("topic"), Value: f.Get("value"), Of: f.Get("of"),
		Type:     f.Get("type"),
		Datatype: f.Get("datatype"), Scope: f["scope"], RoleTypes: f["role"], Play: f["player"], Source: f.Get("source"),
	}
	do := f.Get("do")
	if !slices.Contains(rejectable, c.Kind) || len(c.RoleTypes) != len(c.Play) || c.Source == "" || do != "reject" &&
		do != "unreject" {
		return &Problem{Status: http.StatusBadRequest, Text: texts.FormNoClaim}
	}
	if err := p.folder.reject(r.Context(), &c, do == "unreject", strings.TrimSpace(f.Get("reason"))); err != nil {
		return err
	}
	to := p.site.Find + "?" + url.Values{"si": {f.Get("si")}, "done": {do}}.Encode()
	http.Redirect(w, r, layout.ToPage(r, to), http.StatusSeeOther)
	return nil
}
