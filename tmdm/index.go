package tmdm

// Valued is a Construct with a value: a name, a variant or an occurrence.
type Valued interface {
	Construct
	Value() string
}

// Index answers by look-up what would otherwise take a walk through the map:
// which items have a type, a theme or a value. It shows the map as it was when
// the index was made; once the map is changed, make a new one. Any number of
// goroutines may use it at once, under the same condition as the map itself.
//
// All lists are in the order of [TopicMap.Constructs], and must not be changed.
// Types are meant as they stand: for subtypes, ask for each of
// [Topic.AllSubtypes] too.
type Index struct {
	topics       grouping[*Topic, *Topic]
	untyped      []*Topic
	names        grouping[*Topic, *TopicName]
	occurrences  grouping[*Topic, *Occurrence]
	associations grouping[*Topic, *Association]
	roles        grouping[*Topic, *AssociationRole]
	scoped       grouping[*Topic, Scoped]
	values       grouping[string, Valued]
}

// grouping holds items by what they have in common.
type grouping[K comparable, V any] struct {
	keys  []K // in the order in which they are met
	items map[K][]V
}

func (g *grouping[K, V]) add(k K, v V) {
	if g.items == nil {
		g.items = map[K][]V{}
	}
	list, known := g.items[k]
	if !known {
		g.keys = append(g.keys, k)
	}
	g.items[k] = append(list, v)
}

// NewIndex makes an index of tm, which is to be normalized, in one walk. It
// holds a reference or two for each item, and one for each theme.
func NewIndex(tm *TopicMap) *Index {
	x := &Index{}
	for c := range tm.Constructs() {
		switch c := c.(type) {
		case *Topic:
			x.addTopic(c)
		case *TopicName:
			x.names.add(c.Type(), c)
		case *Occurrence:
			x.occurrences.add(c.Type(), c)
		case *Association:
			x.associations.add(c.Type(), c)
		case *AssociationRole:
			x.roles.add(c.Type(), c)
		}
		if c, ok := c.(Scoped); ok {
			for _, theme := range c.Scope().Themes() {
				x.scoped.add(theme, c)
			}
		}
		if c, ok := c.(Valued); ok {
			x.values.add(c.Value(), c)
		}
	}
	return x
}

func (x *Index) addTopic(t *Topic) {
	typed := false
	for class := range t.classes() {
		x.topics.add(class, t)
		typed = true
	}
	if !typed {
		x.untyped = append(x.untyped, t)
	}
}

// TopicTypes returns the topics that have instances.
func (x *Index) TopicTypes() []*Topic { return x.topics.keys }

// TopicsByType returns the instances of class.
func (x *Index) TopicsByType(class *Topic) []*Topic { return x.topics.items[class.live()] }

// UntypedTopics returns the topics that are not said to be instances of anything.
func (x *Index) UntypedTopics() []*Topic { return x.untyped }

// NameTypes returns the types of names.
func (x *Index) NameTypes() []*Topic { return x.names.keys }

// NamesByType returns the names of the type.
func (x *Index) NamesByType(typ *Topic) []*TopicName { return x.names.items[typ.live()] }

// OccurrenceTypes returns the types of occurrences.
func (x *Index) OccurrenceTypes() []*Topic { return x.occurrences.keys }

// OccurrencesByType returns the occurrences of the type.
func (x *Index) OccurrencesByType(typ *Topic) []*Occurrence { return x.occurrences.items[typ.live()] }

// AssociationTypes returns the types of associations.
func (x *Index) AssociationTypes() []*Topic { return x.associations.keys }

// AssociationsByType returns the associations of the type.
func (x *Index) AssociationsByType(typ *Topic) []*Association {
	return x.associations.items[typ.live()]
}

// RoleTypes returns the types of association roles.
func (x *Index) RoleTypes() []*Topic { return x.roles.keys }

// RolesByType returns the association roles of the type.
func (x *Index) RolesByType(typ *Topic) []*AssociationRole { return x.roles.items[typ.live()] }

// Themes returns the topics that are themes of a scope.
func (x *Index) Themes() []*Topic { return x.scoped.keys }

// ByTheme returns the names, variants, occurrences and associations that have
// theme in their scope.
func (x *Index) ByTheme(theme *Topic) []Scoped { return x.scoped.items[theme.live()] }

// ByValue returns the names, variants and occurrences with exactly this value,
// whatever its datatype.
func (x *Index) ByValue(value string) []Valued { return x.values.items[value] }
