package collections

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/xtm"
)

// Setting is one of the settings of collections: a member of JSON, and a flag that has its name with hyphens.
type Setting struct {
	Name  string   // in JSON: "keepFor", of the flag --keep-for
	Usage string   // of the flag
	OneOf []string // possible values, or list items; none: any
	Most  int64    // that a number may be; 0: any
	// Publishes states that it affects the published content. A replica has its origin's value.
	Publishes bool

	// Field points to the setting in those of the core.
	Field func(*Settings) any

	// Extension names the extension of a setting without Field. Default is the default of a collection. That of a
	// replica is the zero value if the setting Publishes.
	Extension string
	Default   any
	Binds     bool // a program that does not know it must not publish the collection
}

// Core returns the settings of the core, in the order in which they are shown.
func Core() []Setting {
	return []Setting{
		{Name: "title", Usage: "`title`", Field: func(s *Settings) any { return &s.Title }},
		{Name: "summary", Usage: "`text` that describes the collection", Field: func(s *Settings) any { return &s.Summary }},
		{Name: "language", Publishes: true, Field: func(s *Settings) any { return &s.Language },
			Usage: "`tag` of the language of titles (default: that of most names of the first version with any)"},
		{Name: "documentSize", Usage: "`number` of entries in an archive document",
			Most: 10_000, Field: func(s *Settings) any { return &s.DocumentSize }}, // every reader gets documents of this size
		{Name: "omitInstances", Usage: "leave the instances out of the fragments of classes",
			Publishes: true, Field: func(s *Settings) any { return &s.OmitInstances }},
		{Name: "recordFormats", Usage: "`formats` in which records are offered", OneOf: formats.Stored().Names(),
			Publishes: true, Field: func(s *Settings) any { return (*formNames)(&s.RecordForms) }},
		{Name: "rdf", Usage: "offer fragments, snapshots and topics in RDF, too",
			Publishes: true, Field: func(s *Settings) any { return &s.RDF }},
		{Name: "snapshotEvery", Usage: "take a new snapshot after this `number` of changes",
			Field: func(s *Settings) any { return &s.SnapshotEvery }},
		{Name: "snapshotAfter", Usage: "take a new snapshot when a change has waited for it for this `time`",
			Field: func(s *Settings) any { return (*Period)(&s.SnapshotAfter) }},
		{Name: "snapshotsKept", Usage: "keep this `number` of snapshots", Field: func(s *Settings) any {
			return &s.SnapshotsKept
		}},
		{Name: "keepEntries", Usage: "give up changes before the last `number`",
			Field: func(s *Settings) any { return &s.KeepEntries }},
		{Name: "keepFor", Usage: "give up changes older than this `time`",
			Field: func(s *Settings) any { return (*Period)(&s.KeepFor) }},
		{Name: "mirrors", Usage: "`URLs` under which others serve the collection, the preferred first",
			Field: func(s *Settings) any { return &s.Mirrors }},
		{Name: "via", Usage: "`URL` of the collection that this one republishes", Field: func(s *Settings) any {
			return &s.Via
		}},
		{Name: "sign",
			Usage:     "sign checkpoints of the log with this `key file`, a path on the server's machine (see \"key\")",
			Publishes: true, Field: func(s *Settings) any { return &s.Sign }},
	}
}

// formNames are forms of records that JSON has by the names of their formats.
type formNames []xtm.Version

// MarshalJSON implements json.Marshaler.
func (f formNames) MarshalJSON() ([]byte, error) {
	names := make([]string, len(f))
	for i, v := range f {
		names[i] = formats.StoredAs(v).Name
	}
	return json.Marshal(names)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *formNames) UnmarshalJSON(b []byte) error {
	var names []string
	err := json.Unmarshal(b, &names)
	for _, name := range names {
		format, unknown := formats.Stored().Named(name)
		if unknown != nil {
			return unknown
		}
		*f = append(*f, format.Stored)
	}
	return err
}

// Flag returns the name of the flag.
func (x *Setting) Flag() string {
	var flag strings.Builder
	for _, r := range x.Name {
		if unicode.IsUpper(r) {
			flag.WriteByte('-')
		}
		flag.WriteRune(unicode.ToLower(r))
	}
	return flag.String()
}

// key returns the name in [Settings.Ext]. It shows that a setting binds, also to programs that do not know it.
func (x *Setting) key() string {
	if x.Binds {
		return x.Extension + "!" + x.Name
	}
	return x.Extension + "." + x.Name
}

// place returns a pointer to where some settings have the value, or to a new default of it.
func (x *Setting) place(s *Settings) reflect.Value {
	if x.Field != nil {
		return reflect.ValueOf(x.Field(s))
	}
	value := reflect.New(reflect.TypeOf(x.Default))
	value.Elem().Set(reflect.ValueOf(x.Default))
	return value
}

// In returns a pointer to the value that a collection has.
func (x *Setting) In(c *Collection) any {
	value := x.place(&c.Settings)
	if stored, set := c.Ext[x.key()]; set {
		_ = json.Unmarshal(stored, value.Interface()) // as Set has written it
	} else if x.Field == nil && x.Publishes && c.Replica != nil {
		value.Elem().SetZero()
	}
	return value.Interface()
}

// Set changes the setting in some settings to a value in JSON; null leaves it.
func (x *Setting) Set(s *Settings, value json.RawMessage) error {
	if string(value) == "null" {
		return nil
	}
	place := x.place(s)
	given := reflect.New(place.Type().Elem()) // do not overwrite the present value, which others may share
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(value, given.Interface()); {
	case errors.As(err, &wrong):
		return fmt.Errorf("%s cannot be a JSON %s; the settings of a collection show how each is written", x.Name,
			wrong.Value)
	case err != nil:
		return fmt.Errorf("%s: %w", x.Name, err)
	}
	place.Elem().Set(given.Elem())
	if x.Field == nil {
		b, err := json.Marshal(given.Interface())
		if err != nil {
			return err
		}
		if s.Ext = maps.Clone(s.Ext); s.Ext == nil {
			s.Ext = map[string]json.RawMessage{}
		}
		s.Ext[x.key()] = b
	}
	return x.check(given.Elem())
}

// check checks a number.
func (x *Setting) check(value reflect.Value) error {
	switch {
	case !value.CanInt():
	case value.Int() < 0:
		return fmt.Errorf("%s (--%s) is negative: give more than 0, or 0 to leave it to the server", x.Name, x.Flag())
	case x.Most > 0 && value.Int() > x.Most:
		return fmt.Errorf("%s (--%s) is more than %d: give %[3]d at most", x.Name, x.Flag(), x.Most)
	}
	return nil
}

// Shown returns the settings of a collection as JSON has them.
func (c *Collection) Shown(all []Setting) (map[string]json.RawMessage, error) {
	as, inRDF, shown := *c, c.InRDF(), map[string]json.RawMessage{}
	as.RDF = &inRDF
	for i := range all {
		value := all[i].In(&as)
		b, err := json.Marshal(value)
		if string(b) == "null" { // a list that has nothing
			b = []byte("[]")
		}
		if shown[all[i].Name] = b; err != nil {
			return nil, err
		}
	}
	return shown, nil
}

// Republishes reports whether other settings would make a replica publish something else than its origin.
func (c *Collection) Republishes(next Settings, all []Setting) bool {
	as := *c
	if as.Settings = next; next.RDF != nil && *next.RDF == c.InRDF() {
		as.RDF = nil
	}
	return slices.ContainsFunc(all, func(x Setting) bool { return x.Publishes && !reflect.DeepEqual(x.In(c), x.In(&as)) })
}
