package tmdm

// Merge merges other into t (ISO 13250-2 §6.2, Merging topic items): t gets its
// identifiers, names, occurrences, roles and reified item, and every reference
// to other is one to t from now on. Duplicates that arise stay until Normalize.
// Two topics that reify unequal items cannot be one: Merge then changes nothing
// and returns a [*ReifierError]. The more identifiers other has, the longer it
// takes, so a topic that grows merge by merge is best t.
func (t *Topic) Merge(other *Topic) error {
	t, other = t.live(), other.live()
	if t == other {
		return nil
	}
	if err := t.reifierConflict(other); err != nil {
		return err
	}
	t.absorb(other)
	return nil
}

// reifierConflict returns an error where t and other reify unequal items, and
// nil otherwise.
func (t *Topic) reifierConflict(other *Topic) *ReifierError {
	if len(t.reified) == 0 || len(other.reified) == 0 || equalStatements(t.reified[0], other.reified[0]) {
		return nil
	}
	return &ReifierError{t, other.reified[0], t.reified[0]}
}

func (t *Topic) absorb(other *Topic) {
	tm := t.tm
	for _, l := range other.sis {
		tm.bySI[l] = t
	}
	for _, l := range other.sls {
		tm.bySL[l] = t
	}
	t.sis = append(t.sis, other.sis...)
	t.sls = append(t.sls, other.sls...)
	tm.moveIdentifiers(other, t)
	t.names = append(t.names, other.names...)
	t.occurrences = append(t.occurrences, other.occurrences...)
	// A class has very many roles. The shorter list goes behind the longer one,
	// so that the cost does not depend on which of the two topics is the class.
	if len(t.roles) < len(other.roles) {
		t.roles, other.roles = other.roles, t.roles
	}
	t.roles = append(t.roles, other.roles...)
	t.reified = append(t.reified, other.reified...)
	*other = Topic{tm: tm, serial: other.serial, mergedInto: t}
}
