package editing

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/ext/search/words"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/titles"
	terms "github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// The limits of the search for a topic by name.
const (
	mostProposed = 20
	searchWithin = 300 * time.Millisecond // publications wait meanwhile
)

// ref returns the reference to the topic that a person has named: by one of its subject identifiers, or by a name that
// no other topic has.
func (a *applying) ref(text string) (fragment.Ref, wrong, error) {
	text = strings.TrimSpace(text)
	if _, err := tmdm.Named(text); err != nil {
		return a.called(text)
	}
	return a.meant(text)
}

// meant returns the reference to the topic that a person means by an IRI.
func (a *applying) meant(text string) (fragment.Ref, wrong, error) {
	si, t, err := fragment.Find(a.prior, text)
	if t == nil && err == nil {
		si, err = asWritten(text, a.inRDF)
	}
	if fragment.CheckLength(si) != nil {
		return "", wrong{Kind: "identifier", Text: text}, err
	}
	ref, w, failed := a.identified(si)
	return ref, w, cmp.Or(err, failed)
}

// asWritten returns the locator of an IRI that a person wrote and that no topic has: unchanged if the map is RDF, else
// its normal form.
func asWritten(text string, inRDF bool) (fragment.Ref, error) {
	meant, err := tmdm.Named(text)
	if err != nil || inRDF {
		return append(meant, "")[0], err
	}
	return meant[len(meant)-1], nil
}

// identified returns the reference to the topic with a subject identifier. If there is none, the topic is new.
func (a *applying) identified(si fragment.Ref) (fragment.Ref, wrong, error) {
	t, err := a.prior.Topic(si)
	if t != nil {
		si = t.TopicSI()
	} else if err == nil && si != a.self {
		a.stubs[si] = true
	}
	return si, wrong{}, err
}

// called returns the reference to the topic with a name, whatever its case and accents, or with a term's word that the
// map does not name. If several topics match, the result is wrong and lists them.
func (a *applying) called(text string) (fragment.Ref, wrong, error) {
	w := wrong{Kind: "unknown", Text: text}
	query := words.Parse(text)
	if len(query.Words) == 0 || strings.ContainsFunc(text, unicode.IsControl) {
		return "", wrong{Kind: "identifier", Text: text}, nil
	}
	found, err := words.Find(a.state, query, "", mostProposed, searchWithin)
	if err != nil {
		return "", w, err
	}
	var exact, near []fragment.Ref
	for _, h := range found.Hits {
		same := h.Label != "" && words.Fold(strings.TrimSpace(h.Match.Text.Value)) == words.Fold(text) ||
			slices.ContainsFunc(h.Topic.Names, func(n fragment.Name) bool {
				return words.Fold(strings.TrimSpace(n.Value)) == words.Fold(text)
			})
		if same {
			exact = append(exact, h.Topic.TopicSI())
		} else {
			near = append(near, h.Topic.TopicSI())
		}
	}
	var foreign []fragment.Ref // terms that the map does not mention
	for _, term := range append(relationsCalled(a.in, text), terms.IRIs(text)...) {
		switch t, err := a.state.Topic(fragment.Ref(term)); {
		case err != nil:
			return "", w, err
		case t == nil:
			foreign = append(foreign, fragment.Ref(term))
		case !slices.Contains(exact, t.TopicSI()):
			exact = append(exact, t.TopicSI())
		}
	}
	if len(exact) == 0 {
		exact = foreign
	}
	switch len(exact) {
	case 0:
		w.Choices = near
		return "", w, nil
	case 1:
		return a.identified(exact[0])
	}
	w.Kind, w.Choices = "which", exact
	return "", w, nil
}

// relationsCalled returns the properties that pages call so, from the point of view of the topic that is edited.
func relationsCalled(in *texts.Language, text string) (all []string) {
	called := func(t texts.Text) bool {
		return strings.EqualFold(string(t), text) || strings.EqualFold(in.Say(t), text)
	}
	for _, r := range texts.Relations {
		switch {
		case called(r.Title):
			all = append(all, r.Property)
		case called(r.Of) && r.Inverse != "":
			all = append(all, r.Inverse)
		}
	}
	return all
}

