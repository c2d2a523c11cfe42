package tmdm

import "cmp"

// Merge merges other into t (ISO 13250-2 §6.2, Merging topic items): t gets its identifiers, names, occurrences, roles
// and reified item, and replaces it in every reference. Duplicates remain until Normalize. If the topics reify unequal
// items, Merge changes nothing and returns a [*ReifierError]. If they belong to different maps, it returns
// [ErrOtherMap]; package xtm reads several documents into one.
func (t *Topic) Merge(other *Topic) error {
	t, other = t.live(), other.live()
	if t == other {
		return nil
	}
	if err := cmp.Or(t.tm.usable(t), t.tm.usable(other)); err != nil {
		return err
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
	a, b := t.reifiedItems(), other.reifiedItems()
	if len(a) == 0 || len(b) == 0 || equalStatements(a[0], b[0]) {
		return nil
	}
	return &ReifierError{t, b[0], a[0]}
}

func (t *Topic) absorb(other *Topic) {
	t.sis = append(t.sis, other.sis...)
	t.iids = append(t.iids, other.iids...)
	t.names = append(t.names, other.names...)
	t.occurrences = append(t.occurrences, other.occurrences...)
	// A class has very many roles. The shorter list is appended to the longer one, so that the cost does not depend on
	// which topic is the class.
	if len(t.roles) < len(other.roles) {
		t.roles, other.roles = other.roles, t.roles
	}
	t.roles = append(t.roles, other.roles...)
	if other.more != nil {
		d := t.details()
		d.sls = append(d.sls, other.more.sls...)
		d.reified = append(d.reified, other.more.reified...)
	}
	t.tm.merged = true
	*other = Topic{tm: t.tm, serial: other.serial}
	other.mergedInto.Store(t)
}
