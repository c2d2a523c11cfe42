package editing

import (
	"encoding/hex"
	"errors"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// A form shows a part of the statements about a large topic. The others have forms of their own. No form changes
// statements that it does not show.
const (
	mostShown  = 50       // statements of a kind that are there
	emptyRows  = 2        // for new ones
	mostFilled = 36 << 10 // bytes of HTML of the values of a kind, and half of that where the form has all kinds
	mostOfForm = 60 << 10 // bytes of HTML of a form. It has all that a person has written, however long that is

	mostProblems = 20 // that a form that is too long lists
	mostMeant    = 40 // topics that may be meant, in all fields of it
)

// errLong is the error for a form with too many rows.
var errLong = errors.New("the form has too many rows")

// shown is a form with the rows to show.
type shown struct {
	draft *draft
	more  []part // other parts of the statements about the topic
	most  int    // rows of a kind that are there; 0: all that were sent
}

// part leads to the form of a part.
type part struct {
	What, URL string
	More      texts.Text // the parts that continue on another page
}

// moreOf maps kinds of rows to the texts about further rows.
var moreOf = map[string]texts.Text{ofName: texts.MoreNames, ofOccurrence: texts.MoreOccurrences,
	ofType: texts.MoreTypes, ofAssociation: texts.MoreAssociations}

// shown returns the form of a topic as it is: of the part that the request names, or the first one of all kinds.
func (e *editor) shown(r *http.Request, v *store.View, t *target, most int) (*shown, error) {
	s := &shown{draft: &draft{State: t.state}, most: most}
	only, given, err := asked(r)
	if err != nil {
		return nil, err
	}
	switch under := r.URL.Query().Get("under"); {
	case t.topic != nil:
		err = e.fill(s, v, t, only, given)
	case under != "":
		err = s.draft.beneath(v, under)
	}
	if err != nil {
		return nil, err
	}
	for range emptyRows {
		for _, kind := range []string{ofName, ofOccurrence, ofType, ofAssociation} {
			if only == "" || only == kind {
				s.draft.oneMore(kind)
			}
		}
	}
	return s, nil
}

// asked returns the requested part of a form, and the key that it begins after.
func asked(r *http.Request) (only, from string, err error) {
	for _, kind := range []string{ofName, ofOccurrence, ofType, ofAssociation} {
		if from := r.URL.Query().Get(kind); from != "" {
			return kind, from, nil
		}
	}
	return "", "", nil
}

func (e *editor) fill(s *shown, v *store.View, t *target, only, given string) error {
	limit := mostFilled
	if only == "" {
		limit /= 2
	}
	begin := func(kind string, all int, size func(i int) int) (from, to int, err error) {
		if only == kind {
			if from, err = strconv.Atoi(given); err != nil || from < 0 {
				return 0, 0, web.Problemf(http.StatusBadRequest, "?%s= is no number: follow the links of the form", kind)
			}
		} else if only != "" {
			return 0, 0, nil
		}
		from = min(from, all)
		to = from
		for left := limit; to < all && to-from < s.most; to++ {
			if left -= size(to); left < 0 {
				break // that part has its own page
			}
		}
		if to < all {
			s.more = append(s.more, part{kind, "?" + kind + "=" + strconv.Itoa(to), moreOf[kind]})
		}
		return from, to, nil
	}
	names, occurrences := t.topic.Names, t.topic.Occurrences
	from, to, err := begin(ofName, len(names), func(i int) int { return lengthOf(names[i].Value) })
	if err != nil {
		return err
	}
	usual, err := usualType(v)
	if err != nil {
		return err
	}
	for _, n := range names[from:to] {
		row := rowOfName(t.self, usual, &n)
		if row.Long = len(n.Value) > 0 && lengthOf(n.Value) == 0; row.Long {
			row.Value = ""
		}
		s.draft.Names = append(s.draft.Names, row)
	}
	from, to, err = begin(ofOccurrence, len(occurrences), func(i int) int { return lengthOf(occurrences[i].Value) })
	if err != nil {
		return err
	}
	for _, o := range occurrences[from:to] {
		row := rowOfOccurrence(t.self, &o)
		if row.Long = len(o.Value) > 0 && lengthOf(o.Value) == 0; row.Long {
			row.Value = ""
		}
		s.draft.Occurrences = append(s.draft.Occurrences, row)
	}
	for kind, part := range map[string]fragment.Part{ofType: fragment.AsInstance, ofAssociation: fragment.AsPlayer} {
		if only != "" && only != kind {
			continue
		}
		if err := e.relations(s, v, t, kind, part, given); err != nil {
			return err
		}
	}
	slices.SortFunc(s.more, func(a, b part) int { return strings.Compare(a.What, b.What) })
	return nil
}

// lengthOf returns the length of a field with a value in HTML, in bytes; 0 if the value is too long for any field.
func lengthOf(value string) int {
	if n := len(html.EscapeString(value)); n <= mostFilled {
		return n
	}
	return 0
}

// usualType returns the reference to the default type of names; "" if the map lacks it.
func usualType(v *store.View) (fragment.Ref, error) {
	t, err := v.Source().Topic(tmdm.PSIDefaultNameType)
	return refOf(t), err
}

// rowOfName and rowOfOccurrence return the rows of existing statements.

func rowOfName(self, usual fragment.Ref, n *fragment.Name) nameRow {
	r := nameRow{row: row{Is: nameIs(self, n)}, Value: n.Value, Type: n.Type.String(), themes: themesOf(n.Scope)}
	if n.Type == usual {
		r.Type = ""
	}
	return r
}

func rowOfOccurrence(self fragment.Ref, o *fragment.Occurrence) occurrenceRow {
	r := occurrenceRow{row: row{Is: occurrenceIs(self, o)}, Value: o.Value, Type: o.Type.String(),
		Datatype: iri.Shown(o.Datatype), themes: themesOf(o.Scope)}
	if o.Datatype == tmdm.XSDString {
		r.Datatype = ""
	}
	return r
}

func linesOf(refs []fragment.Ref) string {
	all := make([]string, len(refs))
	for i, ref := range refs {
		all[i] = ref.String()
	}
	return strings.Join(all, "\n")
}

// relations adds rows of the associations of one part of a topic, after the association with the given key.
func (e *editor) relations(s *shown, v *store.View, t *target, kind string, as fragment.Part, given string) error {
	var after *fragment.AssociationKey
	if given != "" {
		key, ok := keyOf(given)
		if !ok {
			return web.Problemf(http.StatusBadRequest, "?%s= names no association: follow the links of the form", kind)
		}
		after = &key
	}
	n, last := 0, fragment.AssociationKey{}
	for a, err := range v.State().AssociationsAfter(t.self, as, after) {
		if err != nil {
			return err
		}
		if n == s.most {
			s.more = append(s.more, part{kind, "?" + kind + "=" + hex.EncodeToString(last[:]), moreOf[kind]})
			return nil
		}
		n, last = n+1, a.Key()
		if kind == ofType {
			s.draft.Types = append(s.draft.Types, typeRow{row: row{Is: associationIs(a)}})
		} else {
			s.draft.Associations = append(s.draft.Associations, associationRow{row: row{Is: associationIs(a)}})
		}
	}
	return nil
}

// known is a topic that fields propose.
type known struct {
	SI    fragment.Ref
	Title string
}

// formPage is the data of the page of a form.
type formPage struct {
	*draft
	Code     string
	Topic    *pages.Link // nil: it is new
	SI       fragment.Ref
	Delete   string
	More     []part
	Problems []input

	MoreProblems int // of which only so many are listed

	Taken      *pages.Link // the topic that has the identifier of the new one
	Identify   input
	By, Why    input
	Known      []known
	AuthorKnow bool // the token determines the author
}

// show answers with a form.
func (e *editor) show(w http.ResponseWriter, r *http.Request, status int, v *store.View, t *target, s *shown) error {
	d := decorator{name: e.Naming(v, r), v: v, t: t, known: map[fragment.Ref]string{}, in: layout.LanguageOf(r)}
	if err := d.decorate(s.draft); err != nil {
		return err
	}
	page := &formPage{draft: s.draft, Code: e.Code(r), More: s.more}
	if name := e.NameOf(r); name != "" {
		page.AuthorKnow, page.Author = true, name
	}
	page.Identify = inputOf("identifier", pages.Say(r, texts.Identifier), page.Identifier, 0, &s.draft.WrongName)
	page.By = inputOf("author", pages.Say(r, texts.Author), page.Author, publish.MaxAuthor, &s.draft.WrongLine)
	page.Why = inputOf("note", pages.Say(r, texts.Note), page.Note, publish.MaxNote, &s.draft.WrongLine)
	c, title := &t.collection, pages.Say(r, texts.NewTopic)
	path := e.Trail(r, c)
	if t.topic != nil {
		title = t.title
		page.Topic, page.SI = &pages.Link{Title: title, URL: e.page(t)}, t.self
		page.Delete = e.URLs.Topic(c, t.self) + "/delete" + pages.Ending
		path = e.Trail(r, c, *page.Topic)
	} else if s.draft.WrongName.Kind == "taken" {
		l, err := d.name(fragment.Ref(s.draft.Identifier))
		if err != nil {
			return err
		}
		page.Taken = &l
	}
	for si, title := range d.known {
		page.Known = append(page.Known, known{si, title})
	}
	slices.SortFunc(page.Known, func(a, b known) int { return strings.Compare(string(a.SI), string(b.SI)) })
	for folded := false; ; folded = true {
		page.Problems = s.draft.problems()
		if more := len(page.Problems) - mostProblems; folded && more > 0 {
			page.Problems, page.MoreProblems = page.Problems[:mostProblems], more
		}
		b, err := e.MakeForm(r, "edit", title, path, page)
		switch {
		case err != nil:
			return err
		case folded || len(b) <= mostOfForm:
			return e.SendForm(w, r, status, b)
		case s.most > 1:
			return errLong
		}
		s.draft.fold()
	}
}

// fold removes unchanged rows from a form that is too long, because statements without a row are kept. Of proposed
// topics it keeps the first.
func (d *draft) fold() {
	d.Names, d.Occurrences = touched(d.Names), touched(d.Occurrences)
	d.Types, d.Associations = touched(d.Types), touched(d.Associations)
	left := mostMeant
	for _, r := range d.rows() {
		r.Wrong.Meant = r.Wrong.Meant[:min(left, len(r.Wrong.Meant))]
		left -= len(r.Wrong.Meant)
	}
}

// touched returns the changed and the new rows.
func touched[T any, R rowOf[T]](rows []T) []T {
	return slices.DeleteFunc(rows, func(r T) bool { b := R(&r).base(); return b.Is != "" && !b.Open })
}

// decorator adds to rows the parts of their statements that are shown beside the fields.
type decorator struct {
	name  func(fragment.Ref) (pages.Link, error)
	v     *store.View
	t     *target
	known map[fragment.Ref]string // titles of topics that rows name
	in    *texts.Language
}

func (d *decorator) propose(ref fragment.Ref) error {
	l, err := d.name(ref)
	d.known[ref] = l.Title
	return err
}

// names finds the titles of the topics that fields name, as far as they are there, and proposes them.
func (d *decorator) names(r *row, fields ...string) error {
	if r.titles == nil {
		r.titles = map[string]string{}
	}
	for _, text := range fields {
		for line := range strings.SplitSeq(text, "\n") {
			_, t, err := fragment.Find(d.v.Source(), line)
			if failed := (*iri.Error)(nil); t == nil && (err == nil || errors.As(err, &failed)) {
				continue
			}
			if err != nil {
				return err
			}
			if err := d.propose(t.TopicSI()); err != nil {
				return err
			}
			r.titles[line] = d.known[t.TopicSI()]
		}
	}
	r.Wrong.Meant = nil
	for _, ref := range r.Wrong.Choices {
		l, err := d.name(ref)
		if err != nil {
			return err
		}
		l.Whole = ref.String()
		r.Wrong.Meant = append(r.Wrong.Meant, l)
	}
	return nil
}

func (d *decorator) reifier(r *row, ref fragment.Ref) error {
	if ref == "" {
		return nil
	}
	l, err := d.name(ref)
	r.Reifier = &l
	return err
}

func (d *decorator) decorate(form *draft) error {
	names, occurrences := map[string]*fragment.Name{}, map[string]*fragment.Occurrence{}
	if d.t.topic != nil {
		for i := range d.t.topic.Names {
			names[nameIs(d.t.self, &d.t.topic.Names[i])] = &d.t.topic.Names[i]
		}
		for i := range d.t.topic.Occurrences {
			occurrences[occurrenceIs(d.t.self, &d.t.topic.Occurrences[i])] = &d.t.topic.Occurrences[i]
		}
	}
	usual, err := usualType(d.v)
	if err != nil {
		return err
	}
	for _, r := range form.rows() {
		r.Open = r.Remove || r.Wrong.Kind != "" || r.Is == "" && !r.blank
	}
	for i := range form.Names {
		r := &form.Names[i]
		if n := names[r.Is]; n != nil {
			is := rowOfName(d.t.self, usual, n)
			r.Open = r.Open || !r.Long && (r.Value != lines(is.Value) || r.Type != is.Type || r.themes != is.themes)
			r.Shown = layout.Cut(n.Value)
			for _, variant := range n.Variants[:min(len(n.Variants), mostRoles)] {
				r.Variants = append(r.Variants, layout.Cut(variant.Value))
			}
			if err := d.reifier(&r.row, n.Reifier); err != nil {
				return err
			}
		}
		if err := d.names(&r.row, r.Type, r.Language, r.Scope); err != nil {
			return err
		}
	}
	for i := range form.Occurrences {
		r := &form.Occurrences[i]
		if o := occurrences[r.Is]; o != nil {
			is := rowOfOccurrence(d.t.self, o)
			r.Open = r.Open || !r.Long && (r.Value != lines(is.Value) || r.Type != is.Type || r.Datatype != is.Datatype ||
				r.themes != is.themes)
			r.Shown = layout.Cut(o.Value)
			if err := d.reifier(&r.row, o.Reifier); err != nil {
				return err
			}
		}
		if err := d.names(&r.row, r.Type, r.Language, r.Scope); err != nil {
			return err
		}
	}
	for i := range form.Types {
		r := &form.Types[i]
		a, err := d.association(&r.row, fragment.AsInstance)
		if err != nil {
			return err
		}
		if a != nil {
			class, _, _ := a.TypeInstance()
			r.Type = class.String()
		}
		if err := d.names(&r.row, r.Type); err != nil {
			return err
		}
		if a != nil {
			l, err := d.name(fragment.Ref(r.Type))
			if err != nil {
				return err
			}
			r.Names = append(r.Names, l)
		}
	}
	for i := range form.Associations {
		r := &form.Associations[i]
		a, err := d.association(&r.row, fragment.AsPlayer)
		if err == nil && a != nil {
			err = d.relation(r, a)
		}
		if err == nil && a == nil {
			for _, o := range r.Others {
				if err := d.names(&r.row, o.Type, o.Player); err != nil {
					return err
				}
			}
			err = d.names(&r.row, r.Type, r.Role, r.Scope)
		}
		if err != nil {
			return err
		}
	}
	if len(form.Names) > 0 && d.t.topic == nil {
		form.Names[0].Open = true // a new topic begins with its name
	}
	return nil
}

// association returns the association of a row; nil if the row is new, or the association was deleted.
func (d *decorator) association(r *row, as fragment.Part) (*fragment.Association, error) {
	key, ok := keyOf(r.Is)
	if !ok {
		return nil, nil
	}
	return (&applying{prior: d.v.State(), self: d.t.self}).associationOf(key, as)
}

// relation shows an association that is there.
func (d *decorator) relation(r *associationRow, a *fragment.Association) error {
	own := slices.IndexFunc(a.Roles, func(role fragment.Role) bool { return role.Player == d.t.self })
	key := []fragment.Ref{a.Type, a.Roles[max(own, 0)].Type}
	for _, ref := range append(key, a.Scope[:min(len(a.Scope), mostRoles)]...) {
		l, err := d.name(ref)
		if err != nil {
			return err
		}
		r.Names = append(r.Names, l)
		if err := d.propose(ref); err != nil {
			return err
		}
	}
	if as := key[1]; len(a.Roles) == 2 && (as == fragment.RDFSubject || as == fragment.RDFObject) {
		l := &r.Names[0]
		l.Title, l.Lang = pages.RelationCalled(d.in, a.Type, as == fragment.RDFObject, l.Title, l.Lang)
	}
	for i, other := range a.Roles[:min(len(a.Roles), mostRoles)] {
		if i == own {
			continue
		}
		typ, err := d.name(other.Type)
		if err != nil {
			return err
		}
		player, err := d.name(other.Player)
		if err != nil {
			return err
		}
		r.Of = append(r.Of, [2]pages.Link{typ, player})
	}
	return d.reifier(&r.row, a.Reifier)
}
