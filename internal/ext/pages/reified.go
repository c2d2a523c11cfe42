package pages

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

// reified is a statement that a topic reifies (ISO 13250-2 §5.1).
type reified struct {
	Kind  texts.Text
	Value *value // of a name, a variant or an occurrence; nil: it is an association or a role
	Of    *link  // the topic that it is about; likewise
	Type  *link  // nil: the default one
	Roles []role
	Scope []link
}

// reifies adds the statements that a topic reifies.
func (d *describer) reifies(described *topic, self fragment.Ref) error {
	for record, err := range d.v.State().ReifiedBy(self) {
		if err == nil && len(described.Reifies) >= mostSorted {
			described.more(texts.MoreReified)
			break
		}
		switch {
		case err != nil:
		case record.Topic != nil:
			err = d.reifiedOf(described, record.Topic, self)
		default:
			err = d.reifiedAssociation(described, record.Association, self)
		}
		if err != nil {
			return err
		}
	}
	described.Reifies, described.Pages[reifiesList] = pageOf(d, reifiesList, d.in.Say(texts.MoreReified), most,
		described.Reifies)
	return nil
}

// reifiedOf adds those of a topic.
func (d *describer) reifiedOf(described *topic, t *fragment.Topic, self fragment.Ref) (err error) {
	about, err := d.link(t.TopicSI())
	if err != nil {
		return err
	}
	add := func(kind texts.Text, text string, typ fragment.Ref, scope []fragment.Ref) {
		v := valueOf(text, scope)
		what := reified{Kind: kind, Value: &v, Of: &about}
		if err == nil && typ != "" {
			var l link
			l, err = d.link(typ)
			what.Type = &l
		}
		if err == nil {
			what.Scope, err = d.links(scope)
		}
		described.Reifies = append(described.Reifies, what)
	}
	for i := range t.Names {
		n := &t.Names[i]
		if n.Reifier == self {
			add(texts.Name, n.Value, shownType(n.Type), n.Scope)
		}
		for _, v := range n.Variants {
			if v.Reifier == self {
				add(texts.Variant, v.Value, "", v.Scope)
			}
		}
	}
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; o.Reifier == self {
			add(texts.Occurrence, o.Value, o.Type, o.Scope)
		}
	}
	return err
}

// reifiedAssociation adds an association, or a role of it that is reified, with all its roles.
func (d *describer) reifiedAssociation(described *topic, a *fragment.Association, self fragment.Ref) error {
	what := reified{Kind: texts.Association}
	if a.Reifier != self {
		what.Kind = texts.RoleIn
	}
	typ, err := d.link(a.Type)
	if err != nil {
		return err
	}
	what.Type = &typ
	for _, r := range atMost(described, texts.MoreRoles, a.Roles) {
		if a.Reifier != self && r.Reifier != self {
			continue
		}
		var shown role
		if shown.Type, err = d.link(r.Type); err != nil {
			return err
		}
		if shown.Player, err = d.link(r.Player); err != nil {
			return err
		}
		what.Roles = append(what.Roles, shown)
	}
	what.Scope, err = d.links(a.Scope)
	described.Reifies = append(described.Reifies, what)
	return err
}
