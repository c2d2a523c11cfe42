package tmdm

import "slices"

// Association is an association item (ISO 13250-2 §5.7).
type Association struct {
	statement
	roles []*AssociationRole
}

// TopicMap returns the map that a belongs to.
func (a *Association) TopicMap() *TopicMap { return a.kind.scope.tm }

// Type returns the association type.
func (a *Association) Type() *Topic { return a.kind.typ.live() }

// SetType changes the association type.
func (a *Association) SetType(typ *Topic) {
	tm := a.TopicMap()
	a.setKind(tm.kind(tm.mustUse(typ), a.Scope(), ""))
}

// SetScope changes the scope.
func (a *Association) SetScope(themes ...*Topic) {
	tm := a.TopicMap()
	a.setKind(tm.kind(a.Type(), tm.Scope(themes...), ""))
}

// Roles returns the roles in order of creation. The slice must not be changed.
func (a *Association) Roles() []*AssociationRole { return a.roles }

// AddRole adds a role of the given type, played by player.
func (a *Association) AddRole(typ, player *Topic) *AssociationRole {
	tm := a.TopicMap()
	typ, player = tm.mustUse(typ), tm.mustUse(player)
	r := tm.slabs.roles.take()
	*r = AssociationRole{a, typ, player}
	if a.roles == nil { // most associations have two
		a.roles = tm.slabs.pairs.take()[:0]
	}
	a.roles = append(a.roles, r)
	player.roles = append(player.roles, r)
	return r
}

// TypeInstance returns the class and the instance if a is a type-instance association in the unconstrained scope with
// exactly these two roles and no reifier (ISO 13250-2 §7.2).
func (a *Association) TypeInstance() (class, instance *Topic, ok bool) {
	if len(a.roles) != 2 || len(a.kind.scope.themes) > 0 || !a.Type().is(PSITypeInstance) || a.Reifier() != nil {
		return nil, nil, false
	}
	r, s := a.roles[0], a.roles[1]
	if r.Reifier() != nil || s.Reifier() != nil {
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
func (t *Topic) is(psi Locator) bool {
	if len(t.sis) == 1 {
		return t.sis[0] == psi
	}
	return len(t.sis) > 0 && t.tm.TopicBySubjectIdentifier(psi) == t
}

// Remove removes a and its roles. It looks through the roles of each player.
func (a *Association) Remove() { a.TopicMap().removeAssociations(a) }

func (a *Association) removed() bool { return a.kind.removed }

// markRemoved makes removed true. The type and the scope can still be read.
func (a *Association) markRemoved() {
	k := *a.kind
	k.removed = true
	a.kind = &k
}

// removeAssociations removes all of gone with one pass through the roles of each player. Like without, it keeps the old
// lists unchanged for callers that iterate over them.
func (tm *TopicMap) removeAssociations(gone ...*Association) {
	players := map[*Topic]bool{}
	for _, a := range gone {
		if a.removed() {
			continue
		}
		for _, r := range a.roles {
			tm.dropIdentity(r)
			players[r.Player()] = true
		}
		tm.dropIdentity(a)
		a.markRemoved()
		tm.removed++
	}
	for p := range players {
		p.roles = slices.DeleteFunc(slices.Clone(p.roles), (*AssociationRole).removed)
	}
	if 2*tm.removed > len(tm.associations) {
		tm.associations = slices.DeleteFunc(slices.Clone(tm.associations), (*Association).removed)
		tm.removed = 0
	}
}

// AssociationRole is an association role item (ISO 13250-2 §5.8).
type AssociationRole struct {
	assoc  *Association
	typ    *Topic // nil once the role alone was removed
	player *Topic
}

func (r *AssociationRole) removed() bool { return r.typ == nil || r.assoc.removed() }

// TopicMap returns the map that r belongs to.
func (r *AssociationRole) TopicMap() *TopicMap { return r.assoc.TopicMap() }

// Association returns the association that r is part of.
func (r *AssociationRole) Association() *Association { return r.assoc }

// Type returns the role type.
func (r *AssociationRole) Type() *Topic { return r.typ.live() }

// SetType changes the role type.
func (r *AssociationRole) SetType(typ *Topic) { r.typ = r.TopicMap().mustUse(typ) }

// Player returns the topic that plays the role.
func (r *AssociationRole) Player() *Topic { return r.player.live() }

// SetPlayer makes another topic play the role.
func (r *AssociationRole) SetPlayer(player *Topic) {
	old := r.Player()
	player = r.TopicMap().mustUse(player)
	if player == old {
		return
	}
	old.roles = without(old.roles, r)
	player.roles = append(player.roles, r)
	r.player = player
}

// Remove takes r out of its association.
func (r *AssociationRole) Remove() {
	if r.removed() {
		return
	}
	r.TopicMap().dropIdentity(r)
	r.assoc.roles = without(r.assoc.roles, r)
	p := r.Player()
	p.roles = without(p.roles, r)
	r.typ = nil
}

// details returns the rare properties of a role, or nil. The association stores them.
func (r *AssociationRole) details() *details {
	if r.assoc.kind.own == nil {
		return nil
	}
	return r.assoc.kind.own.roles[r]
}

func (r *AssociationRole) setDetails(set func(*details)) {
	more := r.assoc.statement.details()
	d := more.roles[r]
	if d == nil {
		d = &details{}
		if more.roles == nil {
			more.roles = map[*AssociationRole]*details{}
		}
		more.roles[r] = d
	}
	if set(d); d.iids == nil && d.reifier == nil {
		delete(more.roles, r)
	}
}

// ItemIdentifiers implements [Construct].
func (r *AssociationRole) ItemIdentifiers() []Locator { return r.details().ItemIdentifiers() }

// Reifier implements [Reifiable].
func (r *AssociationRole) Reifier() *Topic { return r.details().Reifier() }

func (r *AssociationRole) setItemIdentifiers(l []Locator) {
	if r.details() != nil || len(l) > 0 {
		r.setDetails(func(d *details) { d.iids = l })
	}
}

func (r *AssociationRole) setReifier(t *Topic) {
	if r.details() != nil || t != nil {
		r.setDetails(func(d *details) { d.reifier = t })
	}
}

// settle replaces merged topics by the topics that they were merged into.
func (r *AssociationRole) settle() {
	r.typ, r.player = r.typ.live(), r.player.live()
	r.details().settle()
}
