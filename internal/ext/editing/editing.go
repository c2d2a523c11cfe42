// Package editing lets people change topics in a browser, by forms without scripts. Each form shows its effect before
// it is published, in the same way as requests of programs.
package editing

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns the extension. site returns the pages of the server that show links to its forms; nil: there are
// none.
func Extension(site func() *pages.Pages) extension.Extension {
	return extension.Extension{Name: "editing", Serve: func(s *server.Server) (*server.Part, error) {
		p := site()
		if p == nil || p.Server != s {
			return &server.Part{}, nil
		}
		p.Forms = true
		return &server.Part{Forms: (&editor{Sessions: p.Sessions}).routes}, nil
	}}
}

// editor serves forms and publishes their changes. It is safe for concurrent use.
type editor struct {
	*pages.Sessions
	published publications
}

// routes adds the addresses of forms.
func (e *editor) routes(handle func(path string, h web.Handler, methods ...string)) {
	form := func(path string, shown, sent web.Handler) {
		handle(path+pages.Ending, e.Form(e.may, shown), "GET", "HEAD")
		handle(path+pages.Ending, e.Form(e.may, e.FewUploads(sent)), "POST")
	}
	form("/topicmaps/{map}/topics/new", e.form, e.sent)
	form("/topicmaps/{map}/topics/{key:[a-z2-7]{26}}/edit", e.form, e.sent)
	for path, ask := range map[string]web.Handler{
		"/topics/{key:[a-z2-7]{26}}/delete":  e.deletion,
		"/topics/{key:[a-z2-7]{26}}/restore": e.restoration,
		"/topics/{key:[a-z2-7]{26}}/move":    e.moving,
		"/fragments/{id:[0-9a-f-]{36}}/undo": e.undoing,
	} {
		form("/topicmaps/{map}"+path, e.FewUploads(ask), ask)
	}
}

// may returns an error if a request may not use the forms of a collection. Forms show its content.
func (e *editor) may(r *http.Request) error {
	err := e.MayEdit(r)
	if err == nil && !e.MayRead(r, web.Var(r, "map")) {
		err = e.Missing("reading this map")
	}
	return err
}

// target is the topic that a form is about, as it is.
type target struct {
	collection store.Collection
	self       fragment.Ref
	key        string          // in the address; "": the topic is new
	state      string          // "": a new topic
	topic      *fragment.Topic // likewise nil
	title      string          // likewise ""
	last       *store.Entry    // likewise nil
}

// errGone is the error for a topic that no longer exists under its TopicSI.
var errGone = errors.New("the topic is gone")

// find returns the topic that the address of a request names, or the one that a draft makes.
func find(r *http.Request, v *store.View, self fragment.Ref) (*target, error) {
	t := &target{collection: v.Collection, key: web.Var(r, "key"), self: self}
	if err := v.Collection.WritableBy(""); err != nil {
		return nil, err
	}
	if t.key == "" {
		return t, nil
	}
	last, err := v.Last(t.key)
	if err == nil && last == nil {
		err = web.Problemf(http.StatusNotFound,
			"there is no topic with the key %s in %s; find the topic that you mean from the page of the map", t.key, v.Name)
	}
	if err != nil {
		return nil, err
	}
	t.self, t.last, t.state = last.TopicSI, last, v.Epoch.String()+"-"+strconv.FormatUint(last.Seq, 10)
	if err = t.read(r, v); err != nil {
		return nil, err
	}
	if t.topic == nil || t.topic.TopicSI() != t.self {
		return t, errGone
	}
	return t, nil
}

// read reads the topic, and its title for the reader: as it is, or as it was last.
func (t *target) read(r *http.Request, v *store.View) (err error) {
	if t.topic, err = v.Source().Topic(t.self); t.topic == nil || err != nil {
		t.title = t.last.Label()
		return err
	}
	names := fragment.Names{In: v.State(), Languages: pages.LanguagesOf(r, &v.Collection)}
	t.title, err = pages.Name(layout.LanguageOf(r), &names, t.topic, t.self)
	return err
}

