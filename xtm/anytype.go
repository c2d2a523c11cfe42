package xtm

import (
	"cmp"
	"io"
	"slices"
	"strings"
)

// embedded returns the content of the resourceData element that started, in
// the form that ISO 13250-3 §4.16.3 (Canonicalizing embedded XML) makes the
// value: Exclusive XML Canonicalization 1.0, without comments. Processing
// instructions are left out.
func (d *Decoder) embedded() string {
	var c canonicalizer
	for depth := d.tok.depth; d.err == nil; {
		switch d.next() {
		case startElement:
			c.start(d.tok)
		case textEvent:
			c.out = appendEscaped(c.out, string(d.tok.text), false)
		case endElement:
			if d.tok.depth == depth {
				return string(c.out)
			}
			c.end(d.tok.name)
		}
	}
	return ""
}

// isEmbedded reports whether value is what embedded would return for it, so
// that it can be written as markup.
func isEmbedded(value string) bool {
	d := Decoder{
		tok:   newTokenizer(strings.NewReader("<r>"+value+"</r>"), "", Limits{Token: len(value) + 16}, false),
		bases: []scopedBase{{-1, ""}},
	}
	d.next()
	c := d.embedded()
	if d.err != nil || c != value {
		return false
	}
	d.next()
	return d.err == io.EOF
}

type canonicalizer struct {
	out      []byte
	rendered []binding // declarations in the output that are in scope
	outside  []int     // for each open element, how many there were outside of it
}

// start writes a start tag with the declarations that it makes use of and no
// output ancestor has made.
func (c *canonicalizer) start(t *tokenizer) {
	c.outside = append(c.outside, len(c.rendered))
	c.declare(t.name)
	attrs := slices.Clone(t.attrs)
	for _, a := range attrs {
		if a.name.prefix != "" && a.name.prefix != "xml" {
			c.declare(a.name)
		}
	}
	c.out = append(c.out, '<')
	c.out = appendName(c.out, t.name)
	declared := c.rendered[c.outside[len(c.outside)-1]:]
	slices.SortFunc(declared, func(a, b binding) int { return cmp.Compare(a.prefix, b.prefix) })
	for _, b := range declared {
		c.out = append(c.out, " xmlns"...)
		if b.prefix != "" {
			c.out = append(append(c.out, ':'), b.prefix...)
		}
		c.attrValue(b.space)
	}
	slices.SortFunc(attrs, func(a, b xmlAttr) int {
		return cmp.Or(cmp.Compare(a.name.space, b.name.space), cmp.Compare(a.name.local, b.name.local))
	})
	for _, a := range attrs {
		c.out = append(c.out, ' ')
		c.out = appendName(c.out, a.name)
		c.attrValue(a.value)
	}
	c.out = append(c.out, '>')
}

func (c *canonicalizer) attrValue(s string) {
	c.out = append(c.out, `="`...)
	c.out = append(appendEscaped(c.out, s, true), '"')
}

func (c *canonicalizer) declare(n xmlName) {
	for i := len(c.rendered) - 1; i >= 0; i-- {
		if c.rendered[i].prefix == n.prefix {
			if c.rendered[i].space == n.space {
				return
			}
			c.rendered = append(c.rendered, binding{n.prefix, n.space})
			return
		}
	}
	if n.space != "" {
		c.rendered = append(c.rendered, binding{n.prefix, n.space})
	}
}

func (c *canonicalizer) end(n xmlName) {
	c.out = append(c.out, "</"...)
	c.out = append(appendName(c.out, n), '>')
	last := len(c.outside) - 1
	c.rendered, c.outside = c.rendered[:c.outside[last]], c.outside[:last]
}

func appendName(b []byte, n xmlName) []byte {
	if n.prefix != "" {
		b = append(append(b, n.prefix...), ':')
	}
	return append(b, n.local...)
}

// appendEscaped appends s as character data, or as the value of an attribute in
// double quotes.
func appendEscaped(b []byte, s string, attr bool) []byte {
	from := 0
	for i := range len(s) {
		var esc string
		switch s[i] {
		case '&':
			esc = "&amp;"
		case '<':
			esc = "&lt;"
		case '\r':
			esc = "&#xD;"
		case '>':
			if attr {
				continue
			}
			esc = "&gt;"
		case '"':
			if !attr {
				continue
			}
			esc = "&quot;"
		case '\t':
			if !attr {
				continue
			}
			esc = "&#x9;"
		case '\n':
			if !attr {
				continue
			}
			esc = "&#xA;"
		default:
			continue
		}
		b = append(append(b, s[from:i]...), esc...)
		from = i + 1
	}
	return append(b, s[from:]...)
}