// language returns the theme of a language that a person has given by its tag (BCP 47) or its name: the one of the
// identifiers of that language which the map has.
func (a *applying) language(text string) (fragment.Ref, wrong, error) {
	if _, err := tmdm.Named(text); err == nil {
		return a.meant(text)
	}
	tag, err := titles.ParseLanguage(text)
	if known := terms.LanguageCalled(text); known != "" {
		tag, err = titles.ParseLanguage(known)
	}
	if err != nil {
		theme, w, err := a.called(text)
		if _, ok := titles.LanguageOf(theme); err == nil && w.Kind == "" && ok {
			return theme, w, nil
		}
		return "", wrong{Kind: "language", Text: text}, err
	}
	for _, theme := range titles.Identifiers(tag) {
		if t, err := a.prior.Topic(fragment.Ref(theme)); t != nil || err != nil {
			return cmp.Or(refOf(t), fragment.Ref(theme)), wrong{}, err
		}
	}
	return a.identified(fragment.Ref(terms.LanguageNamespace + tag))
}

func refOf(t *fragment.Topic) fragment.Ref {
	if t == nil {
		return ""
	}
	return t.TopicSI()
}

// themes are the scope of a statement as a form has it: its language, and the other themes, one on each line.
type themes struct{ Language, Scope string }

func themesOf(scope []fragment.Ref) (list themes) {
	var others []fragment.Ref
	for _, theme := range scope {
		if _, ok := titles.LanguageOf(theme); ok && list.Language == "" {
			list.Language = theme.String()
			continue
		}
		others = append(others, theme)
	}
	list.Scope = linesOf(others)
	return list
}

// scope returns the themes that a person has named.
func (a *applying) scope(list themes) (scope []fragment.Ref, w wrong, err error) {
	if list.Language != "" {
		theme, w, err := a.language(list.Language)
		if w.Kind != "" || err != nil {
			return nil, w.at("language"), err
		}
		scope = append(scope, theme)
	}
	for line := range strings.FieldsFuncSeq(list.Scope, func(r rune) bool { return r == '\n' }) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		theme, w, err := a.ref(line)
		if w.Kind != "" || err != nil {
			return nil, w.at("scope"), err
		}
		scope = append(scope, theme)
	}
	slices.Sort(scope)
	return slices.Compact(scope), wrong{}, nil
}

// Fields show topics by their titles. A hidden field beside each has a line for each topic: its identifier, a space,
// and the title. So an unchanged field names the same topics, even if titles have changed meanwhile.

// topics returns the topics of a field, one per line: by identifier, or as written by the person.
func (f fields) topics(name string) string {
	known := map[string]string{}
	for line := range strings.SplitSeq(f.text(name+"-is"), "\n") {
		if si, title, ok := strings.Cut(line, " "); ok {
			known[title] = si
		}
	}
	all := strings.Split(f.text(name), "\n")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
		all[i] = cmp.Or(known[all[i]], all[i])
	}
	return strings.TrimSpace(strings.Join(all, "\n"))
}

// titled returns the text of a field for the topics on its lines, and the value of its hidden field.
func titled(text string, title func(si string) string) (shown, is string) {
	given := map[string]bool{}
	all := strings.Split(text, "\n")
	var known []string
	for i, si := range all {
		name := title(si)
		_, err := iri.Normalize(name)
		odd := strings.ContainsAny(name, "\r\n") || strings.TrimSpace(name) != name
		if name == "" || err == nil || odd || given[name] {
			continue // the title is ambiguous
		}
		given[name], all[i] = true, name
		known = append(known, si+" "+name)
	}
	return strings.Join(all, "\n"), strings.Join(known, "\n")
}

// choose replaces a name in a field by a topic, as the button requests by which the form was sent: "use", the id of the
// field, the identifier, and the name.
func choose(form map[string][]string, do string) bool {
	parts := strings.SplitN(do, " ", 4)
	if len(parts) != 4 || parts[0] != "use" || len(form[parts[1]]) != 1 {
		return false
	}
	all := strings.Split(lines(form[parts[1]][0]), "\n")
	if i := slices.IndexFunc(all, func(l string) bool { return strings.TrimSpace(l) == parts[3] }); i >= 0 {
		all[i] = parts[2]
	}
	form[parts[1]] = []string{strings.Join(all, "\n")}
	return true
}
