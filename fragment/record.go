package fragment

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/tmdm"
)

// Ref refers to a topic by one subject identifier. At the publisher it is the TopicSI of the topic; a subscriber keeps
// it as it came.
type Ref = tmdm.Locator

// Identity is the set of identifiers of a topic. The first subject identifier is its TopicSI.
type Identity struct {
	SubjectIdentifiers []tmdm.Locator
	SubjectLocators    []tmdm.Locator
}

// TopicSI returns the subject identifier by which the source refers to the topic.
func (i Identity) TopicSI() Ref { return i.SubjectIdentifiers[0] }

// Topic is the record of a topic: its statements in a source, except associations.
type Topic struct {
	Identity
	Names       []Name
	Occurrences []Occurrence

	// Provisional marks a topic that a subscriber knows only because something
	// refers to it.
	Provisional bool
}

// HasReifiers reports whether a statement of t is reified.
func (t *Topic) HasReifiers() bool {
	for i := range t.Names {
		if t.Names[i].HasReifiers() {
			return true
		}
	}
	return slices.ContainsFunc(t.Occurrences, func(o Occurrence) bool { return o.Reifier != "" })
}

// ReifiedOnly returns t with its reified statements only.
func (t *Topic) ReifiedOnly() *Topic {
	only := &Topic{Identity: t.Identity}
	for _, n := range t.Names {
		if n.HasReifiers() {
			only.Names = append(only.Names, n)
		}
	}
	for _, o := range t.Occurrences {
		if o.Reifier != "" {
			only.Occurrences = append(only.Occurrences, o)
		}
	}
	return only
}

// HasReifiers reports whether n or one of its variants is reified.
func (n *Name) HasReifiers() bool {
	return n.Reifier != "" || slices.ContainsFunc(n.Variants, func(v Variant) bool { return v.Reifier != "" })
}

// HasReifiers reports whether a or one of its roles is reified.
func (a *Association) HasReifiers() bool {
	return a.Reifier != "" || slices.ContainsFunc(a.Roles, func(r Role) bool { return r.Reifier != "" })
}

// Name is a topic name with its variants.
type Name struct {
	Value           string
	Type            Ref
	Scope           []Ref
	Reifier         Ref // "": none, here and below
	Variants        []Variant
	ItemIdentifiers []tmdm.Locator // those given by the document, here and below
}

// Variant is a variant of a name. Its scope includes the name's. An empty datatype is xsd:string.
type Variant struct {
	Value, Datatype string
	Scope           []Ref
	Reifier         Ref
	ItemIdentifiers []tmdm.Locator
}

// Occurrence is an occurrence. An empty datatype is xsd:string.
type Occurrence struct {
	Value, Datatype string
	Type            Ref
	Scope           []Ref
	Reifier         Ref
	ItemIdentifiers []tmdm.Locator
}

// Association is the record of an association.
type Association struct {
	Type            Ref
	Scope           []Ref
	Reifier         Ref
	Roles           []Role
	ItemIdentifiers []tmdm.Locator
}

// Role is one role of an association.
type Role struct {
	Type, Player    Ref
	Reifier         Ref
	ItemIdentifiers []tmdm.Locator
}

// Part is the part that a topic takes in an association. Type-instance associations belong to the instance: they
// neither change their class nor are removed with its statements.
type Part uint8

// The parts, in the order in which records are kept.
const (
	AsInstance Part = iota // it is the instance of a type-instance association
	AsPlayer               // it plays a role in any other association
	AsType                 // it is only the class of a type-instance association
)

// Parts lists all parts in order.
var Parts = [...]Part{AsInstance, AsPlayer, AsType}

// TypeInstance returns class and instance where a is a type-instance association: unscoped, unreified, binary (ISO
// 13250-2 §7.2).
func (a *Association) TypeInstance() (class, instance Ref, ok bool) {
	if a.Type != tmdm.PSITypeInstance || len(a.Scope) > 0 || a.Reifier != "" || len(a.Roles) != 2 {
		return "", "", false
	}
	r, s := &a.Roles[0], &a.Roles[1]
	if r.Type == tmdm.PSIType {
		r, s = s, r
	}
	if r.Type != tmdm.PSIInstance || s.Type != tmdm.PSIType || r.Reifier != "" || s.Reifier != "" {
		return "", "", false
	}
	return s.Player, r.Player, true
}

