package xtm

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// This file writes valid XTM 1.0. Three items have an indirect form: every topic must have an id, so the writer makes
// one if no item identifier provides it; a topic has one subject locator, so each further one gets its own topic
// element that refers to the first; and the reifier of a statement has the statement's id as a subject identifier, so a
// stub topic with the identity of the reifier follows.

// TopicID returns the XML id of a topic whose first subject identifier is l, if no item identifier provides one: "t-"
// and the first 16 bytes of the SHA-256 of l in lower-case base32. It is the same in all documents.
func TopicID(l tmdm.Locator) string {
	return digest("t-", string(l))
}

// madeID returns an id for the topic that r refers to. It depends on the kind of reference, because the same locator
// may identify different topics in each.
func madeID(r Ref) string {
	switch r.Kind {
	case BySubjectLocator:
		return TopicID("=" + r.Locator)
	case ByItemIdentifier:
		return TopicID("^" + r.Locator)
	}
	return TopicID(r.Locator)
}

// topicID is madeID for a topic that is written. It caches ids, because fragments of a map share few types and themes,
// which saves most digests.
func (e *Encoder) topicID(r Ref) string {
	if r.Kind != BySubjectIdentifier {
		return madeID(r)
	}
	id, ok := e.topicIDs[r.Locator]
	if !ok {
		if len(e.topicIDs) == 256 {
			clear(e.topicIDs)
		} else if e.topicIDs == nil {
			e.topicIDs = map[tmdm.Locator]string{}
		}
		id = madeID(r)
		e.topicIDs[r.Locator] = id
	}
	return id
}

