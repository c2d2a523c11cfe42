package tmdm

import "slices"

// TopicName is a topic name item (ISO 13250-2 §5.4).
type TopicName struct {
	itemIdentity
	reifiable
	topic    *Topic
	value    string
	typ      *Topic
	scope    *Scope
	variants []*Variant
}

// TopicMap returns the map that n belongs to.
func (n *TopicName) TopicMap() *TopicMap { return n.topic.tm }

// Topic returns the topic that n names.
func (n *TopicName) Topic() *Topic { return n.topic.live() }

// Value returns the base form of the name.
func (n *TopicName) Value() string { return n.value }

// Type returns the name type.
func (n *TopicName) Type() *Topic { return n.typ.live() }

// Scope returns the scope of n.
func (n *TopicName) Scope() *Scope { return n.scope.live() }

// Variants returns the variants in order of creation. The slice must not be changed.
func (n *TopicName) Variants() []*Variant { return n.variants }

// AddVariant adds a variant. Its scope is that of the name and the given
// themes, of which at least one should be new (ISO 13250-2 §5.5, Variant items).
func (n *TopicName) AddVariant(value, datatype string, themes ...*Topic) *Variant {
	all := append(slices.Clone(n.Scope().Themes()), themes...)
	v := &Variant{name: n, value: value, datatype: datatype, scope: n.TopicMap().Scope(all...)}
	n.variants = append(n.variants, v)
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
	for _, v := range n.variants {
		tm.dropIdentity(v)
	}
	tm.dropIdentity(n)
}

// Variant is a variant item (ISO 13250-2 §5.5).
type Variant struct {
	itemIdentity
	reifiable
	name            *TopicName
	value, datatype string
	scope           *Scope
}

// TopicMap returns the map that v belongs to.
func (v *Variant) TopicMap() *TopicMap { return v.name.TopicMap() }

// Name returns the name of which v is another form.
func (v *Variant) Name() *TopicName { return v.name }

// Value returns the value as a string, whatever its datatype.
func (v *Variant) Value() string { return v.value }

// Datatype returns the IRI of the value's datatype.
func (v *Variant) Datatype() string { return v.datatype }

// Scope returns the scope of v, which includes that of its name.
func (v *Variant) Scope() *Scope { return v.scope.live() }

// Remove removes v.
func (v *Variant) Remove() {
	v.TopicMap().dropIdentity(v)
	v.name.variants = without(v.name.variants, v)
}

// Occurrence is an occurrence item (ISO 13250-2 §5.6).
type Occurrence struct {
	itemIdentity
	reifiable
	topic           *Topic
	value, datatype string
	typ             *Topic
	scope           *Scope
}

// TopicMap returns the map that o belongs to.
func (o *Occurrence) TopicMap() *TopicMap { return o.topic.tm }

// Topic returns the topic that o is about.
func (o *Occurrence) Topic() *Topic { return o.topic.live() }

// Value returns the value as a string, whatever its datatype.
func (o *Occurrence) Value() string { return o.value }

// Datatype returns the IRI of the value's datatype.
func (o *Occurrence) Datatype() string { return o.datatype }

// Type returns the occurrence type.
func (o *Occurrence) Type() *Topic { return o.typ.live() }

// Scope returns the scope of o.
func (o *Occurrence) Scope() *Scope { return o.scope.live() }

// Remove removes o.
func (o *Occurrence) Remove() {
	o.TopicMap().dropIdentity(o)
	t := o.Topic()
	t.occurrences = without(t.occurrences, o)
}

// Association is an association item (ISO 13250-2 §5.7).
type Association struct {
	itemIdentity
	reifiable
	tm      *TopicMap
	typ     *Topic
	scope   *Scope
	roles   []*AssociationRole
	removed bool
}

// TopicMap returns the map that a belongs to.
func (a *Association) TopicMap() *TopicMap { return a.tm }

// Type returns the association type.
func (a *Association) Type() *Topic { return a.typ.live() }

// Scope returns the scope of a.
func (a *Association) Scope() *Scope { return a.scope.live() }

// Roles returns the roles in order of creation. The slice must not be changed.
func (a *Association) Roles() []*AssociationRole { return a.roles }

// AddRole adds a role of the given type, played by player.
func (a *Association) AddRole(typ, player *Topic) *AssociationRole {
	player = player.live()
	r := &AssociationRole{assoc: a, typ: typ, player: player}
	a.roles = append(a.roles, r)
	player.roles = append(player.roles, r)
	return r
}

// TypeInstance returns the class and the instance where a is a type-instance
// association in the unconstrained scope with exactly these two roles and no
// reifier (ISO 13250-2 §7.2).
func (a *Association) TypeInstance() (class, instance *Topic, ok bool) {
	if len(a.roles) != 2 || a.reifier != nil || len(a.Scope().themes) > 0 || !a.Type().is(PSITypeInstance) {
		return nil, nil, false
	}
	r, s := a.roles[0], a.roles[1]
	if r.reifier != nil || s.reifier != nil {
		return nil, nil, false
	}
	switch {
	case r.Type().is(PSIType) && s.Type().is(PSIInstance):
		return r.Player(), s.Player(), true
	case s.Type().is(PSIType) && r.Type().is(PSIInstance):
		return s.Player(), r.Player(), true
	}
	return nil, nil, false
}

// is reports whether t has the subject identifier psi.
func (t *Topic) is(psi Locator) bool { return t.tm.bySI[psi] == t }

// Remove removes a and its roles. It looks through the roles of each player.
func (a *Association) Remove() { a.tm.removeAssociations(a) }

// removeAssociations removes all of gone at the cost of one look through the
// roles of each player, however many of them go. Like without, it leaves the
// old lists to those who walk them.
func (tm *TopicMap) removeAssociations(gone ...*Association) {
	players := map[*Topic]bool{}
	for _, a := range gone {
		if a.removed {
			continue
		}
		for _, r := range a.roles {
			tm.dropIdentity(r)
			r.removed = true
			players[r.Player()] = true
		}
		tm.dropIdentity(a)
		a.removed = true
		tm.removed++
	}
	for p := range players {
		p.roles = slices.DeleteFunc(slices.Clone(p.roles), func(r *AssociationRole) bool { return r.removed })
	}
	if 2*tm.removed > len(tm.associations) {
		tm.associations = slices.DeleteFunc(slices.Clone(tm.associations), func(a *Association) bool { return a.removed })
		tm.removed = 0
	}
}

// AssociationRole is an association role item (ISO 13250-2 §5.8).
type AssociationRole struct {
	itemIdentity
	reifiable
	assoc   *Association
	typ     *Topic
	player  *Topic
	removed bool
}

// TopicMap returns the map that r belongs to.
func (r *AssociationRole) TopicMap() *TopicMap { return r.assoc.tm }

// Association returns the association that r is part of.
func (r *AssociationRole) Association() *Association { return r.assoc }

// Type returns the role type.
func (r *AssociationRole) Type() *Topic { return r.typ.live() }

// Player returns the topic that plays the role.
func (r *AssociationRole) Player() *Topic { return r.player.live() }
