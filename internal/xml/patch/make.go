package patch

import (
	"slices"
	"strconv"
	"strings"
)

// worthALook is the length of an element from which on it is looked into, rather than
// replaced.
const worthALook = 200

// Make returns the patch from before to after; it is deterministic. The error is ErrNone if there is no patch, as for
// documents with a DTD, or in another encoding than UTF-8.
//
// The operations go from the end of the document to its beginning, so that each selects by positions in before,
// although each is applied to the result of the previous ones (RFC 5261 §4, Patch Operations).
func Make(before, after []byte) ([]byte, error) {
	a, err := parse(string(before))
	if err != nil {
		return nil, err
	}
	b, err := parse(string(after))
	if err != nil {
		return nil, err
	}
	if a.prolog != b.prolog || a.epilog != b.epilog {
		return nil, ErrNone
	}
	m := &maker{}
	if err := m.begin(a.root); err != nil {
		return nil, err
	}
	if a.root != b.root && !m.inside("/*", a.root, b.root, 0) || m.operations > maxOperations {
		return nil, ErrNone
	}
	m.add("</", m.prefix, ":patch>\n")
	return m.out, nil
}

// maker writes a patch.
type maker struct {
	prefix     string // of the elements of the patch
	out        []byte
	operations int
}

func (m *maker) add(parts ...string) {
	for _, p := range parts {
		m.out = append(m.out, p...)
	}
}

// begin writes the tag of the patch. It declares the namespaces of the document for the content that the patch adds
// (RFC 5261 §4.2.2, Departures from XPath Requirements).
func (m *maker) begin(root string) error {
	end, err := tagEnd(root, 0)
	if err != nil {
		return err
	}
	_, declared, err := attributes(root[:end])
	if err != nil {
		return err
	}
	m.prefix = freePrefix(declared)
	m.add("<", m.prefix, ":patch xmlns:", m.prefix, `="`, namespace, `"`)
	for _, d := range declared {
		if d.declares() {
			m.add(" ", d.raw)
		}
	}
	m.add(">\n")
	return nil
}

// freePrefix returns a prefix that a document does not declare.
func freePrefix(declared []attribute) string {
	for n := 0; ; n++ {
		prefix := "p" + strings.TrimPrefix(strconv.Itoa(n), "0")
		if !slices.ContainsFunc(declared, func(d attribute) bool { return d.name == "xmlns:"+prefix }) {
			return prefix
		}
	}
}

// inside writes the operations from element a, at path, to element b, if only their child elements differ. Otherwise it
// returns false, and the caller drops its output.
func (m *maker) inside(path, a, b string, depth int) bool {
	from, err := split(a)
	if err != nil {
		return false
	}
	to, err := split(b)
	if err != nil || from.open != to.open || from.end != to.end {
		return false
	}
	if depth > 0 && declaresNamespaces(from.open[:from.tag]) {
		return false // added content would lack them
	}
	hunks := align(from.children, to.children)
	for _, h := range slices.Backward(hunks) {
		m.hunk(path, h, from.children, to.children, depth)
	}
	return true
}

// hunk writes the operations from one sequence of elements to the other, from the end.
func (m *maker) hunk(path string, h hunk, from, to []child, depth int) {
	both := min(h.b-h.a, h.d-h.c)
	if new := to[h.c+both : h.d]; len(new) > 0 {
		if h.b < len(from) {
			m.insert(path, h.b, new)
		} else {
			m.operation("add", path, "")
			m.addAll(new)
			m.close("add")
		}
	}
	for i := h.b - 1; i >= h.a+both; i-- {
		m.remove(path, i, from[i])
	}
	for i := both - 1; i >= 0; i-- {
		m.change(path, h.a+i, from[h.a+i], to[h.c+i], depth)
	}
}

// change writes the operations from one element to another at the position i.
func (m *maker) change(path string, i int, from, to child, depth int) {
	switch {
	case from == to:
	case from.tail() != to.tail():
		m.insert(path, i, []child{to})
		m.remove(path, i+1, from)
	default:
		at := step(path, i)
		if depth < maxDepth && len(from.all) >= worthALook && len(to.all) >= worthALook {
			written, operations := len(m.out), m.operations
			if m.inside(at, from.raw(), to.raw(), depth+1) && len(m.out)-written <= len(to.all) {
				return
			}
			m.out, m.operations = m.out[:written], operations
		}
		m.operation("replace", at, "")
		m.add(to.raw())
		m.close("replace")
	}
}

// insert writes elements before the one with an index.
func (m *maker) insert(path string, i int, new []child) {
	m.operation("add", step(path, i), ` pos="before"`)
	m.addAll(new)
	m.close("add")
}

func (m *maker) addAll(all []child) {
	for _, c := range all {
		m.add(c.all)
	}
}

// remove removes an element with the white space after it (RFC 5261 §4.5).
func (m *maker) remove(path string, i int, c child) {
	space := ""
	if c.tail() != "" {
		space = ` ws="after"`
	}
	m.operation("remove", step(path, i), space)
	m.out = append(m.out[:len(m.out)-1], "/>\n"...)
}

// step returns the selector of the element with an index in the one at path.
func step(path string, i int) string { return path + "/*[" + strconv.Itoa(i+1) + "]" }

func (m *maker) operation(name, selector, rest string) {
	m.operations++
	m.add("<", m.prefix, ":", name, ` sel="`, selector, `"`, rest, ">")
}

func (m *maker) close(name string) { m.add("</", m.prefix, ":", name, ">\n") }
