package editing

import (
	"cmp"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/titles"
)

// beneath fills in a new concept below the one with a key: its types and schemes, the broader concept, and the kind and
// language of its first label.
func (d *draft) beneath(v *store.View, key string) error {
	last, err := pages.LastOf(v, key)
	if err != nil {
		return err
	}
	broader, err := v.Source().Topic(last.TopicSI)
	if broader == nil || err != nil {
		return err
	}
	for a, err := range v.Source().AssociationsOf(broader.TopicSI(), fragment.AsInstance) {
		if err != nil || len(d.Types) == mostRoles {
			return err
		}
		class, _, _ := a.TypeInstance()
		d.Types = append(d.Types, typeRow{Type: class.String()})
	}
	if !slices.ContainsFunc(d.Types, func(r typeRow) bool { return r.Type == texts.SKOS+"Concept" }) {
		d.Types = nil
		return nil
	}
	related := func(property, object fragment.Ref) {
		d.Associations = append(d.Associations, associationRow{Type: property.String(), Role: string(fragment.RDFSubject),
			Others: []roleRow{{string(fragment.RDFObject), object.String()}}})
	}
	related(texts.SKOS+"broader", broader.TopicSI())
	for a, err := range v.Source().AssociationsOf(broader.TopicSI(), fragment.AsPlayer) {
		if err != nil || len(d.Associations) == mostRoles {
			return err
		}
		if a.Type == texts.SKOS+"inScheme" && len(a.Roles) == 2 {
			for _, r := range a.Roles {
				if r.Type == fragment.RDFObject && r.Player != broader.TopicSI() {
					related(texts.SKOS+"inScheme", r.Player)
				}
			}
		}
	}
	d.Names = append(d.Names, nameRow{Type: titles.PrefLabel,
		themes: themes{Language: cmp.Or(append(v.Languages(), "")...)}})
	return nil
}