// Part returns the part that player takes in a.
func (a *Association) Part(player Ref) Part {
	class, instance, ok := a.TypeInstance()
	switch {
	case !ok:
		return AsPlayer
	case player == instance:
		return AsInstance
	case player == class:
		return AsType
	}
	return AsPlayer
}

// Players returns the players of a, each once, in order.
func (a *Association) Players() []Ref {
	players := make([]Ref, len(a.Roles))
	for i := range a.Roles {
		players[i] = a.Roles[i].Player
	}
	slices.Sort(players)
	return slices.Compact(players)
}

func (i *Identity) canonical() {
	if len(i.SubjectIdentifiers) > 1 {
		sortLocators(i.SubjectIdentifiers[1:])
	}
	sortLocators(i.SubjectLocators)
}

// sortLocators does not write to a sorted list, which may be shared.
func sortLocators(list []tmdm.Locator) {
	if !slices.IsSorted(list) {
		slices.Sort(list)
	}
}

// Canonical sorts the sets of t and gives each value its datatype, so that equal records have equal bytes. It removes
// variants whose scope adds nothing to that of their name, because the data model does not allow them (ISO 13250-2
// §5.5, Variant items), and XTM 2.1 cannot represent them.
func (t *Topic) Canonical() {
	t.Identity.canonical()
	for i := range t.Names {
		n := &t.Names[i]
		sortLocators(n.Scope)
		sortLocators(n.ItemIdentifiers)
		if idle := func(v Variant) bool { return !adds(v.Scope, n.Scope) }; slices.ContainsFunc(n.Variants, idle) {
			n.Variants = append([]Variant(nil), slices.DeleteFunc(n.Variants, idle)...)
		}
		for j := range n.Variants {
			n.Variants[j].Datatype = datatype(n.Variants[j].Datatype)
			sortLocators(n.Variants[j].Scope)
			sortLocators(n.Variants[j].ItemIdentifiers)
		}
		slices.SortFunc(n.Variants, compareVariants)
	}
	slices.SortFunc(t.Names, compareNames)
	for i := range t.Occurrences {
		t.Occurrences[i].Datatype = datatype(t.Occurrences[i].Datatype)
		sortLocators(t.Occurrences[i].Scope)
		sortLocators(t.Occurrences[i].ItemIdentifiers)
	}
	slices.SortFunc(t.Occurrences, compareOccurrences)
}

// adds reports whether scope has a topic that known has not.
func adds(scope, known []Ref) bool {
	return slices.ContainsFunc(scope, func(theme Ref) bool { return !slices.Contains(known, theme) })
}

// datatype returns the datatype of a value; that of strings by default.
func datatype(iri string) string { return cmp.Or(iri, tmdm.XSDString) }

// Canonical sorts the sets of a, so that equal records have equal bytes.
func (a *Association) Canonical() {
	sortLocators(a.Scope)
	sortLocators(a.ItemIdentifiers)
	for i := range a.Roles {
		sortLocators(a.Roles[i].ItemIdentifiers)
	}
	slices.SortFunc(a.Roles, compareRoles)
}

// Statements are compared by the properties that determine equality, those that differ most often first.

func compareNames(a, b Name) int {
	if c := cmp.Compare(a.Value, b.Value); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Type, b.Type), slices.Compare(a.Scope, b.Scope), cmp.Compare(a.Reifier, b.Reifier))
}

func compareVariants(a, b Variant) int {
	if c := cmp.Compare(a.Value, b.Value); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Datatype, b.Datatype), slices.Compare(a.Scope, b.Scope), cmp.Compare(a.Reifier, b.Reifier))
}

func compareOccurrences(a, b Occurrence) int {
	if c := cmp.Compare(a.Value, b.Value); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Datatype, b.Datatype), cmp.Compare(a.Type, b.Type), slices.Compare(a.Scope, b.Scope),
		cmp.Compare(a.Reifier, b.Reifier))
}

func compareRoles(a, b Role) int {
	if c := cmp.Compare(a.Type, b.Type); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Player, b.Player), cmp.Compare(a.Reifier, b.Reifier))
}

// Mentions calls yield for every reference of t that is not a player: types, themes and reifiers, as often as they
// occur.
func (t *Topic) Mentions(yield func(Ref)) {
	for i := range t.Names {
		n := &t.Names[i]
		mention(yield, n.Type, n.Reifier, n.Scope)
		for j := range n.Variants {
			v := &n.Variants[j]
			mention(yield, "", v.Reifier, v.Scope)
		}
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		mention(yield, o.Type, o.Reifier, o.Scope)
	}
}

