package merged

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/rejections"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Topic is one topic of the merged view. By names its sources; if it is empty, the topic is only referred to.
type Topic struct {
	TopicSI            string            `json:"topicSI"` // in the merged view
	Title              string            `json:"title"`
	SubjectIdentifiers []ClaimedLocator  `json:"subjectIdentifiers"`
	SubjectLocators    []ClaimedLocator  `json:"subjectLocators,omitempty"`
	Names              []ClaimedName     `json:"names,omitempty"`
	Occurrences        []ClaimedValue    `json:"occurrences,omitempty"`
	Associations       []ClaimedRelation `json:"associations,omitempty"`
	Rejected           []Rejected        `json:"rejected,omitempty"`

	// Titles are the titles of the mentioned topics, by identifier, if they have a name, or neither a name nor a
	// readable identifier.
	Titles map[string]string `json:"titles,omitempty"`
}

// Mentioned returns the title of a topic that t names.
func (t *Topic) Mentioned(si string) string {
	if title := t.Titles[si]; title != "" {
		return title
	}
	return words.Short(si)
}

// mostTitles is the number of topics whose titles are read.
const mostTitles = 1000

// callTopics adds the titles, for a reader of some languages, and puts the statements in the order of that.
func (t *Topic) callTopics(view *merge.View, languages titles.Languages) (err error) {
	t.Titles = map[string]string{}
	r := nodes.NewReader(nodes.SourceOf(languages, view))
	see := func(sis ...string) {
		for _, si := range sis {
			if _, known := t.Titles[si]; known || si == "" || err != nil || len(t.Titles) == mostTitles {
				continue
			}
			t.Titles[si], err = r.Title(fragment.Ref(si))
		}
	}
	see(t.TopicSI)
	value := func(v *ClaimedValue) { see(append(v.Scope, v.Type, v.Reifier)...) }
	for i := range t.Names {
		value(&t.Names[i].ClaimedValue)
		for j := range t.Names[i].Variants {
			value(&t.Names[i].Variants[j])
		}
	}
	for i := range t.Occurrences {
		value(&t.Occurrences[i])
	}
	for i := range t.Associations {
		a := &t.Associations[i]
		see(append(a.Scope, a.Type, a.Reifier)...)
		for _, role := range a.Roles {
			see(role.Type, role.Player)
		}
	}
	t.order(languages)
	maps.DeleteFunc(t.Titles, func(si, title string) bool { return title == words.Short(si) })
	return err
}

// order sorts the statements for a reader: by type, then by content. Names of the default type, and the types of the
// topic, come first.
func (t *Topic) order(languages titles.Languages) {
	kind := func(typ string) string {
		if typ == string(tmdm.PSIDefaultNameType) || typ == string(tmdm.PSITypeInstance) {
			return ""
		}
		return t.Mentioned(typ)
	}
	in := languages.String()
	words.Sort(t.Names, in, func(n *ClaimedName) []string { return []string{kind(n.Type), n.Value} })
	words.Sort(t.Occurrences, in, func(o *ClaimedValue) []string { return []string{kind(o.Type), o.Value} })
	words.Sort(t.Associations, in, func(a *ClaimedRelation) []string {
		all := []string{kind(a.Type)}
		for _, r := range a.Roles {
			if r.Player != t.TopicSI {
				all = append(all, t.Mentioned(r.Player))
			}
		}
		return all
	})
}

// Rejected is a claim about a topic that does not show, because it is rejected.
type Rejected struct {
	store.Rejected
	By string `json:"by"` // the source
}

// ClaimedLocator is an identifier of a topic.
type ClaimedLocator struct {
	Locator string   `json:"locator"`
	By      []string `json:"by"`
}

// ClaimedValue is an occurrence, or a variant of a name.
type ClaimedValue struct {
	Value    string   `json:"value"`
	Datatype string   `json:"datatype,omitempty"`
	Type     string   `json:"type,omitempty"`
	Scope    []string `json:"scope,omitempty"`
	Reifier  string   `json:"reifier,omitempty"`
	By       []string `json:"by"`
}

// ClaimedName is a name of a topic.
type ClaimedName struct {
	ClaimedValue
	Variants []ClaimedValue `json:"variants,omitempty"`
}

// ClaimedRelation is an association in which a topic plays a role.
type ClaimedRelation struct {
	Type    string        `json:"type"`
	Scope   []string      `json:"scope,omitempty"`
	Roles   []ClaimedRole `json:"roles"`
	Reifier string        `json:"reifier,omitempty"`
	By      []string      `json:"by"`
}

// ClaimedRole is a role of an association.
type ClaimedRole struct {
	Type   string `json:"type"`
	Player string `json:"player"`
}

