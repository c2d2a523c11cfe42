package pages

import (
	"cmp"
	"html"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages/texts"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// The limits of trees. A tree has as many levels as its limit allows; lower levels have their own pages.
const (
	mostOfTree = 56 << 10
	mostOnMap  = 20 << 10 // on the page of a map, which has whole levels alone
	deepest    = 20       // levels
	mostSought = 100      // classes of a large ontology from which its page finds the topmost ones
)

// The bytes of a line of a tree without its title: alone, and with lines below it or a link to them.
const (
	bytesOfLine  = 60
	bytesOfBelow = 80
)

// typeNode is a topic in a tree. One that is below several is there below each.
type typeNode struct {
	link
	Instances int // not counting those of its subtypes; less than 0: they are not counted
	Below     []*typeNode
	Hidden    int    // number of topics below it that the page leaves out
	All       string // address of the page with all of them
	Here      bool   // the page is about it

	ref   fragment.Ref
	below []fragment.Ref
	up    *typeNode // the node above it; nil: none
}

// bytes returns the approximate length of a line in HTML; one with a number is twice as long.
func (n *typeNode) bytes() int {
	return bytesOfLine*min(n.Instances+2, 2) + len(n.URL) + len(html.EscapeString(n.Title+n.Notation))
}

// typeTree is the tree of a map's types or of a hierarchy: the whole, or the part below a topic.
type typeTree struct {
	Classes []*typeNode // those of an ontology
	Roots   []*typeNode // all others
	Pager   *pager      // of both
	More    bool        // there are more of both, and no pager
	Partly  bool        // the map is large: it has classes alone
	Topic   *link       // the topic at the top of the tree; nil: it is the whole
	About   *link       // the relation between topics and those below; nil: shown elsewhere
}

// classes are the types of classes (OWL 2 and RDF Schema).
var classes = []fragment.Ref{"http://www.w3.org/2002/07/owl#Class", "http://www.w3.org/2000/01/rdf-schema#Class"}

// Types answers with the page of the types of a map: the tree of its classes, by their supertypes.
func (p *Pages) Types(w http.ResponseWriter, r *http.Request, v *store.View) error {
	return p.write(w, r, v, "types", func() (*page, error) {
		d := p.describer(v, r)
		h, err := d.types(true)
		if err != nil {
			return nil, err
		}
		return h.page(r, d.in.Say(texts.Types), &typeTree{})
	})
}

// typesOnMap returns the tree of types for the page of a map. Of a large one it has the topmost classes above some.
func (d *describer) typesOnMap() (*typeTree, error) {
	tree := &typeTree{Partly: d.v.Topics > fewTopicsOfMap}
	h, err := d.types(!tree.Partly)
	if err != nil {
		return nil, err
	}
	find := h.roots
	if tree.Partly {
		find = h.topmost
	}
	roots, err := find()
	if err != nil {
		return nil, err
	}
	nodes, err := h.d.lines(roots, h.instances)
	if tree.More = len(nodes) > most; tree.More {
		nodes = nodes[:most]
	}
	if err != nil {
		return nil, err
	}
	return tree, h.grow(tree, nodes, mostOnMap)
}

// types returns the hierarchy of the types of a map: with the numbers of their instances, or some classes only.
func (d *describer) types(all bool) (*hierarchy, error) {
	psis := []tmdm.Locator{tmdm.PSISupertypeSubtype, tmdm.PSISupertype, tmdm.PSISubtype} // ISO 13250-2 §7.3
	if err := d.expectMarked(slices.Concat(psis, classes)...); err != nil {
		return nil, err
	}
	var refs [3]fragment.Ref
	for i, psi := range psis {
		ref, there, err := d.ref(psi)
		if err != nil {
			return nil, err
		}
		if refs[i] = ref; !there {
			refs[i] = ""
		}
	}
	h := &hierarchy{d: d, isClass: map[fragment.Ref]bool{}, at: d.URLs.Map(&d.v.Collection) + "/types" + Ending}
	if refs[0] != "" {
		h.by.types = []pairing{{refs[0], map[fragment.Ref]bool{refs[1]: true}, map[fragment.Ref]bool{refs[2]: true}}}
	}
	n := mostSought
	if all {
		n, h.instances = d.v.Topics, map[fragment.Ref]int{}
		known, err := d.classes()
		if err != nil {
			return nil, err
		}
		for _, c := range known {
			h.instances[c.TopicSI] = c.Instances
		}
	}
	for _, class := range classes {
		ref, _, err := d.ref(class)
		if err != nil {
			return nil, err
		}
		h.classes = append(h.classes, ref)
		some, err := d.instances(class, n)
		if err != nil {
			return nil, err
		}
		maps.Copy(h.isClass, some)
	}
	return h, nil
}

// hierarchy is a hierarchy of topics.
type hierarchy struct {
	d         *describer
	by        relation                        // the associations that define it
	at        string                          // its page
	instances map[fragment.Ref]int            // nil: they are not counted
	classes   []fragment.Ref                  // the types of classes; for the hierarchy of types
	isClass   map[fragment.Ref]bool           // of types
	known     map[fragment.Ref][]fragment.Ref // the topics below each topic; nil: they are read on demand
	kept      *standing                       // caches the topics below others; nil: they are not cached
}

// allRoots returns the topics that have none above them, and one topic of each cycle; keep if there is no cycle. It
// reads all associations once.
func (h *hierarchy) allRoots() (roots []records.Class, keep bool, err error) {
	all, isBelow, pairs := map[fragment.Ref]bool{}, map[fragment.Ref]bool{}, map[[2]fragment.Ref]bool{}
	maps.Copy(all, h.isClass)
	for ref := range h.instances {
		all[ref] = true
	}
	h.known = map[fragment.Ref][]fragment.Ref{}
	for a, err := range h.d.v.State().AllOfTypes(h.by.refs()...) {
		if err != nil {
			return nil, false, err
		}
		above, below, ok := h.by.pair(a)
		pair := [2]fragment.Ref{above, below}
		if top := h.by.top(a); top != "" {
			all[top] = true
		} else if ok && !pairs[pair] {
			pairs[pair], all[above], all[below], isBelow[below] = true, true, true, true
			h.known[above] = append(h.known[above], below)
		}
	}
	reached := map[fragment.Ref]bool{}
	inOrder, keep := slices.Sorted(maps.Keys(all)), true
	for _, circles := range []bool{false, true} {
		for _, root := range inOrder {
			// Topics without a name, such as restrictions of OWL, have no line.
			if reached[root] || !circles && isBelow[root] || words.IsOpaque(string(root)) {
				continue
			}
			roots, keep = append(roots, records.Class{TopicSI: root}), keep && !circles
			for todo := []fragment.Ref{root}; len(todo) > 0; {
				ref := todo[len(todo)-1]
				if todo = todo[:len(todo)-1]; !reached[ref] {
					reached[ref] = true
					todo = append(todo, h.known[ref]...)
				}
			}
		}
	}
	return roots, keep, nil
}

// topmost returns the topmost topics above the known classes. Every topic above a class is a class.
func (h *hierarchy) topmost() (roots []fragment.Ref, err error) {
	seen := map[fragment.Ref]bool{}
	for todo := slices.Sorted(maps.Keys(h.isClass)); len(todo) > 0; {
		ref := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; seen[ref] || words.IsOpaque(string(ref)) {
			continue
		}
		seen[ref], h.isClass[ref] = true, true
		above, _, err := h.d.beyond(&h.by, ref, mostOfOne)
		if err != nil {
			return nil, err
		}
		if todo = append(todo, above...); len(above) == 0 {
			roots = append(roots, ref)
		}
	}
	return roots, nil
}

// below returns the topics directly below a topic.
func (h *hierarchy) below(ref fragment.Ref) (below []fragment.Ref, err error) {
	below, known := h.keptBelow(ref)
	if known || h.known != nil {
		return below, nil
	}
	_, below, err = h.d.beyond(&h.by, ref, math.MaxInt)
	if err == nil && h.kept != nil {
		h.kept.belowOf(h.d.state, func(all map[fragment.Ref][]fragment.Ref) {
			h.d.standings.forget(h.kept, ref)
			h.d.standings.changes(1 + len(below))
			all[ref] = below
		})
	}
	return below, err
}

// keptBelow is below for topics that need no reading.
func (h *hierarchy) keptBelow(ref fragment.Ref) (below []fragment.Ref, known bool) {
	if below, known = h.known[ref]; !known && h.kept != nil {
		h.kept.belowOf(h.d.state, func(all map[fragment.Ref][]fragment.Ref) { below, known = all[ref] })
	}
	return below, known
}

// page makes a page of a hierarchy: of its top, or of the topics below the one with the key ?below=.
func (h *hierarchy) page(r *http.Request, title string, tree *typeTree) (*page, error) {
	d := h.d
	made := &page{Title: title, Path: d.Trail(r, &d.v.Collection), Of: tree}
	number, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	find := h.roots
	if key := r.URL.Query().Get("below"); key != "" {
		last, err := LastOf(d.v, key)
		if err != nil {
			return nil, err
		}
		topic, err := d.link(last.TopicSI)
		if err != nil {
			return nil, err
		}
		tree.Topic, made.Path = &topic, append(made.Path, link{Title: title, URL: h.at})
		made.Title = d.in.Say(texts.BelowOf, topic.Title)
		find = func() ([]fragment.Ref, error) { return h.below(last.TopicSI) }
	}
	refs, err := find()
	if err != nil {
		return nil, err
	}
	first := min((number-1)*most, max(len(refs)-1, 0)) / most * most
	from := first / mostSorted * mostSorted
	nodes, err := d.lines(refs[from:min(from+mostSorted, len(refs))], h.instances)
	if err != nil {
		return nil, err
	}
	tree.Pager = pagerOf(first/most+1, most, len(refs), func(n int) string {
		return "?" + with(r, "page", strconv.Itoa(n))
	})
	return made, h.grow(tree, nodes[first-from:min(first-from+most, len(nodes))], mostOfTree)
}

// lines returns topics as lines of a tree, those with most instances first; nil: instances are not counted.
func (d *describer) lines(refs []fragment.Ref, instances map[fragment.Ref]int) ([]*typeNode, error) {
	if err := d.v.State().ExpectNames(refs); err != nil {
		return nil, err
	}
	all := make([]*typeNode, len(refs))
	for i, ref := range refs {
		l, err := d.link(ref)
		if err != nil {
			return nil, err
		}
		if all[i] = (&typeNode{link: l, Instances: -1, ref: ref}); instances != nil {
			all[i].Instances = instances[ref]
		}
	}
	slices.SortStableFunc(all, func(a, b *typeNode) int {
		return cmp.Or(cmp.Compare(b.Instances, a.Instances), d.order(a.link, b.link))
	})
	return all, nil
}

// grow adds as many levels below the top as fit into the given number of bytes.
func (h *hierarchy) grow(tree *typeTree, top []*typeNode, bytes int) error {
	need, err := h.measure(top, nil)
	if err != nil {
		return err
	}
	bytes -= need
	shown := slices.Clone(top)
	for level, depth := top, 1; len(level) > 0 && depth < deepest && bytes > 0; depth++ {
		least := func(n *typeNode) int { return n.Hidden * (bytesOfLine + len(h.at)) }
		all := 0
		for _, n := range level {
			all += least(n)
		}
		if all > bytes && tree.Pager == nil {
			break
		}
		var next []*typeNode
		for _, n := range level {
			if n.Hidden == 0 || n.Hidden > most || least(n) > bytes {
				continue
			}
			nodes, err := h.d.lines(n.below, h.instances)
			if err != nil {
				return err
			}
			if need, err = h.measure(nodes, n); err != nil {
				return err
			}
			if need > bytes {
				bytes = 0
				break
			}
			bytes, n.Below, n.Hidden = bytes-need, nodes, 0
			next = append(next, nodes...)
		}
		shown, level = append(shown, next...), next
	}
	for _, n := range top {
		isClass := h.isClass[n.ref] || slices.ContainsFunc(n.Below, func(n *typeNode) bool { return h.isClass[n.ref] })
		if isClass && tree.Topic == nil {
			tree.Classes = append(tree.Classes, n)
		} else {
			tree.Roots = append(tree.Roots, n)
		}
	}
	return h.d.mark(len(shown), func(i int) (fragment.Ref, *link) { return shown[i].ref, &shown[i].link })
}

// measure sets the number of topics below each of some nodes, and returns the length of the nodes in bytes.
func (h *hierarchy) measure(nodes []*typeNode, up *typeNode) (bytes int, err error) {
	if h.known == nil {
		var refs []fragment.Ref
		for _, n := range nodes {
			if _, known := h.keptBelow(n.ref); !known {
				refs = append(refs, n.ref)
			}
		}
		if err := h.d.v.State().Expect(refs, nil); err != nil {
			return 0, err
		}
	}
	for _, n := range nodes {
		below, err := h.below(n.ref)
		if err != nil {
			return 0, err
		}
		n.up, bytes = up, bytes+n.bytes()
		n.below = slices.DeleteFunc(slices.Clone(below), n.isBelow)
		if n.Hidden = len(n.below); n.Hidden > 0 {
			n.All = h.at + "?" + url.Values{"below": {fragment.Key(n.ref)}}.Encode()
			bytes += bytesOfBelow + len(n.All)
		}
	}
	return bytes, nil
}

// isBelow reports whether a topic is the one of a node, or above it.
func (n *typeNode) isBelow(ref fragment.Ref) bool {
	return n.ref == ref || n.up != nil && n.up.isBelow(ref)
}
