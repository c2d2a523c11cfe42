package pages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// A page of types shows this many classes, those with most instances, with what is above and below them, this many
// lines, and as deep.
const (
	mostClasses = 500
	mostLines   = 2000
	mostOnMap   = 150 // lines on the page of a map: as deep as they fit
	deepest     = 20
)

// typeNode is a topic in the tree of types. A type with several supertypes is below each.
type typeNode struct {
	link
	Instances int // not counting those of its subtypes; less than 0: they are not counted
	Below     []*typeNode
	Here      bool // the page is about it

	ref fragment.Ref
}

// typeTree is what a map has of types.
type typeTree struct {
	Classes []*typeNode // those of an ontology
	Roots   []*typeNode // all others
	More    bool        // there are more than the page shows
}

// classes are the types of classes (OWL 2 and RDF Schema).
var classes = []fragment.Ref{"http://www.w3.org/2002/07/owl#Class", "http://www.w3.org/2000/01/rdf-schema#Class"}

// Types answers with the page of the types of a map: the tree of its classes, by their supertypes.
func (p *Pages) Types(w http.ResponseWriter, r *http.Request, v *store.View) error {
	c := &v.Collection
	return p.write(w, r, c, "types", func() (*page, error) {
		tree, err := p.describer(v, r).typeTree(mostLines)
		return &page{Title: Say(r, texts.Types), Path: p.Trail(r, c), Of: tree}, err
	})
}

// typeTree returns the tree of the types of a map, of so many lines at most.
func (d *describer) typeTree(lines int) (*typeTree, error) {
	v := d.v
	tree := &typeTree{}
	all, err := largestClasses(v, tree)
	if err != nil {
		return nil, err
	}
	subtyping, err := subtypingOf(v)
	if err != nil {
		return nil, err
	}
	h := newHierarchy(v, subtyping)
	h.instances = map[fragment.Ref]int{}
	for _, c := range all {
		h.instances[c.TopicSI] = c.Instances
	}
	of := map[fragment.Ref]bool{}
	for _, class := range classes {
		some, err := d.instances(class, mostLines)
		if err != nil {
			return nil, err
		}
		maps.Copy(of, some)
	}
	for _, ref := range slices.Sorted(maps.Keys(of)) {
		all = append(all, records.Class{TopicSI: ref})
	}
	if err := h.find(all); err != nil {
		return nil, err
	}
	more := tree.More
	tree, err = d.treeFrom(h, lines)
	tree.Roots = slices.DeleteFunc(tree.Roots, func(n *typeNode) bool {
		isClass := of[n.ref] || slices.ContainsFunc(n.Below, func(n *typeNode) bool { return of[n.ref] })
		if isClass {
			tree.Classes = append(tree.Classes, n)
		}
		return isClass
	})
	if err == nil {
		tree.More = tree.More || more || len(h.order) == mostLines
	}
	return tree, err
}

// treeFrom makes the tree of a hierarchy, as deep as it has so many lines.
func (d *describer) treeFrom(h *hierarchy, lines int) (*typeTree, error) {
	tree := &typeTree{}
	b := treeBuilder{hierarchy: h, d: d, left: lines, depth: h.depth(lines), shown: map[fragment.Ref]bool{}}
	if err := h.v.State().ExpectNames(h.order); err != nil {
		return nil, err
	}
	for _, ref := range h.order {
		if len(h.above[ref]) == 0 {
			if err := b.add(&tree.Roots, ref, nil); err != nil {
				return nil, err
			}
		}
	}
	for _, ref := range h.order { // what is above itself has no root
		if !b.shown[ref] && !b.cut {
			if err := b.add(&tree.Roots, ref, nil); err != nil {
				return nil, err
			}
		}
	}
	tree.More = b.cut
	sortTypes(tree.Roots, d.order)
	return tree, nil
}

// depth returns how deep a tree of the hierarchy may be, so that it has a number of lines at most.
func (h *hierarchy) depth(lines int) int {
	var count func(ref fragment.Ref, deep int) int
	count = func(ref fragment.Ref, deep int) int {
		n := 1
		for i := 0; deep > 1 && i < len(h.below[ref]) && n <= lines; i++ {
			n += count(h.below[ref][i], deep-1)
		}
		return n
	}
	for deep := 2; deep <= deepest; deep++ {
		n := 0
		for i := 0; i < len(h.order) && n <= lines; i++ {
			if len(h.above[h.order[i]]) == 0 {
				n += count(h.order[i], deep)
			}
		}
		if n > lines {
			return deep - 1
		}
	}
	return deepest
}

// largestClasses returns the topics that have instances, those with most of them first.
func largestClasses(v *store.View, tree *typeTree) (all []records.Class, err error) {
	largestFirst := func(a, b records.Class) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), cmp.Compare(a.TopicSI, b.TopicSI))
	}
	for c, err := range v.State().Classes() {
		if err != nil {
			return nil, err
		}
		if all = append(all, c); len(all) == 2*mostClasses {
			slices.SortFunc(all, largestFirst)
			all, tree.More = all[:mostClasses], true
		}
	}
	slices.SortFunc(all, largestFirst)
	if len(all) > mostClasses {
		all, tree.More = all[:mostClasses], true
	}
	return all, nil
}

