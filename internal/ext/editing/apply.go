package editing

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/layout"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// applying makes the change of a draft from the statements that a person changed, removed or added, and no others. So
// everything that the form did not show is kept: reifiers, item identifiers, variants, and statements on other pages of
// the form.
type applying struct {
	ctx    context.Context
	reader *publish.Reader
	sp     string
	prior  fragment.Published
	inRDF  bool // roles that are left out are those of RDF
	in     *texts.Language
	state  records.State // to find topics by name

	self    fragment.Ref
	topic   fragment.Topic // as it becomes
	stubs   map[fragment.Ref]bool
	removed []*fragment.Association
	added   []*fragment.Association
}

// begin prepares a draft to be applied to the present state of a topic, or to a new topic if self is empty.
func (e *editor) begin(r *http.Request, c *store.Collection, prior merge.State, self fragment.Ref) (*applying, error) {
	a := &applying{ctx: r.Context(), in: layout.LanguageOf(r), reader: e.Reader, sp: c.SP, prior: prior,
		state: e.Store.ViewOf(*c, prior).State(),
		inRDF: c.InRDF(),
		self:  self, stubs: map[fragment.Ref]bool{}}
	t, err := prior.Topic(self)
	if err != nil {
		return nil, err
	}
	if t == nil {
		a.topic = fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{self}}}
		return a, nil
	}
	a.topic = fragment.Topic{Identity: t.Identity, Names: slices.Clone(t.Names), Occurrences: slices.Clone(t.Occurrences)}
	return a, nil
}

// change returns the change of a draft; nil if a row is invalid, which then has the reason.
func (a *applying) change(d *draft) (*fragment.Change, error) {
	d.doubles = nil
	for _, r := range d.rows() {
		r.Wrong = wrong{}
	}
	for _, step := range []func(*draft) error{a.names, a.occurrences, a.types, a.associations} {
		if err := step(d); err != nil {
			return nil, err
		}
	}
	if d.wrongs() {
		return nil, nil
	}
	topics := []*fragment.Topic{&a.topic}
	for _, ref := range slices.Sorted(maps.Keys(a.stubs)) {
		topics = append(topics, &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []tmdm.Locator{ref}}})
	}
	a.topic.Canonical()
	return fragment.Exchange(a.prior, nil, topics, a.removed, a.added)
}

// name returns the name of a row, with only the parts that the row shows.
func (a *applying) name(r *nameRow) (n fragment.Name, w wrong, err error) {
	n.Value = r.Value
	typ := r.Type
	if typ == "" {
		typ = string(tmdm.PSIDefaultNameType)
	}
	n.Type, w, err = a.ref(typ)
	labels := slices.DeleteFunc(slices.Clone(w.Choices), func(c fragment.Ref) bool {
		return !slices.Contains(titles.Labels, string(c))
	})
	if w.Kind == "which" && len(labels) == 1 { // the others are no types of names
		n.Type, w, err = a.identified(labels[0])
	}
	if w.Kind != "" || err != nil {
		return n, w.at("type"), err
	}
	n.Scope, w, err = a.scope(r.themes)
	return n, w, err
}

// occurrence does so for an occurrence.
func (a *applying) occurrence(r *occurrenceRow) (o fragment.Occurrence, w wrong, err error) {
	if r.Type == "" {
		return o, wrong{Kind: "type", Field: "type"}, nil
	}
	o.Value, o.Datatype = r.Value, tmdm.XSDString
	if r.Datatype != "" {
		datatype, err := asWritten(r.Datatype, a.inRDF)
		if err != nil {
			return o, wrong{Kind: "datatype", Text: r.Datatype, Field: "datatype"}, nil
		}
		o.Datatype = string(datatype)
	}
	if o.Datatype == tmdm.XSDAnyURI { // records have the normal form
		if o.Value, err = iri.Normalize(r.Value); err != nil {
			return o, wrong{Kind: "address", Text: layout.Cut(r.Value), Field: "value"}, nil
		}
	}
	if o.Type, w, err = a.ref(r.Type); w.Kind != "" || err != nil {
		return o, w.at("type"), err
	}
	o.Scope, w, err = a.scope(r.themes)
	return o, w, err
}

// stated reads a statement as the server reads posted documents, so that readers get what was checked.
func (a *applying) stated(statement *fragment.Topic) (*fragment.Map, wrong, error) {
	var m merge.Memory
	if err := m.PutTopic(statement); err != nil {
		return nil, wrong{}, err
	}
	var doc bytes.Buffer
	if err := fragment.Write(&doc, &m, statement.TopicSI(), fragment.Form{Version: xtm.V21, SP: a.sp}); err != nil {
		return nil, wrong{Kind: "refused", Text: err.Error(), Field: "value"}, nil // it has what XML cannot carry
	}
	tm, _, err := a.reader.Read(a.ctx, &doc, formats.Default, texts.TheForm, a.sp)
	if a.ctx.Err() != nil {
		return nil, wrong{}, context.Cause(a.ctx)
	}
	if err != nil {
		return nil, wrong{Kind: "refused", Text: err.Error(), Field: "value"}, nil
	}
	stated, err := fragment.NewMap(tm, a.sp)
	if err != nil {
		return nil, wrong{Kind: "refused", Text: err.Error(), Field: "value"}, nil
	}
	return stated, wrong{}, nil
}

// statement returns the topic with one statement, as the server reads it.
func (a *applying) statement(t *fragment.Topic) (*fragment.Topic, wrong, error) {
	t.Identity = fragment.Identity{SubjectIdentifiers: []tmdm.Locator{a.self}}
	t.Canonical()
	stated, w, err := a.stated(t)
	if w.Kind != "" || err != nil {
		return nil, w, err
	}
	is, err := stated.Topic(a.self)
	if err != nil {
		return nil, wrong{}, err
	}
	if is == nil || len(is.Names) != len(t.Names) || len(is.Occurrences) != len(t.Occurrences) {
		return nil, wrong{Kind: "refused", Text: fmt.Sprintf("%.80q", a.self), Field: "value"}, nil
	}
	return is, wrong{}, nil
}

// associationOf returns the association of the topic with a key; nil if there is none.
func (a *applying) associationOf(key fragment.AssociationKey, part fragment.Part) (*fragment.Association, error) {
	for found, err := range from(a.prior, a.self, part, key) {
		if err != nil {
			return nil, err
		}
		if is := found.Key(); is == key {
			return found, nil
		} else if bytes.Compare(is[:], key[:]) > 0 {
			break
		}
	}
	return nil, nil
}

// after iterates over the associations after a given one, which a source can do without reading those before.
type after interface {
	AssociationsAfter(player fragment.Ref, part fragment.Part,
		after *fragment.AssociationKey) iter.Seq2[*fragment.Association, error]
}

// from iterates over the associations of a topic from a key on.
func from(src fragment.Source, self fragment.Ref, part fragment.Part,
	key fragment.AssociationKey) iter.Seq2[*fragment.Association, error] {
	quick, ok := src.(after)
	if !ok {
		return src.AssociationsOf(self, part)
	}
	before := key
	for i := len(before) - 1; i >= 0; i-- { // the largest key below
		if before[i]--; before[i] != 0xff {
			return quick.AssociationsAfter(self, part, &before)
		}
	}
	return src.AssociationsOf(self, part)
}