// page returns the address of the page of the topic.
func (e *editor) page(t *target) string {
	return e.URLs.Topic(&t.collection, t.self) + pages.Ending
}

// form answers with the form of a topic as it is, or of a new one.
func (e *editor) form(w http.ResponseWriter, r *http.Request) error {
	return e.View(r, func(v *store.View) error {
		t, err := find(r, v, "")
		if errors.Is(err, errGone) {
			return e.SeeOther(w, r, e.page(t)) // the page shows the result
		}
		if err != nil {
			return err
		}
		for most := mostShown; ; most /= 2 {
			shown, err := e.shown(r, v, t, most)
			if err != nil {
				return err
			}
			shown.draft.Identifier = r.URL.Query().Get("si")
			if err = e.show(w, r, http.StatusOK, v, t, shown); err != errLong {
				return err
			}
		}
	})
}

// sent executes the button by which a form was sent.
func (e *editor) sent(w http.ResponseWriter, r *http.Request) error {
	d := read(r.PostForm)
	if d.WrongLine = e.checkAttribution(r, d); d.WrongLine.Kind != "" {
		return e.refused(w, r, fragment.Ref(d.Identifier), d)
	}
	do := r.PostForm.Get("do")
	if choose(r.PostForm, do) {
		d, do = read(r.PostForm), "show"
	}
	switch do {
	case "", "preview":
		return e.carryOut(w, r, d, true)
	case "publish":
		return e.once(w, r, d)
	default:
		return e.View(r, func(v *store.View) error {
			t, err := find(r, v, fragment.Ref(d.Identifier))
			if errors.Is(err, errGone) {
				return e.SeeOther(w, r, e.page(t))
			}
			if err != nil {
				return err
			}
			if do == "edit" {
				return e.again(w, r, v, t, d)
			}
			d.more(do)
			return e.show(w, r, http.StatusOK, v, t, &shown{draft: d})
		})
	}
}

// moreRows is the number of empty rows that are added at a time.
const moreRows = 3

// more adds empty rows of a kind, or empty roles.
func (d *draft) more(kind string) {
	for range moreRows {
		d.oneMore(kind)
	}
	if kind == "roles" {
		for i := range d.Associations {
			if r := &d.Associations[i]; r.Is == "" && len(r.Others) < mostRoles {
				r.Others = append(r.Others, roleRow{})
			}
		}
	}
}

func (d *draft) oneMore(kind string) {
	switch {
	case kind == ofName && len(d.Names) < mostRows:
		d.Names = append(d.Names, nameRow{})
	case kind == ofOccurrence && len(d.Occurrences) < mostRows:
		d.Occurrences = append(d.Occurrences, occurrenceRow{})
	case kind == ofType && len(d.Types) < mostRows:
		d.Types = append(d.Types, typeRow{})
	case kind == ofAssociation && len(d.Associations) < mostRows:
		d.Associations = append(d.Associations, associationRow{Others: make([]roleRow, 1)})
	}
}

// checkAttribution applies the limits of programs to the author and the note. The author of a request with a named
// token is that name.
func (e *editor) checkAttribution(r *http.Request, d *draft) wrong {
	d.Author = cmp.Or(e.NameOf(r), d.Author)
	for _, line := range []struct {
		field, text string
		most        int
	}{{"author", d.Author, publish.MaxAuthor}, {"note", d.Note, publish.MaxNote}} {
		odd := func(c rune) bool { return unicode.IsControl(c) || c == 0xFFFE || c == 0xFFFF }
		if len(line.text) > line.most || !utf8.ValidString(line.text) || strings.ContainsFunc(line.text, odd) {
			return wrong{Kind: "line", Text: strconv.Itoa(line.most), Field: line.field}
		}
	}
	return wrong{}
}

// name gives a new topic its identifier: the one that the person has filled in, or one of the server's.
func (d *draft) name(c *store.Collection) (fragment.Ref, wrong) {
	if d.empty() {
		return "", wrong{Kind: "nothing"}
	}
	if d.Identifier == "" {
		d.Identifier = c.SP + "topic/" + uuid.NewString()
	}
	si, err := asWritten(d.Identifier, c.InRDF())
	if err != nil || fragment.CheckLength(si) != nil {
		return "", wrong{Kind: "identifier", Text: d.Identifier}
	}
	return si, wrong{}
}