// hierarchy is what is above what.
type hierarchy struct {
	v            *store.View
	by           relation             // what says so
	instances    map[fragment.Ref]int // nil: they are not counted
	order        []fragment.Ref       // all that were found
	above, below map[fragment.Ref][]fragment.Ref
	known        map[[2]fragment.Ref]bool // pairs of them
	replaced     map[fragment.Ref]bool    // what is no longer to be used
}

func newHierarchy(v *store.View, by relation) *hierarchy {
	return &hierarchy{v: v, by: by, above: map[fragment.Ref][]fragment.Ref{}, below: map[fragment.Ref][]fragment.Ref{},
		known: map[[2]fragment.Ref]bool{}, replaced: map[fragment.Ref]bool{}}
}

// put puts a topic above another. What has no name, such as a restriction of OWL, has no line of its own.
func (h *hierarchy) put(above, below fragment.Ref) {
	if words.IsOpaque(string(above)) || words.IsOpaque(string(below)) {
		return
	}
	if pair := [2]fragment.Ref{above, below}; !h.known[pair] {
		h.known[pair] = true
		h.below[above] = append(h.below[above], below)
		h.above[below] = append(h.above[below], above)
	}
}

// subtypingOf returns what says of a map who is a subtype of whom (ISO 13250-2 §7.3, The supertype-subtype
// relationship).
func subtypingOf(v *store.View) (relation, error) {
	var refs [3]fragment.Ref
	psis := []tmdm.Locator{tmdm.PSISupertypeSubtype, tmdm.PSISupertype, tmdm.PSISubtype}
	if err := v.State().ExpectNames(slices.Concat(psis, classes)); err != nil { // classes are read next
		return relation{}, err
	}
	for i, psi := range psis {
		t, err := v.Source().Topic(psi)
		if err != nil {
			return relation{}, err
		}
		if t != nil {
			refs[i] = t.TopicSI()
		}
	}
	if refs[0] == "" {
		return relation{}, nil
	}
	return relation{types: []pairing{{refs[0], map[fragment.Ref]bool{refs[1]: true},
		map[fragment.Ref]bool{refs[2]: true}}}}, nil
}

// find looks for supertypes and subtypes of classes, and for theirs.
func (h *hierarchy) find(classes []records.Class) error {
	found := map[fragment.Ref]bool{}
	meet := func(ref fragment.Ref) {
		if !found[ref] && len(h.order) < mostLines && !words.IsOpaque(string(ref)) {
			found[ref] = true
			h.order = append(h.order, ref)
		}
	}
	for _, c := range classes {
		meet(c.TopicSI)
	}
	if len(h.by.types) == 0 {
		return nil
	}
	if err := h.v.State().Expect(h.order, nil); err != nil {
		return err
	}
	for i := 0; i < len(h.order); i++ {
		if err := h.around(h.order[i], meet); err != nil {
			return err
		}
	}
	return nil
}

// around calls meet with the supertypes and subtypes of a topic. It reads a bounded number of associations.
func (h *hierarchy) around(ref fragment.Ref, meet func(fragment.Ref)) error {
	for a, err := range h.v.State().AssociationsOfTypes(ref, mostLines, h.by.refs()...) {
		if err != nil {
			return err
		}
		super, sub, ok := h.by.pair(a)
		if !ok {
			continue
		}
		h.put(super, sub)
		meet(super)
		meet(sub)
	}
	return nil
}

// treeBuilder makes a tree of a hierarchy.
type treeBuilder struct {
	*hierarchy
	d     *describer
	left  int // how many more lines the page may have
	depth int
	cut   bool // there is more
	shown map[fragment.Ref]bool
}

// add adds a topic and what is below it to siblings. path is what is above it: nothing is below itself.
func (b *treeBuilder) add(siblings *[]*typeNode, ref fragment.Ref, path []fragment.Ref) error {
	if slices.Contains(path, ref) {
		return nil
	}
	if b.left <= 0 || len(path) == b.depth {
		b.cut = true
		return nil
	}
	b.left--
	b.shown[ref] = true
	l, err := b.d.link(ref)
	if err != nil {
		return err
	}
	l.Deprecated = l.Deprecated || b.replaced[ref]
	node := &typeNode{link: l, Instances: -1, ref: ref}
	if b.instances != nil {
		node.Instances = b.instances[ref]
	}
	*siblings = append(*siblings, node)
	for _, sub := range b.below[ref] {
		if err := b.add(&node.Below, sub, append(path, ref)); err != nil {
			return err
		}
	}
	sortTypes(node.Below, b.d.order)
	return nil
}

// sortTypes puts those with most instances first.
func sortTypes(nodes []*typeNode, o order) {
	slices.SortStableFunc(nodes, func(a, b *typeNode) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), o(a.link, b.link))
	})
}
