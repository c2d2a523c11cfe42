package collections

import (
	"slices"

	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/xtm"
)

// Offer holds the forms in which records are offered from an entry on.
type Offer struct {
	After uint64 // sequence of the entry before
	Forms []xtm.Version
}

// OfferIn begins to offer records in other forms. A record is offered in the forms in force at its last entry: so
// documents of entries never change, and readers learn of each record whose forms change.
func (c *Collection) OfferIn(forms []xtm.Version) {
	slices.Sort(forms) // their order has no meaning
	if slices.Equal(forms, c.RecordForms) {
		return
	}
	if len(c.Offers) == 0 {
		c.Offers = []Offer{{0, c.RecordForms}}
	}
	if last := len(c.Offers) - 1; c.Offers[last].After == c.Head {
		c.Offers = c.Offers[:last:last]
	}
	c.Offers = append(c.Offers[:len(c.Offers):len(c.Offers)], Offer{c.Head, forms})
	c.Restating = true
}

// FormsOf returns the forms of the record whose last entry is e.
func (c *Collection) FormsOf(e *Entry) []xtm.Version {
	forms := c.RecordForms
	for i := len(c.Offers) - 1; i >= 0; i-- {
		if forms = c.Offers[i].Forms; e.Seq > c.Offers[i].After {
			break
		}
	}
	if len(forms) == 0 {
		return rendered.Forms[:]
	}
	return forms
}

// Turns are the sequences after which a setting is switched on or off, alternately. The setting in force when an entry
// was published stays valid for it, so entries and their documents never change.
type Turns []uint64

// holds reports whether it holds for an entry.
func (t Turns) holds(seq uint64) bool {
	n := 0
	for n < len(t) && t[n] < seq {
		n++
	}
	return n%2 == 1
}

// turned returns t with the setting on or off after an entry.
func (t Turns) turned(on bool, head uint64) Turns {
	if on == t.holds(head+1) {
		return t
	}
	if last := len(t) - 1; last >= 0 && t[last] == head {
		return t[:last:last]
	}
	return append(t[:len(t):len(t)], head)
}

// InRDF reports whether the map is offered in RDF now.
func (c *Collection) InRDF() bool { return c.OffersRDF(c.Head + 1) }

// WasInRDF reports whether the map was ever offered in RDF.
func (c *Collection) WasInRDF() bool { return len(c.RDFAfter) > 0 }

// OffersRDF reports whether an entry is offered in RDF.
func (c *Collection) OffersRDF(seq uint64) bool { return c.RDFAfter.holds(seq) }

// OfferRDF begins or ends to offer the map in RDF; nil changes nothing.
func (c *Collection) OfferRDF(on *bool) {
	if on != nil {
		c.RDFAfter = c.RDFAfter.turned(*on, c.Head)
	}
}

// Omit begins to leave the instances out of the fragments of classes, or ends it.
func (c *Collection) Omit(on bool) { c.Omits = c.Omits.turned(on, c.Head) }