// again serves the form of the topic in its present state, with the changes of a draft.
func (e *editor) again(w http.ResponseWriter, r *http.Request, v *store.View, t *target, d *draft) error {
	if t.topic == nil {
		return e.show(w, r, http.StatusOK, v, t, &shown{draft: d})
	}
	for most := mostShown; ; most /= 2 {
		now, err := e.shown(r, v, t, most)
		if err != nil {
			return err
		}
		a, err := e.begin(r, &v.Collection, v.State(), t.self)
		if err != nil {
			return err
		}
		now.draft.Author, now.draft.Note = d.Author, d.Note
		if err := a.rebase(now.draft, d); err != nil {
			return err
		}
		if err := e.show(w, r, http.StatusOK, v, t, now); err != errLong {
			return err
		}
	}
}

// rebase applies the changes of a draft to one made of another state. Unchanged rows have the values of the other
// state. A changed statement that no longer exists becomes a new one.
func (a *applying) rebase(fresh, d *draft) error {
	names, occurrences := map[string]bool{}, map[string]bool{}
	for i := range a.topic.Names {
		names[nameIs(a.self, &a.topic.Names[i])] = true
	}
	for i := range a.topic.Occurrences {
		occurrences[occurrenceIs(a.self, &a.topic.Occurrences[i])] = true
	}
	err := rebaseValues(&fresh.Names, d.Names, names, func(r *nameRow) (string, wrong, error) {
		n, w, err := a.name(r)
		return nameIs(a.self, &n), w, err
	})
	if err == nil {
		err = rebaseValues(&fresh.Occurrences, d.Occurrences, occurrences, func(r *occurrenceRow) (string, wrong, error) {
			o, w, err := a.occurrence(r)
			return occurrenceIs(a.self, &o), w, err
		})
	}
	if err == nil {
		err = rebaseRelations(a, &fresh.Types, d.Types, fragment.AsInstance)
	}
	if err == nil {
		err = rebaseRelations(a, &fresh.Associations, d.Associations, fragment.AsPlayer)
	}
	return err
}

// rebaseValues does so for rows of names or occurrences. is returns the identity of a row's statement.
func rebaseValues[T any, R rowOf[T]](
	fresh *[]T, rows []T, there map[string]bool, is func(R) (string, wrong, error),
) error {
	for _, changed := range rows {
		r := R(&changed)
		says, w, err := is(r)
		if err != nil {
			return err
		}
		if b := r.base(); !r.blank() && (b.Remove || !b.Long && (w.Kind != "" || says != b.Is)) {
			rebased[T, R](fresh, changed, there[b.Is])
		}
	}
	return nil
}

// rebaseRelations does so for rows of associations.
func rebaseRelations[T any, R rowOf[T]](a *applying, fresh *[]T, rows []T, part fragment.Part) error {
	for _, changed := range rows {
		r := R(&changed)
		there, err := a.has(r.base(), part)
		if err != nil {
			return err
		}
		if b := r.base(); b.Remove || b.Is == "" && !r.blank() {
			rebased[T, R](fresh, changed, there)
		}
	}
	return nil
}

// has reports whether the association of a row is there.
func (a *applying) has(r *row, part fragment.Part) (bool, error) {
	key, ok := keyOf(r.Is)
	if !ok {
		return false, nil
	}
	found, err := a.associationOf(key, part)
	return found != nil, err
}

// rebased puts a row that a person has changed in the place of the one of the same statement.
func rebased[T any, R rowOf[T]](rows *[]T, changed T, there bool) {
	r := R(&changed).base()
	if !there {
		if r.Remove {
			return // removed by someone else
		}
		r.Is = ""
	}
	for i := range *rows {
		if r.Is != "" && R(&(*rows)[i]).base().Is == r.Is {
			(*rows)[i] = changed
			return
		}
	}
	*rows = append(*rows, changed)
}