// Mentions calls yield for every reference of a that is not a player.
func (a *Association) Mentions(yield func(Ref)) {
	mention(yield, a.Type, a.Reifier, a.Scope)
	for i := range a.Roles {
		mention(yield, a.Roles[i].Type, a.Roles[i].Reifier, nil)
	}
}

func mention(yield func(Ref), typ, reifier Ref, scope []Ref) {
	if typ != "" {
		yield(typ)
	}
	for _, t := range scope {
		yield(t)
	}
	if reifier != "" {
		yield(reifier)
	}
}

// Title returns the title of t for a reader of some languages, the best first: its best name ([titles.Chooser]), else a
// title from its TopicSI. [Names] also uses labels in the map.
func (t *Topic) Title(languages ...string) string {
	if title, ok := t.BestName(languages...); ok {
		return title
	}
	return t.TopicSI().String()
}

// BestName is Title of a topic that has a name that can be a title. The text of a label that is a resource is its name.
func (t *Topic) BestName(languages ...string) (title string, ok bool) {
	best := t.chooser(languages)
	if title, ok = best.Best(); !ok {
		title, ok = t.literalForm(languages)
	}
	return title, ok
}

// NameIn returns the best name of t in a language (a primary subtag of BCP 47), or without one, where that is "". ok is
// false where the best name for a reader of it is in another one.
func (t *Topic) NameIn(language string) (name string, ok bool) {
	var languages []string
	if language != "" {
		languages = []string{language}
	}
	best := t.chooser(languages)
	name, ok = best.Best()
	primary, _, _ := strings.Cut(best.Language(), "-")
	return name, ok && primary == language
}

// chooser returns a chooser with the names of t.
func (t *Topic) chooser(languages []string) titles.Chooser[string] {
	best := titles.Chooser[string]{Languages: languages}
	for i := range t.Names {
		n := &t.Names[i]
		tell(&best, n.Value, string(n.Type), n.Scope)
	}
	return best
}

func tell(best *titles.Chooser[string], value, typ string, scope []Ref) {
	best.Name(value)
	best.Type(typ)
	for _, theme := range scope {
		best.Theme(string(theme))
	}
	best.End()
}

// literalForms yields the texts of a label that is a resource, with their scopes.
func (t *Topic) literalForms(yield func(value string, scope []Ref)) {
	for i := range t.Names {
		if n := &t.Names[i]; n.Type == titles.LiteralForm {
			yield(n.Value, n.Scope)
		}
	}
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; o.Type == titles.LiteralForm {
			yield(o.Value, o.Scope)
		}
	}
}

// literalForm returns the best of the texts of a label that is a resource.
func (t *Topic) literalForm(languages []string) (title string, ok bool) {
	best := titles.Chooser[string]{Languages: languages}
	t.literalForms(func(value string, scope []Ref) { tell(&best, value, titles.LiteralForm, scope) })
	return best.Best()
}

// CountLanguages counts the names of t.
func (t *Topic) CountLanguages(count titles.Count) {
	for i := range t.Names {
		titles.CountName(count, t.Names[i].Type, t.Names[i].Scope)
	}
	for i := range t.Occurrences {
		if o := &t.Occurrences[i]; o.Type == titles.LiteralForm {
			titles.CountName(count, o.Type, o.Scope)
		}
	}
}

// Refer puts other references in the place of those of t.
func (t *Topic) Refer(to func(Ref) Ref) {
	for i := range t.Names {
		n := &t.Names[i]
		refer(to, &n.Type, &n.Reifier, n.Scope)
		for j := range n.Variants {
			v := &n.Variants[j]
			refer(to, nil, &v.Reifier, v.Scope)
		}
	}
	for i := range t.Occurrences {
		o := &t.Occurrences[i]
		refer(to, &o.Type, &o.Reifier, o.Scope)
	}
	t.Canonical()
}

// Refer puts other references in the place of those of a, the players included.
func (a *Association) Refer(to func(Ref) Ref) {
	refer(to, &a.Type, &a.Reifier, a.Scope)
	for i := range a.Roles {
		r := &a.Roles[i]
		refer(to, &r.Type, &r.Reifier, nil)
		r.Player = to(r.Player)
	}
	a.Canonical()
}

func refer(to func(Ref) Ref, typ, reifier *Ref, scope []Ref) {
	for i, theme := range scope {
		scope[i] = to(theme)
	}
	for _, ref := range []*Ref{typ, reifier} {
		if ref != nil && *ref != "" {
			*ref = to(*ref)
		}
	}
}
