package xtm

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/internal/xml/write"
)

// embedded returns the content of the resourceData element that started, in
// the form that ISO 13250-3 §4.16.3 (Canonicalizing embedded XML) makes the
// value: Exclusive XML Canonicalization 1.0, without comments.
func (d *Decoder) embedded() string {
	var c canonicalizer
	held := 0 // of c.out
	for depth := d.xml.Depth(); d.err == nil; {
		d.hold(len(c.out) - held)
		held = len(c.out)
		if len(c.out) > d.limits.Token {
			d.failLimit(limitReasons["Token"], d.limits.Token)
			c.out, held = c.out[:0], 0
		}
		switch d.next() {
		case scan.StartElement:
			d.declared(c.start(d.xml))
		case scan.Text:
			c.out = write.Escape(c.out, string(d.xml.Text()), write.Text)
		case scan.ProcInst:
			c.procInst(d.xml.Target(), d.xml.Text())
		case scan.EndElement:
			if d.xml.Depth() == depth {
				return string(c.out)
			}
			c.end(d.xml.Name())
		}
	}
	return ""
}

// declared counts the declarations that a start tag of the value makes: in the
// document there may be one of them for many values.
func (d *Decoder) declared(bindings []binding) {
	for _, b := range bindings {
		if len(b.space) > d.limits.Locator {
			d.failLimit("the name of a namespace of %d bytes is too long (%d at most): %s", len(b.space), d.limits.Locator, excerpt(b.space))
		}
		d.grow(len(b.space))
	}
}

// isEmbedded reports whether value is what embedded would return for it, so
// that it can be written as markup.
func isEmbedded(value string) bool {
	o := Options{Limits: Limits{Token: len(value) + 16, Locator: len(value) + 16}.withDefaults()}
	d := Decoder{
		limits: o.Limits,
		xml:    newScanner(strings.NewReader("<r>"+value+"</r>"), o, o.Limits),
		bases:  []scopedBase{{depth: -1}},
	}
	d.next()
	c := d.embedded()
	if d.err != nil || c != value {
		return false
	}
	d.next()
	return d.err == io.EOF
}

// binding is the declaration of a namespace.
type binding struct{ prefix, space string }

type canonicalizer struct {
	out      []byte
	rendered []binding // declarations in the output that are in scope
	outside  []int     // for each open element, how many there were outside of it
}

// start writes a start tag with the declarations that it makes use of and no
// output ancestor has made, and returns these.
func (c *canonicalizer) start(x *scan.Scanner) []binding {
	c.outside = append(c.outside, len(c.rendered))
	c.declare(x.Name())
	attrs := slices.Clone(x.Attrs())
	for _, a := range attrs {
		if a.Prefix != "" && a.Prefix != "xml" {
			c.declare(a.Name)
		}
	}
	c.out = append(c.out, '<')
	c.out = appendName(c.out, x.Name())
	declared := c.rendered[c.outside[len(c.outside)-1]:]
	slices.SortFunc(declared, func(a, b binding) int { return cmp.Compare(a.prefix, b.prefix) })
	for _, b := range declared {
		c.out = append(c.out, " xmlns"...)
		if b.prefix != "" {
			c.out = append(append(c.out, ':'), b.prefix...)
		}
		c.attrValue(b.space)
	}
	slices.SortFunc(attrs, func(a, b scan.Attr) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Local, b.Local))
	})
	for _, a := range attrs {
		c.out = append(c.out, ' ')
		c.out = appendName(c.out, a.Name)
		c.attrValue(string(a.Value))
	}
	c.out = append(c.out, '>')
	return declared
}

func (c *canonicalizer) procInst(target string, text []byte) {
	c.out = append(append(c.out, "<?"...), target...)
	if len(text) > 0 {
		c.out = append(append(c.out, ' '), text...)
	}
	c.out = append(c.out, "?>"...)
}

func (c *canonicalizer) attrValue(s string) {
	c.out = append(c.out, `="`...)
	c.out = append(write.Escape(c.out, s, write.Attr), '"')
}

func (c *canonicalizer) declare(n scan.Name) {
	for i := len(c.rendered) - 1; i >= 0; i-- {
		if c.rendered[i].prefix == n.Prefix {
			if c.rendered[i].space == n.Space {
				return
			}
			c.rendered = append(c.rendered, binding{n.Prefix, n.Space})
			return
		}
	}
	if n.Space != "" {
		c.rendered = append(c.rendered, binding{n.Prefix, n.Space})
	}
}

func (c *canonicalizer) end(n scan.Name) {
	c.out = append(c.out, "</"...)
	c.out = append(appendName(c.out, n), '>')
	last := len(c.outside) - 1
	c.rendered, c.outside = c.rendered[:c.outside[last]], c.outside[:last]
}

func appendName(b []byte, n scan.Name) []byte {
	if n.Prefix != "" {
		b = append(append(b, n.Prefix...), ':')
	}
	return append(b, n.Local...)
}
