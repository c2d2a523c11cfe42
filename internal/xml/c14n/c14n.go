// Package c14n writes parts of XML documents in the form of Exclusive XML Canonicalization 1.0.
package c14n

import (
	"cmp"
	"slices"

	"github.com/tmshare/tmshare/internal/xml/scan"
	"github.com/tmshare/tmshare/internal/xml/write"
)

// Canonicalizer writes the content of an element in canonical form, event by event. The zero value is ready for use. It
// is not safe for concurrent use.
type Canonicalizer struct {
	Out      []byte         // the output so far
	rendered []scan.Binding // declarations in the output that are in scope
	outside  []int          // for each open element, the number of bindings outside of it
}

// Text writes text.
func (c *Canonicalizer) Text(text []byte) { c.Out = write.Escape(c.Out, string(text), write.Text) }

// Start writes a start tag with the declarations that it uses and that no output ancestor has, and returns these. They
// are valid until the next event is written.
func (c *Canonicalizer) Start(x *scan.Scanner) []scan.Binding {
	c.outside = append(c.outside, len(c.rendered))
	c.declare(x.Name())
	attrs := slices.Clone(x.Attrs())
	for _, a := range attrs {
		if a.Prefix != "" && a.Prefix != "xml" {
			c.declare(a.Name)
		}
	}
	c.Out = append(c.Out, '<')
	c.Out = appendName(c.Out, x.Name())
	declared := c.rendered[c.outside[len(c.outside)-1]:]
	slices.SortFunc(declared, func(a, b scan.Binding) int { return cmp.Compare(a.Prefix, b.Prefix) })
	for _, b := range declared {
		c.Out = append(c.Out, " xmlns"...)
		if b.Prefix != "" {
			c.Out = append(append(c.Out, ':'), b.Prefix...)
		}
		c.attrValue(b.Space)
	}
	slices.SortFunc(attrs, func(a, b scan.Attr) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), cmp.Compare(a.Local, b.Local))
	})
	for _, a := range attrs {
		c.Out = append(c.Out, ' ')
		c.Out = appendName(c.Out, a.Name)
		c.attrValue(string(a.Value))
	}
	c.Out = append(c.Out, '>')
	return declared
}

// ProcInst writes a processing instruction.
func (c *Canonicalizer) ProcInst(target string, text []byte) {
	c.Out = append(append(c.Out, "<?"...), target...)
	if len(text) > 0 {
		c.Out = append(append(c.Out, ' '), text...)
	}
	c.Out = append(c.Out, "?>"...)
}

// Comment writes a comment, for the form with comments.
func (c *Canonicalizer) Comment(text []byte) {
	c.Out = append(append(append(c.Out, "<!--"...), text...), "-->"...)
}

func (c *Canonicalizer) attrValue(s string) {
	c.Out = append(c.Out, `="`...)
	c.Out = append(write.Escape(c.Out, s, write.Attr), '"')
}

func (c *Canonicalizer) declare(n scan.Name) {
	for i := len(c.rendered) - 1; i >= 0; i-- {
		if c.rendered[i].Prefix == n.Prefix {
			if c.rendered[i].Space == n.Space {
				return
			}
			c.rendered = append(c.rendered, scan.Binding{Prefix: n.Prefix, Space: n.Space})
			return
		}
	}
	if n.Space != "" {
		c.rendered = append(c.rendered, scan.Binding{Prefix: n.Prefix, Space: n.Space})
	}
}

// End writes the end tag of the innermost open element, which has the name n.
func (c *Canonicalizer) End(n scan.Name) {
	c.Out = append(c.Out, "</"...)
	c.Out = append(appendName(c.Out, n), '>')
	last := len(c.outside) - 1
	c.rendered, c.outside = c.rendered[:c.outside[last]], c.outside[:last]
}

func appendName(b []byte, n scan.Name) []byte {
	if n.Prefix != "" {
		b = append(append(b, n.Prefix...), ':')
	}
	return append(b, n.Local...)
}
