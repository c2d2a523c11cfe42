package formats

import (
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/xtm"
)

// Registry holds the formats of a program besides the built-in ones.
type Registry []*Format

// All returns all formats.
func (r Registry) All() List {
	return slices.Concat(List{XTM21, XTM20, XTM10}, List(r), List{CXTM})
}

// Default is the format if neither a name nor an ending determines it.
var Default = XTM21

// Readable returns the formats that can be read.
func (r Registry) Readable() List { return r.chosen(func(f *Format) bool { return f.Read != nil }) }

// Served returns the formats that servers offer.
func (r Registry) Served() List { return r.chosen(func(f *Format) bool { return f.URLEnding != "" }) }

// Exchanged returns the formats with an [Exchange] that servers offer, for collections with the setting "rdf".
func (r Registry) Exchanged() List {
	return r.chosen(func(f *Format) bool { return f.URLEnding != "" && f.Exchange != nil })
}

// Stored returns the formats in which servers store fragments and snapshots, which they offer for each collection.
func Stored() List { return Registry(nil).chosen(func(f *Format) bool { return f.Stored != "" }) }

func (r Registry) chosen(which func(*Format) bool) List {
	return slices.DeleteFunc(r.All(), func(f *Format) bool { return !which(f) })
}

// List has formats, in the order in which messages name them.
type List []*Format

// Named returns the format with a name or an alias.
func (l List) Named(name string) (*Format, error) {
	for _, f := range l {
		if f.Name == name || slices.Contains(f.Aliases, name) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: use %s", name, l)
}

// String names the formats in a sentence: "a, b or c".
func (l List) String() string {
	names := l.Names()
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Names returns the names of the formats.
func (l List) Names() (names []string) {
	for _, f := range l {
		names = append(names, f.Name)
	}
	return names
}

// OfFile returns the format of the ending of a file's name, ignoring case.
func (r Registry) OfFile(path string) (*Format, bool) {
	ending := strings.ToLower(filepath.Ext(strings.TrimSuffix(path, gzipEnding)))
	for _, f := range r.All() {
		if slices.Contains(f.Endings, ending) {
			return f, true
		}
	}
	return nil, false
}

// ForExport returns the format of a file to export to: that of its ending, or the default for a name without one.
func (r Registry) ForExport(path string) (*Format, error) {
	if f, ok := r.OfFile(path); ok {
		return f, nil
	}
	if filepath.Ext(strings.TrimSuffix(path, gzipEnding)) != "" && path != "-" {
		return nil, fmt.Errorf("%s: its ending does not tell the format: say it with --format", path)
	}
	return Default, nil
}

// ToRead returns the format to read content with a media type: Default if the type is of no readable format.
func (r Registry) ToRead(mediaType string) *Format {
	base, params, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return Default
	}
	for _, f := range r.All() {
		for _, known := range f.MediaTypes {
			knownBase, knownParams, _ := mime.ParseMediaType(known)
			if f.Read != nil && base == knownBase && params["version"] == knownParams["version"] {
				return f
			}
		}
	}
	return Default
}

// StoredAs returns the format of a form in which servers keep fragments and snapshots.
func StoredAs(v xtm.Version) *Format {
	for _, f := range Stored() {
		if f.Stored == v {
			return f
		}
	}
	panic("no format is stored as XTM " + string(v)) // a list in the program is wrong
}

// Help is the table of formats for the help of a command: endings, names, titles.
func (r Registry) Help() string {
	var b strings.Builder
	for _, f := range r.All() {
		fmt.Fprintf(&b, "  %-13s %-7s %s\n", strings.Join(f.Endings, ", "), f.Name, f.Title)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Same reports whether two names are of one format. Each may be an alias.
func (r Registry) Same(a, b string) bool {
	if a == b {
		return true
	}
	one, errA := r.All().Named(a)
	other, errB := r.All().Named(b)
	return errA == nil && errB == nil && one == other
}
