package editing

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/pages"
)

// draft is a form as a person has filled it in.
type draft struct {
	State      string // of the topic when the form was made; "": a new topic
	Identifier string // of a new topic

	Names        []nameRow
	Occurrences  []occurrenceRow
	Types        []typeRow
	Associations []associationRow

	Author, Note string

	WrongName wrong // why the identifier cannot be taken
	WrongLine wrong // likewise the author or the note

	doubles []double // statements that others have changed, too

	published string // the page of the topic, once the draft is published
}

// empty reports whether all fields are empty.
func (d *draft) empty() bool {
	return d.Identifier == "" && !slices.ContainsFunc(d.rows(), func(r numbered) bool { return !r.blank })
}

// row holds the fields that all rows share.
type row struct {
	Is     string // identifies the statement; "": it is new
	Remove bool
	Long   bool // the statement is not shown in fields: it can only stay or go
	Wrong  wrong
	Open   bool // its fields are seen at once

	// The parts of the statement shown beside the fields.
	Shown    string            // the beginning of its value, unless a field has it
	Variants []string          // of a name
	Reifier  *pages.Link       // nil: no reifier
	Names    []pages.Link      // of the topics that the row names
	titles   map[string]string // of the topics that fields name, by their identifiers
}

// wrong is why a field cannot be taken.
type wrong struct {
	Kind, Text, Field string
	Choices           []fragment.Ref // topics that may be meant
	Meant             []pages.Link   // links to these topics, for a page
}

// at sets the field of a row that an error belongs to.
func (w wrong) at(field string) wrong {
	w.Field = field
	return w
}

type nameRow struct {
	row
	themes
	Value, Type string
}

type occurrenceRow struct {
	row
	themes
	Value, Type, Datatype string
}

type typeRow struct {
	row
	Type string
}

type associationRow struct {
	row
	Type, Role, Scope string
	Others            []roleRow

	Of [][2]pages.Link // types and players of the other roles of one that is there
}

type roleRow struct{ Type, Player string }

// mostRows is the maximum number of rows of a kind in a form, and mostRoles that of other roles in a row.
const (
	mostRows  = 300
	mostRoles = 20
)

// Names of fields: they begin with the kind of the row and its number.
const (
	ofName        = "name"
	ofOccurrence  = "occurrence"
	ofType        = "type"
	ofAssociation = "association"
)

// read reads a draft from the values of a form.
func read(f url.Values) *draft {
	d := &draft{
		State: f.Get("state"), Identifier: strings.TrimSpace(f.Get("identifier")),
		Author: strings.TrimSpace(f.Get("author")), Note: strings.TrimSpace(f.Get("note")),
	}
	for one := range rowsOf(f, ofName) {
		d.Names = append(d.Names, nameRow{row: one.row(), Value: one.text("value"), Type: one.topics("type"),
			themes: one.themes()})
	}
	for one := range rowsOf(f, ofOccurrence) {
		d.Occurrences = append(d.Occurrences, occurrenceRow{row: one.row(), Value: one.text("value"),
			Type: one.topics("type"), Datatype: one.line("datatype"), themes: one.themes()})
	}
	for one := range rowsOf(f, ofType) {
		d.Types = append(d.Types, typeRow{row: one.row(), Type: one.topics("type")})
	}
	for one := range rowsOf(f, ofAssociation) {
		made := associationRow{row: one.row(), Type: one.topics("type"), Role: one.topics("role"),
			Scope: one.scope()}
		for i := range mostRoles {
			at := otherRole(i)
			if !one.has(at + "type") {
				break
			}
			made.Others = append(made.Others, roleRow{one.topics(at + "type"), one.topics(at + "player")})
		}
		d.Associations = append(d.Associations, made)
	}
	return d
}

// otherRole begins the names of the fields of another role.
func otherRole(i int) string { return fmt.Sprint("other-", i, "-") }

// fields are those of a row.
type fields struct {
	values url.Values
	prefix string
}

func rowsOf(f url.Values, kind string) func(yield func(fields) bool) {
	return func(yield func(fields) bool) {
		for i := range mostRows {
			one := fields{f, fmt.Sprint(kind, "-", i, "-")}
			if !one.has("is") || !yield(one) {
				return
			}
		}
	}
}

