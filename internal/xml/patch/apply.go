package patch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Apply applies a patch to a document. It supports the part of RFC 5261 that [Make] writes, and returns an error for
// anything else. Because patches may be hostile, callers must compare the result with a hash.
func Apply(before, patch []byte) ([]byte, error) {
	d, err := parse(string(before))
	if err != nil {
		return nil, err
	}
	p, err := parse(string(patch))
	if err != nil {
		return nil, err
	}
	operations, err := readPatch(p.root, d.root)
	if err != nil {
		return nil, err
	}
	if err := wellFormed(patch); err != nil {
		return nil, err
	}
	root := &node{child: child{d.root, len(d.root)}}
	moves := 0
	for i := range operations {
		if err := operations[i].apply(root, &moves); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	out := make([]byte, 0, len(before)+len(patch))
	out = append(out, d.prolog...)
	out = root.appendTo(out)
	return append(out, d.epilog...), nil
}

// operation is an operation of a patch.
type operation struct {
	name     string // add, remove, replace
	selector []int  // indices of elements, from the root's on
	before   bool   // add: in front of the selected element, not as the last one in it
	space    bool   // remove: also the white space after it
	content  []*node
}

// readPatch reads the operations of a patch for a document with a root element. Both must
// declare the same namespaces: prefixes stay as they are when bytes are taken over.
func readPatch(patch, root string) ([]operation, error) {
	body, err := split(patch)
	if err != nil {
		return nil, err
	}
	prefix, declared, err := readHead(body.open[:body.tag])
	if err != nil {
		return nil, err
	}
	end, err := tagEnd(root, 0)
	if err != nil {
		return nil, err
	}
	_, attrs, err := attributes(root[:end])
	if err != nil {
		return nil, err
	}
	if !maps.Equal(declared, declarations(attrs)) {
		return nil, errors.New("the patch declares other namespaces than the document")
	}
	if len(body.children) > maxOperations {
		return nil, fmt.Errorf("the patch has more than %d operations", maxOperations)
	}
	all := make([]operation, len(body.children))
	for i, c := range body.children {
		if err := all[i].read(c.raw(), prefix+":"); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	return all, nil
}

// readHead reads the tag of a patch: the prefix of its elements, and the other declared prefixes.
func readHead(tag string) (prefix string, declared map[string]string, err error) {
	name, all, err := attributes(tag)
	if err != nil {
		return "", nil, err
	}
	prefix, local, _ := strings.Cut(name, ":")
	declared = declarations(all)
	if local != "patch" || len(declared) != len(all) || declared["xmlns:"+prefix] != namespace {
		return "", nil, fmt.Errorf("this is no patch, but %.40q", tag)
	}
	delete(declared, "xmlns:"+prefix)
	return prefix, declared, nil
}

// declarations returns the namespaces that a tag declares.
func declarations(all []attribute) map[string]string {
	declared := map[string]string{}
	for _, a := range all {
		if a.declares() {
			declared[a.name] = a.value
		}
	}
	return declared
}

// read reads an operation.
func (o *operation) read(element, prefix string) error {
	end, err := tagEnd(element, 0)
	if err != nil {
		return err
	}
	name, all, err := attributes(element[:end])
	if err != nil {
		return err
	}
	var ok bool
	if o.name, ok = strings.CutPrefix(name, prefix); !ok {
		return fmt.Errorf("there is no %.40q", name)
	}
	for _, a := range all {
		switch known := o.name + " " + a.name; {
		case a.name == "sel":
			o.selector, err = readSelector(a.value)
		case known == "add pos" && a.value == "before":
			o.before = true
		case known == "remove ws" && a.value == "after":
			o.space = true
		default:
			err = fmt.Errorf("%s with %.80s is not supported", o.name, a.raw)
		}
		if err != nil {
			return err
		}
	}
	if o.selector == nil {
		return errors.New("it selects nothing")
	}
	if element[end-2] != '/' {
		last := strings.LastIndex(element, "</")
		content, first, err := children(element[:last], end)
		if err != nil || first != end {
			return errors.Join(errMixed, err)
		}
		for _, c := range content {
			o.content = append(o.content, &node{child: c})
		}
	}
	inRoot := len(o.selector) == 0
	switch {
	case o.name == "remove" && len(o.content) == 0 && !inRoot:
	case o.name == "replace" && len(o.content) == 1 && o.content[0].tail() == "" && !inRoot:
	case o.name == "add" && !(o.before && inRoot):
	default:
		return fmt.Errorf("such a %.40q is not supported", o.name)
	}
	return nil
}

// readSelector reads a selector such as /*/*[3]/*[17] (RFC 5261 §4.1, Locating the Target of a
// Patch).
func readSelector(s string) ([]int, error) {
	rest, ok := strings.CutPrefix(s, "/*")
	indices := []int{}
	for ok && rest != "" && len(indices) <= maxDepth {
		var number string
		if rest, ok = strings.CutPrefix(rest, "/*["); !ok {
			break
		}
		number, rest, ok = strings.Cut(rest, "]")
		n, err := strconv.Atoi(number)
		ok = ok && err == nil && n >= 1
		indices = append(indices, n-1)
	}
	if !ok || rest != "" {
		return nil, fmt.Errorf("the selector %.80q is not supported", s)
	}
	return indices, nil
}

// node is an element that is being patched.
type node struct {
	child
	inside *content // if it was looked into, but for its elements
	nodes  []*node  // the nodes in it
}

// look takes the element apart, once.
func (n *node) look() error {
	if n.inside != nil {
		return nil
	}
	c, err := split(n.raw())
	if err != nil {
		return err
	}
	n.nodes = make([]*node, len(c.children))
	all := make([]node, len(c.children))
	for i := range all {
		all[i].child = c.children[i]
		n.nodes[i] = &all[i]
	}
	n.inside, c.children = c, nil
	return nil
}

func (n *node) appendTo(out []byte) []byte {
	if n.inside == nil {
		return append(out, n.all...)
	}
	out = append(out, n.inside.open...)
	for _, in := range n.nodes {
		out = in.appendTo(out)
	}
	out = append(out, n.inside.end...)
	return append(out, n.tail()...)
}

// apply applies the operation to the content of the root.
func (o *operation) apply(root *node, moves *int) error {
	parent, i := root, -1
	look := func() error {
		err := parent.look()
		if err == nil && parent != root && declaresNamespaces(parent.inside.open[:parent.inside.tag]) {
			err = errors.New("namespaces are declared on the way to what it selects")
		}
		return err
	}
	for n, at := range o.selector {
		if n > 0 {
			parent = parent.nodes[i]
		}
		if err := look(); err != nil {
			return err
		}
		if i = at; i >= len(parent.nodes) {
			return errors.New("what it selects is not there")
		}
	}
	if o.name == "add" && !o.before {
		if i >= 0 {
			parent = parent.nodes[i]
		}
		if err := look(); err != nil {
			return err
		}
		parent.nodes = append(parent.nodes, o.content...)
		return nil
	}
	if *moves += len(parent.nodes) - i + len(o.content); *moves > maxMoves {
		return errors.New("it costs too much")
	}
	switch o.name {
	case "add":
		parent.nodes = slices.Insert(parent.nodes, i, o.content...)
	case "remove":
		gone := parent.nodes[i]
		if o.space != (gone.tail() != "") { // RFC 5261 §5.1: invalid-whitespace-directive
			return errors.New("the white space behind what it removes is not as it says")
		}
		parent.nodes = slices.Delete(parent.nodes, i, i+1)
	case "replace":
		with := *o.content[0]
		with.all += parent.nodes[i].tail()
		parent.nodes[i] = &with
	}
	return nil
}

// wellFormed checks that a patch is an XML document, and its prefixes have namespaces.
func wellFormed(patch []byte) error {
	s := scan.NewScanner(bytes.NewReader(patch), scan.Options{URI: "patch"})
	for {
		if _, err := s.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("%w", err)
		}
	}
}
