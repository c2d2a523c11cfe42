package editing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/titles"
)

// input is a field as a page shows it, with its error.
type input struct {
	ID, Label, Value string
	Is               string // the topics that the value names; "": none, or named by identifiers
	List             string // of proposals; "": none
	Most             int    // characters; 0: as many as fit into the form
	Wrong            *wrong // nil: no error
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

// Topics is for templates: it returns a field of topics, by their titles.
func (r *row) Topics(kind string, i int, name, label, value string) input {
	f := r.Field(kind, i, name, label, value)
	f.Value, f.Is = titled(value, func(si string) string { return r.titles[si] })
	return f
}

// TypeTitle is for templates: it returns the title of the occurrence's type.
func (r *occurrenceRow) TypeTitle() string { return r.titles[r.Type] }

// LanguageField is for templates: it returns the field of a language, by its tag.
func (r *row) LanguageField(kind string, i int, label, value string) input {
	f := r.Field(kind, i, "language", label, value)
	f.Value, f.Is = titled(value, func(si string) string {
		tag, _ := titles.LanguageOf(si)
		return tag.String()
	})
	return f
}

// From is for templates: it returns the field with a list of proposals.
func (f input) From(list string) input {
	f.List = list
	return f
}

// Themes is for templates: it returns the fields of the themes of a scope, and an empty one, with a list of proposals.
// The first one has its own label.
func (r *row) Themes(kind string, i int, label, also, value string) (all []input) {
	themes := append(strings.FieldsFunc(value, func(c rune) bool { return c == '\n' }), "")
	wrong := max(slices.Index(themes, r.Wrong.Text), 0)
	for j, theme := range themes {
		f := r.Topics(kind, i, themeField(j), label, theme).From("known")
		if f.Wrong = nil; r.Wrong.Kind != "" && r.Wrong.Field == themeField(0) && j == wrong {
			f.Wrong = &r.Wrong
		}
		all, label = append(all, f), also
	}
	return all
}

// themeField is the name of the field of a theme.
func themeField(j int) string {
	if j == 0 {
		return "scope"
	}
	return fmt.Sprint("scope-", j)
}

// OtherTopic is for templates: it returns a field of another role.
func (r *row) OtherTopic(kind string, i, j int, name, label, value string) input {
	return r.Topics(kind, i, otherRole(j)+name, label, value)
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
