package tmdm

import "slices"

// TopicName is a topic name item (ISO 13250-2 §5.4).
type TopicName struct {
	statement
	topic *Topic
	value string
}

// TopicMap returns the map that n belongs to.
func (n *TopicName) TopicMap() *TopicMap { return n.topic.tm }

// Topic returns the topic that n names.
func (n *TopicName) Topic() *Topic { return n.topic.live() }

// Value returns the base form of the name.
func (n *TopicName) Value() string { return n.value }

// SetValue changes the base form of the name.
func (n *TopicName) SetValue(value string) { n.value = value }

// Type returns the name type.
func (n *TopicName) Type() *Topic { return n.kind.typ.live() }

// SetType changes the name type. A nil typ is the default name type.
func (n *TopicName) SetType(typ *Topic) {
	if typ == nil {
		typ = n.TopicMap().CreateTopicBySubjectIdentifier(PSIDefaultNameType)
	}
	n.setKind(n.TopicMap().kind(n.TopicMap().mustUse(typ), n.Scope(), ""))
}

// SetScope changes the scope, and with it that of each variant, which keeps the
// themes that it adds (ISO 13250-2 §5.5, Variant items: the scope of a variant
// is a superset of that of its name).
func (n *TopicName) SetScope(themes ...*Topic) {
	tm, old := n.TopicMap(), n.Scope()
	scope := tm.Scope(themes...)
	n.setKind(tm.kind(n.Type(), scope, ""))
	for _, v := range n.Variants() {
		own := slices.DeleteFunc(slices.Clone(v.Scope().Themes()), func(t *Topic) bool {
			return slices.Contains(old.Themes(), t)
		})
		v.setKind(tm.kind(nil, tm.Scope(append(own, scope.Themes()...)...), v.Datatype()))
	}
}

// Variants returns the variants in order of creation. The slice must not be changed.
func (n *TopicName) Variants() []*Variant {
	if n.kind.own == nil {
		return nil
	}
	return n.kind.own.variants
}

func (n *TopicName) setVariants(list []*Variant) {
	if n.kind.own != nil || len(list) > 0 {
		n.details().variants = list
	}
}

// AddVariant adds a variant. Its scope is that of the name and the given themes. At least one of these should be new
// (ISO 13250-2 §5.5, Variant items). An empty datatype is xsd:string.
func (n *TopicName) AddVariant(value, datatype string, themes ...*Topic) *Variant {
	tm := n.TopicMap()
	scope := n.Scope()
	if !scope.containsAll(themes) {
		scope = tm.Scope(slices.Concat(scope.Themes(), themes)...)
	}
	v := &Variant{statement{kind: tm.valueKind(nil, scope, datatype)}, n, value}
	n.setVariants(append(n.Variants(), v))
	return v
}

// Remove removes n and its variants.
func (n *TopicName) Remove() {
	n.dropIdentities()
	t := n.Topic()
	t.names = without(t.names, n)
}

func (n *TopicName) dropIdentities() {
	tm := n.TopicMap()
	for _, v := range n.Variants() {
		tm.dropIdentity(v)
	}
	tm.dropIdentity(n)
}

// Variant is a variant item (ISO 13250-2 §5.5).
type Variant struct {
	statement
	name  *TopicName
	value string
}

// TopicMap returns the map that v belongs to.
func (v *Variant) TopicMap() *TopicMap { return v.name.TopicMap() }

// Name returns the name that v is a variant of.
func (v *Variant) Name() *TopicName { return v.name }

// Value returns the value as a string, for any datatype.
func (v *Variant) Value() string { return v.value }

// Datatype returns the IRI of the value's datatype.
func (v *Variant) Datatype() string { return v.kind.datatype }

// SetValue changes the value and its datatype. An empty datatype is xsd:string.
func (v *Variant) SetValue(value, datatype string) {
	v.value = value
	v.setKind(v.TopicMap().valueKind(nil, v.Scope(), datatype))
}

// SetScope changes the scope to that of the name and the given themes.
func (v *Variant) SetScope(themes ...*Topic) {
	tm := v.TopicMap()
	v.setKind(tm.kind(nil, tm.Scope(slices.Concat(v.name.Scope().Themes(), themes)...), v.Datatype()))
}

// Remove removes v.
func (v *Variant) Remove() {
	v.TopicMap().dropIdentity(v)
	v.name.setVariants(without(v.name.Variants(), v))
}

// Occurrence is an occurrence item (ISO 13250-2 §5.6).
type Occurrence struct {
	statement
	topic *Topic
	value string
}

// TopicMap returns the map that o belongs to.
func (o *Occurrence) TopicMap() *TopicMap { return o.topic.tm }

// Topic returns the topic that o is about.
func (o *Occurrence) Topic() *Topic { return o.topic.live() }

// Value returns the value as a string, for any datatype.
func (o *Occurrence) Value() string { return o.value }

// Datatype returns the IRI of the value's datatype.
func (o *Occurrence) Datatype() string { return o.kind.datatype }

// SetValue changes the value and its datatype. An empty datatype is xsd:string.
func (o *Occurrence) SetValue(value, datatype string) {
	o.value = value
	o.setKind(o.TopicMap().valueKind(o.Type(), o.Scope(), datatype))
}

// Type returns the occurrence type.
func (o *Occurrence) Type() *Topic { return o.kind.typ.live() }

// SetType changes the occurrence type.
func (o *Occurrence) SetType(typ *Topic) {
	o.setKind(o.TopicMap().kind(o.TopicMap().mustUse(typ), o.Scope(), o.Datatype()))
}

// SetScope changes the scope.
func (o *Occurrence) SetScope(themes ...*Topic) {
	tm := o.TopicMap()
	o.setKind(tm.kind(o.Type(), tm.Scope(themes...), o.Datatype()))
}

// Remove removes o.
func (o *Occurrence) Remove() {
	o.TopicMap().dropIdentity(o)
	t := o.Topic()
	t.occurrences = without(t.occurrences, o)
}
