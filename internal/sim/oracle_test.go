package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
)

// The oracle merges several collections by sets only: identifiers of one topic are in one class, and a statement
// consists of classes. It is independent of package merge.

// assertions are those of one collection.
type assertions struct {
	sp           string
	topics       []*fragment.Topic
	associations []*fragment.Association
}

// read reads a collection.
func (w *world) read(sp string, src fragment.Source) assertions {
	s := assertions{sp: sp}
	for t, err := range src.Topics() {
		w.must(err, "reading %s", sp)
		s.topics = append(s.topics, t)
	}
	for a, err := range src.Associations() {
		w.must(err, "reading %s", sp)
		s.associations = append(s.associations, a)
	}
	slices.SortFunc(s.associations, func(a, b *fragment.Association) int {
		x, y := a.Key(), b.Key()
		return bytes.Compare(x[:], y[:])
	})
	return s
}

// joined is the merge of collections.
type joined struct {
	parent   map[string]string   // of an identifier, in the tree of its class; a class is called by its least one
	others   map[string]bool     // statements that are no associations' or names', see put
	claims   []claim             // that a topic reifies a statement
	disputed bool                // a topic reifies two statements that are not equal
	statedBy map[string][]string // reifiers of a statement
}

// claim is the reification of a statement by a topic. The form of the statement depends on the classes.
type claim struct {
	reifier   fragment.Ref
	statement func() string
}

func (j *joined) class(identifier string) string {
	p, ok := j.parent[identifier]
	if !ok {
		j.parent[identifier] = identifier
		return identifier
	}
	if p == identifier {
		return identifier
	}
	root := j.class(p)
	j.parent[identifier] = root
	return root
}

// unite makes two classes one, and reports whether they were two.
func (j *joined) unite(a, b string) bool {
	x, y := j.class(a), j.class(b)
	if x == y {
		return false
	}
	if locator(x) != locator(y) && locator(x) || locator(x) == locator(y) && x > y {
		x, y = y, x
	}
	j.parent[y] = x // the least subject identifier calls the class
	return true
}

func si(ref fragment.Ref) string     { return "si " + string(ref) }
func sl(l fragment.Ref) string       { return "sl " + string(l) }
func locator(identifier string) bool { return strings.HasPrefix(identifier, "sl ") }

func (j *joined) topic(ref fragment.Ref) string { return "<" + j.class(si(ref)) + ">" }

// set is the set of classes of some topics.
func (j *joined) set(refs []fragment.Ref) string {
	var all []string
	for _, ref := range refs {
		all = append(all, j.topic(ref))
	}
	return inOrder(all)
}

// inOrder is a set as a text.
func inOrder(all []string) string {
	return "{" + strings.Join(slices.Compact(slices.Sorted(slices.Values(all))), " ") + "}"
}

const xsdString = "http://www.w3.org/2001/XMLSchema#string"

func (j *joined) name(owner fragment.Ref, n *fragment.Name) string {
	return fmt.Sprintf("name of %s type %s scope %s: %q", j.topic(owner), j.topic(n.Type), j.set(n.Scope), n.Value)
}

func (j *joined) variant(owner fragment.Ref, n *fragment.Name, v *fragment.Variant) string {
	kind := variantKind(j.set(v.Scope), j.set(n.Scope))
	return fmt.Sprintf("%s scope %s: %q^^%s of %s", kind, j.set(v.Scope), v.Value, cmp.Or(v.Datatype, xsdString), j.name(owner, n))
}

// narrow is the kind of a variant whose themes equal those of its name, which ISO 13250-2 §5.5 forbids.
const narrow = "narrow variant"

func variantKind(own, names string) string {
	if own == names {
		return narrow
	}
	return "variant"
}

func (j *joined) occurrence(owner fragment.Ref, o *fragment.Occurrence) string {
	return fmt.Sprintf("occurrence of %s type %s scope %s: %q^^%s", j.topic(owner), j.topic(o.Type), j.set(o.Scope), o.Value, cmp.Or(o.Datatype, xsdString))
}

func (j *joined) association(a *fragment.Association) string {
	var roles []string
	for i := range a.Roles {
		roles = append(roles, j.topic(a.Roles[i].Type)+":"+j.topic(a.Roles[i].Player))
	}
	return fmt.Sprintf("association type %s scope %s %s", j.topic(a.Type), j.set(a.Scope), inOrder(roles))
}

