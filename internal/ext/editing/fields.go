package editing

import (
	"fmt"
)

// input is a field as a page shows it: with what is wrong in it, and where that stands.
type input struct {
	ID, Label, Value string
	List             string // of proposals; "": none
	Most             int    // characters; 0: as many as fit into the form
	Wrong            *wrong // nil: nothing is
}

// inputOf returns a field that is in no row.
func inputOf(name, label, value string, most int, w *wrong) input {
	f := input{ID: name, Label: label, Value: value, Most: most}
	if w.Kind != "" && (w.Field == name || w.Field == "") {
		f.Wrong = w
	}
	return f
}

// Field is for templates: it returns a field of the row with a number.
func (r *row) Field(kind string, i int, name, label, value string) input {
	f := input{ID: fmt.Sprint(kind, "-", i, "-", name), Label: label, Value: value}
	if r.Wrong.Kind != "" && r.Wrong.Field == name {
		f.Wrong = &r.Wrong
	}
	return f
}

// From is for templates: it returns the field with a list of proposals.
func (f input) From(list string) input {
	f.List = list
	return f
}

// OtherField does so for a field of another role.
func (r *row) OtherField(kind string, i, j int, name, label, value string) input {
	return r.Field(kind, i, otherRole(j)+name, label, value)
}

// problems returns the fields in which something is wrong, in the order of the form.
func (d *draft) problems() (all []input) {
	add := func(id string, w *wrong) {
		if w.Kind != "" {
			all = append(all, input{ID: id, Wrong: w})
		}
	}
	add("identifier", &d.WrongName)
	for _, r := range d.rows() {
		add(r.id+r.Wrong.Field, &r.Wrong)
	}
	add(d.WrongLine.Field, &d.WrongLine)
	return all
}
