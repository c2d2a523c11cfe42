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
func (d *describer) reifies(of *topic, self fragment.Ref) error {
	for record, err := range d.v.State().ReifiedBy(self) {
		if err == nil && len(of.Reifies) >= mostSorted {
			of.more(texts.MoreReified)
			break
		}
		switch {
		case err != nil:
		case record.Topic != nil:
			err = d.reifiedOf(of, record.Topic, self)
		default:
			err = d.reifiedAssociation(of, record.Association, self)
		}
		if err != nil {
			return err
		}
	}
	of.Reifies, of.Pages[reifiesList] = pageOf(d, reifiesList, d.in.Say(texts.MoreReified), most, of.Reifies)
	return nil
}

// reifiedOf adds those of a topic.
func (d *describer) reifiedOf(of *topic, t *fragment.Topic, self fragment.Ref) (err error) {
	about, err := d.link(t.TopicSI())
	if err != nil {
		return err
	}
	add := func(kind texts.Text, text string, typ fragment.Ref, scope []fragment.Ref) {
		v := valueOf(text, scope)
		said := reified{Kind: kind, Value: &v, Of: &about}
		if err == nil && typ != "" {
			var l link
			l, err = d.link(typ)
			said.Type = &l
		}
		if err == nil {
			said.Scope, err = d.links(scope)
		}
		of.Reifies = append(of.Reifies, said)
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
func (d *describer) reifiedAssociation(of *topic, a *fragment.Association, self fragment.Ref) error {
	said := reified{Kind: texts.Association}
	if a.Reifier != self {
		said.Kind = texts.RoleIn
	}
	typ, err := d.link(a.Type)
	if err != nil {
		return err
	}
	said.Type = &typ
	for _, r := range atMost(of, texts.MoreRoles, a.Roles) {
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
		said.Roles = append(said.Roles, shown)
	}
	said.Scope, err = d.links(a.Scope)
	of.Reifies = append(of.Reifies, said)
	return err
}
