package xtm

import (
	"fmt"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/write"
	"github.com/tmshare/tmshare/tmdm"
)

// This file writes locators. Readers resolve and normalise locators, so a locator that would change is refused.

// link writes an element whose only content is a reference to l.
func (e *Encoder) link(name string, l tmdm.Locator) {
	if !isPlainLocator(string(l)) {
		e.checkLocator(string(l))
		e.href(name, string(l))
		return
	}
	e.hrefTag(name)
	e.buf = append(append(e.buf, l...), "\"/>\n"...)
}

// itemLink writes an element that refers to the item identifier l, relative to
// the base where it can be.
func (e *Encoder) itemLink(name string, l tmdm.Locator) {
	e.checkLocator(string(l))
	e.href(name, e.relative(l))
}

// topicRef returns a reference to the topic with the item identifier l. If the document has no base, it may be a
// generated id.
func (e *Encoder) topicRef(l tmdm.Locator) string {
	if e.prefix != noBase || l == "" || l[0] != '#' {
		e.checkLocator(string(l))
	}
	return e.relative(l)
}

// href writes an element with only an href.
func (e *Encoder) href(name, to string) {
	e.hrefTag(name)
	e.locatorValue(to)
	e.buf = append(e.buf, "/>\n"...)
}

// hrefTag begins the start tag of an element that refers, up to the locator.
func (e *Encoder) hrefTag(name string) {
	e.tag(name)
	if e.version == V10 {
		e.buf = append(e.buf, ` xlink:href="`...)
	} else {
		e.buf = append(e.buf, ` href="`...)
	}
}

// locatorAttr adds an attribute that holds a locator.
func (e *Encoder) locatorAttr(name, l string) {
	e.buf = append(append(append(e.buf, ' '), name...), `="`...)
	e.locatorValue(l)
}

// locatorValue ends an attribute that holds a locator.
func (e *Encoder) locatorValue(l string) {
	if write.Plain(l, write.Attr|write.Space|write.NonASCII) == len(l) {
		e.buf = append(append(e.buf, l...), '"')
	} else {
		e.attrValue(iri.Escape(l))
	}
}

// checkLocator fails where l is not in the normal form of locators.
func (e *Encoder) checkLocator(l string) {
	if isPlainLocator(l) || e.err != nil {
		return
	}
	e.checkText(l, func() string { return fmt.Sprintf("the locator %.100q", l) })
	switch normal, err := iri.Normalize(l); {
	case err != nil:
		e.fail(fmt.Sprintf("the locator %.100q", l), "it %s; tmdm.ParseLocator makes locators that can be written",
			reasonOf(err))
	case normal != l:
		e.fail(fmt.Sprintf("the locator %.100q", l),
			"readers would take it for %.100q, its normal form; tmdm.ParseLocator makes that", normal)
	}
}

// isPlainLocator reports whether l is in normal form and is written as it stands,
// as far as that shows without a closer look.
func isPlainLocator(l string) bool {
	for i := range len(l) {
		switch c := l[i]; {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return i > 0 && c == ':' && write.Plain(l[i:], write.Attr|write.Space|write.NonASCII|write.Unnormal) == len(l)-i
		}
	}
	return false
}

// isLocator reports whether a value is an IRI that survives being written as a
// reference: one in the normal form of locators.
func isLocator(value, datatype string) bool {
	if datatype != tmdm.XSDAnyURI {
		return false
	}
	if isPlainLocator(value) {
		return true
	}
	normal, err := iri.Normalize(value)
	return err == nil && normal == value
}

// relative returns the form in which a reference to an item identifier is written.
func (e *Encoder) relative(l tmdm.Locator) string {
	if e.prefix != "" && len(l) > len(e.prefix) && string(l[:len(e.prefix)]) == e.prefix {
		return string(l[len(e.prefix)-1:])
	}
	return string(l)
}