func (j *joined) role(a *fragment.Association, r *fragment.Role) string {
	return fmt.Sprintf("role %s:%s of %s", j.topic(r.Type), j.topic(r.Player), j.association(a))
}

// statements calls f with each statement of some collections: its reifier, and a function for its form.
func statements(all []assertions, j *joined, f func(reifier fragment.Ref, statement func() string)) {
	for i := range all {
		for _, t := range all[i].topics {
			owner := t.TopicSI()
			for k := range t.Names {
				n := &t.Names[k]
				f(n.Reifier, func() string { return j.name(owner, n) })
				for l := range n.Variants {
					v := &n.Variants[l]
					f(v.Reifier, func() string { return j.variant(owner, n, v) })
				}
			}
			for k := range t.Occurrences {
				o := &t.Occurrences[k]
				f(o.Reifier, func() string { return j.occurrence(owner, o) })
			}
		}
		for _, a := range all[i].associations {
			for k := range a.Roles {
				r := &a.Roles[k]
				f(r.Reifier, func() string { return j.role(a, r) })
			}
			f(a.Reifier, func() string { return j.association(a) })
		}
	}
}

// union merges collections. Equal statements have one reifier, so that their reifiers are one topic.
func union(all []assertions) *joined {
	slices.SortFunc(all, func(a, b assertions) int { return cmp.Compare(a.sp, b.sp) })
	j := &joined{parent: map[string]string{}}
	for i := range all {
		for _, t := range all[i].topics {
			for _, l := range t.SubjectIdentifiers {
				j.unite(si(t.TopicSI()), si(l))
			}
			for _, l := range t.SubjectLocators {
				j.unite(si(t.TopicSI()), sl(l))
			}
		}
	}
	statements(all, j, func(reifier fragment.Ref, statement func() string) {
		if reifier != "" {
			j.claims = append(j.claims, claim{reifier, statement})
		}
	})
	for again := true; again; {
		again = false
		first := map[string]fragment.Ref{}
		for _, c := range j.claims {
			s := c.statement()
			if r, ok := first[s]; ok {
				again = j.unite(si(r), si(c.reifier)) || again
			} else {
				first[s] = c.reifier
			}
		}
	}
	j.statedBy, j.others = map[string][]string{}, map[string]bool{}
	reifies := map[string]string{}
	for _, c := range j.claims {
		r, s := j.topic(c.reifier), c.statement()
		if other, ok := reifies[r]; ok && other != s {
			j.disputed = true
		}
		reifies[r] = s
		j.statedBy[s] = append(j.statedBy[s], r)
	}
	statements(all, j, func(_ fragment.Ref, statement func() string) { j.put(statement()) })
	return j
}

// put adds a statement.
func (j *joined) put(s string) {
	if by := j.statedBy[s]; len(by) > 0 {
		s += " reified by " + inOrder(by)
	}
	j.others[s] = true
}

// all returns the content of the merge: topics by their identifiers, and statements.
func (j *joined) all() map[string]bool {
	members := map[string][]string{}
	for l := range j.parent {
		members[j.class(l)] = append(members[j.class(l)], l)
	}
	all := map[string]bool{}
	for class, identifiers := range members {
		all["topic "+class+" "+inOrder(identifiers)] = true
	}
	for s := range j.others {
		all[s] = true
	}
	return all
}

// same requires that two sets are one.
func (w *world) same(want, have *joined, format string, args ...any) {
	w.sameSets(want.all(), have.all(), format, args...)
}

func (w *world) sameSets(want, have map[string]bool, format string, args ...any) {
	var differ []string
	for s := range want {
		if !have[s] {
			differ = append(differ, "lacks   "+s)
		}
	}
	for s := range have {
		if !want[s] {
			differ = append(differ, "besides "+s)
		}
	}
	if len(differ) > 0 {
		slices.SortFunc(differ, func(a, b string) int { return cmp.Or(cmp.Compare(a[8:], b[8:]), cmp.Compare(a, b)) })
		w.fail("%s: %d of %d differ\n%s", fmt.Sprintf(format, args...), len(differ), len(want), strings.Join(differ[:min(12, len(differ))], "\n"))
	}
}