func (f fields) has(name string) bool { return f.values.Has(f.prefix + name) }

func (f fields) line(name string) string { return strings.TrimSpace(f.values.Get(f.prefix + name)) }

// text returns a value with the ends of lines that XML has: browsers send others.
func (f fields) text(name string) string { return lines(f.values.Get(f.prefix + name)) }

func (f fields) themes() themes { return themes{f.topics("language"), f.scope()} }

// scope returns the themes of all its fields, one on each line.
func (f fields) scope() string {
	all := f.topics(themeField(0))
	for i := 1; f.has(themeField(i)); i++ {
		all += "\n" + f.topics(themeField(i))
	}
	return strings.TrimSpace(all)
}

func (f fields) row() row {
	return row{Is: f.line("is"), Remove: f.has("remove"), Long: f.has("long")}
}

func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// The identity of a statement is computed from the fields of its row, to distinguish changed rows from unchanged ones,
// even if the statement was removed. It ignores line endings, because browsers change them.

func nameIs(self fragment.Ref, n *fragment.Name) string {
	shown := fragment.Name{Value: lines(n.Value), Type: n.Type, Scope: n.Scope}
	return string(fragment.NameClaim("", self, &shown))
}

func occurrenceIs(self fragment.Ref, o *fragment.Occurrence) string {
	shown := fragment.Occurrence{Value: lines(o.Value), Datatype: o.Datatype, Type: o.Type, Scope: o.Scope}
	return string(fragment.OccurrenceClaim("", self, &shown))
}

func associationIs(a *fragment.Association) string {
	key := a.Key()
	return hex.EncodeToString(key[:])
}

// keyOf returns the key of the association that a row is of.
func keyOf(is string) (key fragment.AssociationKey, ok bool) {
	if len(is) != 2*len(key) {
		return key, false
	}
	n, err := hex.Decode(key[:], []byte(is))
	return key, err == nil && n == len(key)
}

// blank reports whether all fields are empty but those that a form fills in itself.
func (r *nameRow) blank() bool {
	return r.Is == "" && r.Value == "" && r.Type == "" && r.themes == themes{}
}

func (r *occurrenceRow) blank() bool {
	return r.Is == "" && r.Value == "" && r.Type == "" && r.Datatype == "" && r.themes == themes{}
}

func (r *typeRow) blank() bool { return r.Is == "" && r.Type == "" }

func (r *associationRow) blank() bool {
	blank := r.Is == "" && r.Type == "" && r.Role == "" && r.Scope == ""
	for _, o := range r.Others {
		blank = blank && o == roleRow{}
	}
	return blank
}

// wrongs reports whether a row cannot be taken.
func (d *draft) wrongs() bool {
	return slices.ContainsFunc(d.rows(), func(r numbered) bool { return r.Wrong.Kind != "" })
}

// numbered is a row with the prefix of its fields' ids.
type numbered struct {
	*row
	id    string
	blank bool
}

func (d *draft) rows() []numbered {
	return slices.Concat(
		number(ofName, d.Names), number(ofOccurrence, d.Occurrences), number(ofType, d.Types),
		number(ofAssociation, d.Associations),
	)
}

// rowOf is a row of any kind.
type rowOf[T any] interface {
	*T
	base() *row
	blank() bool
}

func (r *row) base() *row { return r }

func number[T any, R rowOf[T]](kind string, rows []T) (all []numbered) {
	for i := range rows {
		r := R(&rows[i])
		all = append(all, numbered{r.base(), fmt.Sprint(kind, "-", i, "-"), r.blank()})
	}
	return all
}

// filled returns the rows in which something is filled in, but for those of statements that are not shown and stay.
func filled[T any, R rowOf[T]](all []T) (rows []*row, fields []R) {
	for i := range all {
		if r := R(&all[i]); !r.blank() && (!r.base().Long || r.base().Remove) {
			rows, fields = append(rows, r.base()), append(fields, r)
		}
	}
	return rows, fields
}