// digest returns prefix and the first 16 bytes of the SHA-256 of s in base32.
func digest(prefix, s string) string {
	var buffer [512]byte // on the stack, because ids are many
	sum := sha256.Sum256(append(buffer[:0], s...))
	return string(lowerBase32.AppendEncode(append(buffer[:0], prefix...), sum[:16]))
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// isMade reports whether id looks like one that the encoder makes up.
func isMade(id string) bool {
	return len(id) == 28 && (strings.HasPrefix(id, "t-") || strings.HasPrefix(id, "s-")) || strings.HasPrefix(id, "r-s-")
}

// stub is a topic element to be written for the reifier of a statement.
type stub struct {
	id      string // of the statement
	reifier Ref
}

func (e *Encoder) topicMap10(m *Map) {
	id := e.statement10(m.ItemIdentifiers, m.Reifier, func() string { return "map" })
	e.tag("topicMap")
	e.attr("xmlns", nsXTM1)
	e.attr("xmlns:xlink", nsXLink)
	e.optional("id", id)
	e.content()
	e.writeStubs10()
}

func (e *Encoder) topic10(t *Topic) {
	id, rest := e.topicID10(t)
	e.openID("topic", id)
	for _, r := range t.Types {
		e.refs10("instanceOf", []Ref{r}, false)
	}
	e.subjectIdentity10(t, rest)
	for i := range t.Names {
		e.baseName10(t, &t.Names[i])
	}
	for i := range t.Occurrences {
		e.occurrence10(t, &t.Occurrences[i])
	}
	e.close("topic")
	for _, l := range t.SubjectLocators[min(1, len(t.SubjectLocators)):] {
		e.openID("topic", e.made(madeID(SubjectLocator(l)), SubjectLocator(l)))
		e.open("subjectIdentity")
		e.link("resourceRef", l)
		e.href("topicRef", "#"+id)
		e.close("subjectIdentity")
		e.close("topic")
	}
	e.writeStubs10()
}

// topicID10 returns the id of a topic element and the item identifiers that the
// id does not make. An id that looks made up is not taken from an item
// identifier, lest another topic be given the same.
func (e *Encoder) topicID10(t *Topic) (id string, rest []tmdm.Locator) {
	if t.id != "" {
		return t.id, without(t.ItemIdentifiers, tmdm.Locator(e.prefix+t.id))
	}
	self := t.self()
	if self.IsZero() {
		e.fail("a topic", "it has no identifier, and XTM %s requires an id", e.version)
		return "", nil
	}
	for i, l := range t.ItemIdentifiers {
		if id, ok := e.xmlID(l); ok && !isMade(id) && e.claim(id) {
			return id, withoutAt(t.ItemIdentifiers, i)
		}
	}
	// Made-up ids of topics are not remembered: they differ as topics do.
	id = e.topicID(self)
	if len(t.ItemIdentifiers) == 0 {
		return id, nil
	}
	return id, without(t.ItemIdentifiers, tmdm.Locator(e.prefix+id))
}

func without(list []tmdm.Locator, l tmdm.Locator) []tmdm.Locator {
	if i := slices.Index(list, l); i >= 0 {
		return withoutAt(list, i)
	}
	return list
}

// withoutAt leaves list as it is.
func withoutAt(list []tmdm.Locator, i int) []tmdm.Locator {
	return slices.Concat(list[:i], list[i+1:])
}

func (e *Encoder) subjectIdentity10(t *Topic, iids []tmdm.Locator) {
	if len(t.SubjectIdentifiers)+len(t.SubjectLocators)+len(iids) == 0 {
		return
	}
	e.open("subjectIdentity")
	if len(t.SubjectLocators) > 0 {
		e.link("resourceRef", t.SubjectLocators[0])
	}
	for _, l := range t.SubjectIdentifiers {
		if strings.HasPrefix(string(l), core) && successors[l] != "" {
			e.losses.SubjectIdentifiers++
		}
		e.link("subjectIndicatorRef", l)
	}
	for _, l := range iids {
		e.itemLink("topicRef", l)
	}
	e.close("subjectIdentity")
}

func (e *Encoder) baseName10(t *Topic, n *Name) {
	construct := func() string { return fmt.Sprintf("the name %.100q of %s", n.Value, t.describe()) }
	e.checkText(n.Value, construct)
	id := e.statement10(n.ItemIdentifiers, n.Reifier, func() string { return n.key(t) })
	e.openID("baseName", id)
	if n.Type != (Ref{}) && n.Type != SubjectIdentifier(tmdm.PSIDefaultNameType) {
		if e.NameTypes == OntopiaNameTypes {
			e.refs10("instanceOf", []Ref{n.Type}, false)
		} else {
			e.losses.NameTypes++
		}
	}
	e.refs10("scope", n.Scope, true)
	e.text("baseNameString", n.Value)
	for i := range n.Variants {
		e.variant10(t, n, &n.Variants[i])
	}
	e.close("baseName")
}

func (e *Encoder) variant10(t *Topic, n *Name, v *Variant) {
	parameters := beyond(v.Scope, n.Scope)
	if len(parameters) == 0 {
		parameters = n.Scope // the variant adds no theme, but the element must not be empty
	}
	if len(parameters) == 0 {
		e.losses.Variants++
		return
	}
	construct := func() string {
		return fmt.Sprintf("the variant %.100q of the name %.100q of %s", v.Value, n.Value, t.describe())
	}
	id := e.statement10(v.ItemIdentifiers, v.Reifier, func() string { return n.key(t) + v.key() })
	e.openID("variant", id)
	e.refs10("parameters", parameters, false)
	e.open("variantName")
	e.resource10(v.Value, v.Datatype, construct)
	e.close("variantName")
	e.close("variant")
}

func (e *Encoder) occurrence10(t *Topic, o *Occurrence) {
	construct := func() string { return fmt.Sprintf("the occurrence %.100q of %s", o.Value, t.describe()) }
	id := e.statement10(o.ItemIdentifiers, o.Reifier, func() string { return o.key(t) })
	e.openID("occurrence", id)
	e.type10("instanceOf", o.Type, PSIOccurrence)
	e.refs10("scope", o.Scope, true)
	e.resource10(o.Value, o.Datatype, construct)
	e.close("occurrence")
}

func (e *Encoder) resource10(value, datatype string, construct func() string) {
	e.checkText(value, construct)
	switch {
	case isLocator(value, datatype):
		e.link("resourceRef", tmdm.Locator(value))
		return
	case datatype != tmdm.XSDString && datatype != "":
		e.losses.Datatypes++
	}
	e.text("resourceData", value)
}

func (e *Encoder) association10(a *Association) {
	id := e.statement10(a.ItemIdentifiers, a.Reifier, a.key)
	e.openID("association", id)
	e.type10("instanceOf", a.Type, PSIAssociation)
	e.refs10("scope", a.Scope, true)
	for i := range a.Roles {
		r := &a.Roles[i]
		id := e.statement10(r.ItemIdentifiers, r.Reifier, func() string { return a.key() + r.key() })
		e.openID("member", id)
		e.type10("roleSpec", r.Type, PSIRole)
		e.pointer10(r.Player, true)
		e.close("member")
	}
	if len(a.Roles) == 0 {
		e.tag("member")
		e.buf = append(e.buf, "/>\n"...)
	}
	e.close("association")
	e.writeStubs10()
}

// type10 writes a type, except the one that a reader supplies.
func (e *Encoder) type10(name string, typ Ref, byDefault tmdm.Locator) {
	if !typ.IsZero() && typ != SubjectIdentifier(byDefault) {
		e.refs10(name, []Ref{typ}, false)
	}
}

func (e *Encoder) refs10(name string, refs []Ref, resources bool) {
	if len(refs) == 0 {
		return
	}
	e.open(name)
	for _, r := range refs {
		e.pointer10(r, resources)
	}
	e.close(name)
}

// pointer10 writes a reference. If the DTD allows no resourceRef, it refers to a topic by the id of its element.
func (e *Encoder) pointer10(r Ref, resources bool) {
	switch {
	case r.Kind == ByItemIdentifier:
		e.href("topicRef", e.topicRef(r.Locator))
	case r.Kind == BySubjectIdentifier:
		e.link("subjectIndicatorRef", r.Locator)
	case r.Kind == BySubjectLocator && resources:
		e.link("resourceRef", r.Locator)
	case r.Kind == BySubjectLocator:
		e.href("topicRef", "#"+madeID(r))
	default:
		e.fail("a reference", "it refers to no topic")
	}
}

// statement10 returns the id of a statement; "" if it needs none. A reified statement needs one, and the item
// identifier that provides it is not written otherwise.
func (e *Encoder) statement10(iids []tmdm.Locator, reifier Ref, key func() string) string {
	id := ""
	for _, l := range iids {
		own, ok := e.xmlID(l)
		if ok && id == "" && e.claim(own) {
			id = own
			if reifier.IsZero() {
				continue
			}
		}
		e.losses.ItemIdentifiers++
	}
	if reifier.IsZero() {
		return id
	}
	if id == "" {
		id = e.made(digest("s-", key()), Ref{})
	}
	e.stubs = append(e.stubs, stub{id, reifier})
	return id
}

func (e *Encoder) writeStubs10() {
	for _, s := range e.stubs {
		e.openID("topic", e.made("r-"+s.id, s.reifier))
		e.open("subjectIdentity")
		e.pointer10(s.reifier, true)
		e.href("subjectIndicatorRef", "#"+s.id)
		e.close("subjectIdentity")
		e.close("topic")
	}
	e.stubs = e.stubs[:0]
}

// openID opens an element that has an id, unless that is empty.
func (e *Encoder) openID(name, id string) {
	e.tag(name)
	e.optional("id", id)
	e.content()
}
