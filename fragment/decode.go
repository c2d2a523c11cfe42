package fragment

import (
	"bytes"
	"encoding/binary"

	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Decoder decodes stored forms, one after the other. A record is valid until the next one is decoded, as its memory is
// reused. It is not safe for concurrent use.
type Decoder struct {
	lastTopic       Topic
	lastAssociation Association
	locators        []tmdm.Locator // lists are slices of it
	capacity        int            // the number of locators to allocate at once; 0: those of one list
}

// Topic is [UnmarshalTopic].
func (d *Decoder) Topic(b []byte) (*Topic, error) {
	d.locators, d.capacity = d.locators[:0], passingRefs
	return d.topic(b, &d.lastTopic)
}

// Association is [UnmarshalAssociation].
func (d *Decoder) Association(b []byte) (*Association, error) {
	d.locators, d.capacity = d.locators[:0], passingRefs
	return d.association(b, &d.lastAssociation)
}

func (d *Decoder) topic(b []byte, t *Topic) (*Topic, error) {
	if len(b) == 0 {
		return nil, ErrCorrupt
	}
	outer := reader[string]{rest: string(b[1:])}
	r := reader[string]{rest: outer.text()}
	t.Provisional = b[0]&1 != 0
	t.SubjectIdentifiers, t.SubjectLocators = d.list(&r), d.list(&r)
	t.Names = resize(t.Names, r.count())
	for i := range t.Names {
		n := &t.Names[i]
		n.Value, n.Type, n.Scope, n.Reifier = r.text(), Ref(r.text()), d.list(&r), Ref(r.text())
		n.Variants = resize(n.Variants, r.count())
		for j := range n.Variants {
			v := &n.Variants[j]
			v.Value, v.Datatype, v.Scope, v.Reifier = r.text(), r.text(), d.list(&r), Ref(r.text())
		}
	}
	t.Occurrences = resize(t.Occurrences, r.count())
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		o.Value, o.Datatype, o.Type, o.Scope, o.Reifier = r.text(), r.text(), Ref(r.text()), d.list(&r), Ref(r.text())
	}
	for i := range t.Names {
		t.Names[i].ItemIdentifiers = d.list(&outer)
		for j := range t.Names[i].Variants {
			t.Names[i].Variants[j].ItemIdentifiers = d.list(&outer)
		}
	}
	for i := range t.Occurrences {
		t.Occurrences[i].ItemIdentifiers = d.list(&outer)
	}
	if !r.done() || !outer.done() || len(t.SubjectIdentifiers) == 0 {
		return nil, ErrCorrupt
	}
	return t, nil
}

func (d *Decoder) association(b []byte, a *Association) (*Association, error) {
	outer := reader[string]{rest: string(b)}
	r := reader[string]{rest: outer.text()}
	a.Type, a.Scope, a.Reifier = Ref(r.text()), d.list(&r), Ref(r.text())
	a.Roles = resize(a.Roles, r.count())
	for i := range a.Roles {
		role := &a.Roles[i]
		role.Type, role.Player, role.Reifier = Ref(r.text()), Ref(r.text()), Ref(r.text())
	}
	a.ItemIdentifiers = d.list(&outer)
	for i := range a.Roles {
		a.Roles[i].ItemIdentifiers = d.list(&outer)
	}
	if !r.done() || !outer.done() || len(a.Roles) == 0 {
		return nil, ErrCorrupt
	}
	return a, nil
}

// list reads a list of locators.
func (d *Decoder) list(r *reader[string]) []tmdm.Locator {
	n := r.count()
	if n == 0 {
		return nil
	}
	start := len(d.locators)
	if start+n > cap(d.locators) {
		start, d.locators = 0, make([]tmdm.Locator, 0, max(d.capacity, n))
	}
	for range n {
		d.locators = append(d.locators, Ref(r.text()))
	}
	return d.locators[start:len(d.locators):len(d.locators)]
}

// LeastPlayer returns the least player in the stored form of an association, without decoding it as a whole. It is nil
// where the bytes are no such form.
func LeastPlayer(record []byte) (least []byte) {
	r := reader[[]byte]{rest: AssociationContent(record)}
	r.text() // the type
	for range r.count() {
		r.text() // of the scope
	}
	r.text() // the reifier
	for range r.count() {
		r.text() // the type
		if player := r.text(); least == nil || bytes.Compare(player, least) < 0 {
			least = player
		}
		r.text() // the reifier
	}
	if r.bad {
		return nil
	}
	return least
}

// storedTitle returns the title of a topic from its stored form, as [Topic.Title] does, without decoding it as a whole.
// final reports that no label that is a resource takes precedence.
func storedTitle(record []byte, languages []string) (title string, final bool, err error) {
	r := reader[[]byte]{rest: TopicContent(record)}
	identifiers := r.count()
	if identifiers == 0 {
		return "", false, ErrCorrupt
	}
	topicSI := r.text()
	r.skip(identifiers - 1)
	r.skip(r.count()) // subject locators
	best := titles.Chooser[[]byte]{Languages: languages}
	for range r.count() {
		r.name(&best, r.text(), r.text())
		r.skip(1) // the reifier
		for range r.count() {
			r.skip(2)
			r.skip(r.count() + 1)
		}
	}
	if _, named := best.Best(); !named { // the topic may be a label of SKOS-XL
		for range r.count() {
			value, _, typ := r.text(), r.text(), r.text()
			if string(typ) == titles.LiteralForm {
				r.name(&best, value, typ)
			} else {
				r.skip(r.count())
			}
			r.skip(1) // the reifier
		}
	}
	if r.bad {
		return "", false, ErrCorrupt
	}
	if title, ok := best.Best(); ok {
		return string(title), best.Final(), nil
	}
	return Ref(topicSI).String(), false, nil
}

// name reads the scope of a name, and gives the name to a chooser.
func (r *reader[T]) name(best *titles.Chooser[T], value, typ T) {
	best.Name(value)
	best.Type(typ)
	for range r.count() {
		if theme := r.text(); !best.Loses() {
			best.Theme(theme)
		}
	}
	best.End()
}

// reader reads texts, which share the memory of the stored form.
type reader[T string | []byte] struct {
	rest T
	bad  bool
}

func (r *reader[T]) done() bool { return !r.bad && len(r.rest) == 0 }

// count reads the number of items that follow. Each has at least one byte, so a larger number is corrupt.
func (r *reader[T]) count() int {
	var n uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		n |= uint64(r.rest[i]&0x7F) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			if n > uint64(len(r.rest)) {
				break
			}
			return int(n)
		}
	}
	r.bad, r.rest = true, r.rest[:0]
	return 0
}

// skip skips n texts.
func (r *reader[T]) skip(n int) {
	for range n {
		r.text()
	}
}

func (r *reader[T]) text() T {
	n := r.count()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