// Topic returns the topic of the merged view with a subject identifier, with the sources of each statement. Instances
// are included only on request, because a class may have many. Titles are in the first available of some languages.
func (v View) Topic(ctx context.Context, si string, instances bool, languages ...string) (*Topic, error) {
	meant, err := tmdm.Named(si)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%q is no subject identifier: write an absolute IRI, as in "+
			"http://psi.example.org/topic, or find the topic by name (\"find\")", si))
	}
	var t *Topic
	err = v.Parts(ctx, false, nil, func(parts []merge.Part, all []store.Part) error {
		view, languages := merge.NewView(ctx, parts...), Languages(languages, all)
		var l tmdm.Locator
		var claims *merge.Claims
		var rejected []Rejected
		for _, l = range meant {
			var err error
			if claims, err = view.Claims(l, instances); err != nil {
				return err
			}
			if rejected, err = rejectedOf(view, all, l, instances); err != nil {
				return err
			}
			if claims != nil || len(rejected) > 0 {
				break
			}
		}
		if claims == nil && len(rejected) == 0 {
			return fmt.Errorf("no source says anything of %s; \"find\" finds topics by name", si)
		}
		if claims == nil {
			claims = &merge.Claims{SubjectIdentifiers: []merge.Claimed[tmdm.Locator]{{Value: l}}}
		}
		t = topicView(claims, view.Parts())
		t.Rejected = rejected
		t.Title = iri.Shown(t.TopicSI)
		if record, err := view.Topic(l); err != nil {
			return err
		} else if record != nil {
			names := fragment.Names{In: view, Languages: languages}
			if t.Title, err = names.Title(record); err != nil {
				return err
			}
		}
		return t.callTopics(view, languages)
	})
	return t, err
}

// rejectedOf returns the rejected claims about the topic with a subject identifier.
func rejectedOf(view *merge.View, parts []store.Part, si tmdm.Locator,
	instances bool) (all []Rejected, err error) {
	merged := func(si fragment.Ref) (fragment.Ref, error) {
		id, err := view.Identity(si)
		if id == nil || err != nil {
			return si, err
		}
		return id.TopicSI(), nil
	}
	identifier, err := merged(si)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		src, ok := p.Source.(*rejections.Source)
		if !ok {
			continue
		}
		for _, r := range src.Rejections() {
			concerns := false
			for _, ref := range r.Topics() {
				topic, err := merged(ref)
				if err != nil {
					return nil, err
				}
				onlyClass := r.Kind == rejections.Association && r.Association().Part(ref) == fragment.AsType
				concerns = concerns || topic == identifier && (instances || !onlyClass)
			}
			if !concerns {
				continue
			}
			stated, err := r.StatedBy(src.All())
			if err != nil {
				return nil, err
			}
			all = append(all, Rejected{store.Rejected{Rejection: r, Stated: stated}, p.Name})
		}
	}
	return all, nil
}

func topicView(c *merge.Claims, parts []merge.Part) *Topic {
	by := func(indexes []int) []string {
		names := []string{}
		for _, i := range indexes {
			names = append(names, parts[i].Name)
		}
		return names
	}
	located := func(all []merge.Claimed[tmdm.Locator]) (out []ClaimedLocator) {
		for _, l := range all {
			out = append(out, ClaimedLocator{string(l.Value), by(l.By)})
		}
		return out
	}
	t := &Topic{
		TopicSI:            string(c.SubjectIdentifiers[0].Value),
		SubjectIdentifiers: located(c.SubjectIdentifiers), SubjectLocators: located(c.SubjectLocators),
	}
	for _, n := range c.Names {
		name := ClaimedName{ClaimedValue: ClaimedValue{
			Value: n.Value.Value, Type: string(n.Value.Type), Scope: texts(n.Value.Scope), Reifier: string(n.Value.Reifier),
			By: by(n.By),
		}}
		for _, v := range n.Variants {
			name.Variants = append(name.Variants, ClaimedValue{
				Value: v.Value.Value, Datatype: v.Value.Datatype, Scope: texts(v.Value.Scope), Reifier: string(v.Value.Reifier),
				By: by(v.By),
			})
		}
		t.Names = append(t.Names, name)
	}
	for _, o := range c.Occurrences {
		t.Occurrences = append(t.Occurrences, ClaimedValue{
			Value: o.Value.Value, Datatype: o.Value.Datatype, Type: string(o.Value.Type), Scope: texts(o.Value.Scope),
			Reifier: string(o.Value.Reifier), By: by(o.By),
		})
	}
	for _, a := range c.Associations {
		relation := ClaimedRelation{Type: string(a.Value.Type), Scope: texts(a.Value.Scope), Reifier: string(a.Value.Reifier),
			By: by(a.By)}
		for _, r := range a.Value.Roles {
			relation.Roles = append(relation.Roles, ClaimedRole{string(r.Type), string(r.Player)})
		}
		t.Associations = append(t.Associations, relation)
	}
	return t
}

func texts(refs []fragment.Ref) []string {
	var out []string
	for _, ref := range refs {
		out = append(out, string(ref))
	}
	return out
}

// Sayers formats the sources of a statement for people.
func Sayers(by []string) string {
	if len(by) == 0 {
		return "  [only referred to]"
	}
	return "  [" + strings.Join(by, ", ") + "]"
}

// Themes formats a scope for people.
func Themes[T ~string](scope []T, call func(si string) string) string {
	titles := make([]string, len(scope))
	for i, theme := range scope {
		titles[i] = call(string(theme))
	}
	if len(scope) == 0 {
		return ""
	}
	return " @ " + strings.Join(titles, ", ")
}

// maxShown is the number of characters of a value that are shown to people.
const maxShown = 200

// OneLine returns a value as people can read it in one line of a terminal.
func OneLine(value string) string {
	if runes := []rune(value); len(runes) > maxShown {
		value = string(runes[:maxShown]) + "…"
	}
	return fmt.Sprintf("%q", value)
}
