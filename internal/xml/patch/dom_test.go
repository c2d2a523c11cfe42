package patch

import (
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// An applier of patches that works on trees, as RFC 5261 has it, and shares nothing with ours.

type tree struct {
	name     xml.Name // as resolved
	raw      string   // as written
	attrs    []string // of namespaces, too, as written
	text     string   // of a text node
	parent   *tree
	children []*tree
}

func parseTree(t require.TestingT, document string) *tree {
	root := &tree{}
	at := root
	scopes := []map[string]string{{"xml": "http://www.w3.org/XML/1998/namespace"}}
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			require.Equal(t, root, at, "%s", document)
			return root
		}
		require.NoError(t, err, "%s", document)
		switch token := token.(type) {
		case xml.StartElement:
			scope := map[string]string{}
			for prefix, space := range scopes[len(scopes)-1] {
				scope[prefix] = space
			}
			n := &tree{raw: rawName(token.Name), parent: at}
			for _, a := range token.Attr {
				switch {
				case a.Name.Space == "xmlns":
					scope[a.Name.Local] = a.Value
				case a.Name.Space == "" && a.Name.Local == "xmlns":
					scope[""] = a.Value
				}
				n.attrs = append(n.attrs, fmt.Sprintf("%s=%q", rawName(a.Name), a.Value))
			}
			scopes = append(scopes, scope)
			space, declared := scope[token.Name.Space]
			require.True(t, declared || token.Name.Space == "", "%s in %s", n.raw, document)
			n.name = xml.Name{Space: space, Local: token.Name.Local}
			slices.Sort(n.attrs)
			at.children = append(at.children, n)
			at = n
		case xml.EndElement:
			at, scopes = at.parent, scopes[:len(scopes)-1]
		case xml.CharData:
			if at != root {
				at.children = append(at.children, &tree{text: string(token), parent: at})
			}
		}
	}
}

func rawName(n xml.Name) string {
	if n.Space != "" {
		return n.Space + ":" + n.Local
	}
	return n.Local
}

// String writes a tree with the names that it has, and with the names that these stand for.
func (n *tree) String() string {
	var b strings.Builder
	n.write(&b, true)
	return b.String()
}

// XML writes a tree as it was written.
func (n *tree) XML() string {
	var b strings.Builder
	n.write(&b, false)
	return b.String()
}

func (n *tree) write(b *strings.Builder, resolved bool) {
	if n.raw == "" {
		_ = xml.EscapeText(b, []byte(n.text))
	} else {
		fmt.Fprintf(b, "<%s", n.raw)
		if resolved {
			fmt.Fprintf(b, " {%s}", n.name.Space)
		}
		for _, a := range n.attrs {
			b.WriteString(" " + a)
		}
		b.WriteString(">")
	}
	for _, c := range n.children {
		c.write(b, resolved)
	}
	if n.raw != "" {
		fmt.Fprintf(b, "</%s>", n.raw)
	}
}

func (n *tree) elements() (all []*tree) {
	for _, c := range n.children {
		if c.raw != "" {
			all = append(all, c)
		}
	}
	return all
}

func (n *tree) attr(name string) string {
	for _, a := range n.attrs {
		if value, ok := strings.CutPrefix(a, name+"="); ok {
			s, _ := strconv.Unquote(value)
			return s
		}
	}
	return ""
}

func (n *tree) index() int { return slices.Index(n.parent.children, n) }

var selectorStep = regexp.MustCompile(`^/\*(?:\[(\d+)\])?`)

// find evaluates a selector (RFC 5261 §4.1, Locating the Target of a Patch): it must select one
// node.
func (n *tree) find(t require.TestingT, selector string) *tree {
	for rest := selector; rest != ""; {
		m := selectorStep.FindStringSubmatch(rest)
		require.NotNil(t, m, selector)
		all := n.elements()
		if m[1] == "" {
			require.Len(t, all, 1, "unique: %s", selector)
			n = all[0]
		} else {
			i, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			require.LessOrEqual(t, i, len(all), selector)
			n = all[i-1]
		}
		rest = rest[len(m[0]):]
	}
	return n
}

// applyTree applies a patch to a document.
func applyTree(t require.TestingT, before, patch string) *tree {
	root := parseTree(t, before)
	p := parseTree(t, patch).elements()
	require.Len(t, p, 1)
	require.Equal(t, xml.Name{Space: "urn:ietf:rfc:7351", Local: "patch"}, p[0].name)
	for _, o := range p[0].elements() {
		require.Equal(t, "urn:ietf:rfc:7351", o.name.Space)
		target := root.find(t, o.attr("sel"))
		switch o.name.Local {
		case "add": // RFC 5261 §4.3
			parent, at := target, len(target.children)
			if pos := o.attr("pos"); pos != "" {
				require.Equal(t, "before", pos)
				parent, at = target.parent, target.index()
			}
			for _, c := range o.children {
				c.parent = parent
			}
			parent.children = slices.Insert(parent.children, at, o.children...)
		case "replace": // §4.4: by one node of the same type
			require.Len(t, o.children, 1)
			require.NotEmpty(t, o.children[0].raw)
			o.children[0].parent = target.parent
			target.parent.children[target.index()] = o.children[0]
		case "remove": // §4.5
			i, parent := target.index(), target.parent
			if ws := o.attr("ws"); ws != "" {
				require.Equal(t, "after", ws)
				require.Less(t, i+1, len(parent.children), "invalid-whitespace-directive")
				space := parent.children[i+1]
				require.True(t, space.raw == "" && space.text != "" && strings.TrimSpace(space.text) == "", "invalid-whitespace-directive")
				parent.children = slices.Delete(parent.children, i+1, i+2)
			}
			parent.children = slices.Delete(parent.children, i, i+1)
		default:
			require.Fail(t, "no operation", o.name.Local)
		}
	}
	return root
}
