package formats

import (
	"fmt"
	"mime"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/formats/format"
	"github.com/tmshare/tmshare/internal/formats/formatcxtm"
	"github.com/tmshare/tmshare/internal/formats/formatrdf"
	"github.com/tmshare/tmshare/internal/formats/formatxtm"
	"github.com/tmshare/tmshare/internal/rdf/mapping"
	"github.com/tmshare/tmshare/xtm"
)

// RDFOptions say how RDF becomes a topic map, and the other way round.
type RDFOptions = mapping.Options

// WriteOptions say how a map is written.
type WriteOptions = format.WriteOptions

// Format is one notation in which topic maps are read, written, or both.
type Format = format.Format

// The formats, for those who need a certain one.
var (
	XTM10 = formatxtm.XTM10
	XTM20 = formatxtm.XTM20
	XTM21 = formatxtm.XTM21
	CXTM  = formatcxtm.CXTM
)

// All are the formats, in the order in which messages name them. A new format is a package, and
// one entry here.
var All = []*Format{XTM21, XTM20, XTM10, formatrdf.Turtle, formatrdf.NTriples, formatrdf.RDFXML, formatrdf.JSONLD, formatrdf.TriG, formatrdf.NQuads, CXTM}

// Default is the format of what no name and no ending says otherwise.
var Default = XTM21

// Named returns the format with a name or an alias.
func Named(name string) (*Format, error) { return among(All, name) }

// Readable returns the formats that can be read.
func Readable() []*Format {
	return chosen(func(f *Format) bool { return f.Read != nil })
}

// ReadableNamed is Named for the formats that can be read.
func ReadableNamed(name string) (*Format, error) { return among(Readable(), name) }

// ServedNamed is Named for the formats that servers offer.
func ServedNamed(name string) (*Format, error) { return among(Served(), name) }

// Served returns the formats that servers offer.
func Served() []*Format { return chosen(func(f *Format) bool { return f.URLEnding != "" }) }

// StoredNamed is Named for the formats in which servers keep fragments and snapshots: these they offer of each
// collection.
func StoredNamed(name string) (*Format, error) { return among(OfStored(), name) }

// OfStored returns the formats in which servers keep fragments and snapshots.
func OfStored() []*Format { return chosen(func(f *Format) bool { return f.Stored != "" }) }

// ServedRDF returns the notations of RDF that servers offer, of collections that are available as RDF.
func ServedRDF() []*Format {
	return chosen(func(f *Format) bool { return f.URLEnding != "" && f.Statements != nil })
}

func chosen(which func(*Format) bool) []*Format {
	return slices.DeleteFunc(slices.Clone(All), func(f *Format) bool { return !which(f) })
}

func among(all []*Format, name string) (*Format, error) {
	for _, f := range all {
		if f.Name == name || slices.Contains(f.Aliases, name) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("unknown format %q: use %s", name, List(all))
}

// List names the formats in a sentence: "a, b or c".
func List(all []*Format) string {
	var b strings.Builder
	for i, f := range all {
		switch {
		case i > 0 && i == len(all)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(f.Name)
	}
	return b.String()
}

// Names returns the names of the formats.
func Names(all []*Format) (names []string) {
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// OfFile returns the format that the ending of a file's name tells, in capitals or not.
func OfFile(path string) (*Format, bool) {
	ending := strings.ToLower(filepath.Ext(strings.TrimSuffix(path, gzipEnding)))
	for _, f := range All {
		if slices.Contains(f.Endings, ending) {
			return f, true
		}
	}
	return nil, false
}

// ForExport returns the format of a file that a map is exported to: what its ending tells, and the default for a name
// without one.
func ForExport(path string) (*Format, error) {
	if f, ok := OfFile(path); ok {
		return f, nil
	}
	if filepath.Ext(strings.TrimSuffix(path, gzipEnding)) != "" && path != "-" {
		return nil, fmt.Errorf("%s: its ending does not tell the format: say it with --format", path)
	}
	return Default, nil
}

// ToRead returns the format to read content with that bears a media type: Default where the type
// says nothing of a format that can be read.
func ToRead(mediaType string) *Format {
	base, params, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return Default
	}
	for _, f := range All {
		for _, known := range f.MediaTypes {
			knownBase, knownParams, _ := mime.ParseMediaType(known)
			if f.Read != nil && base == knownBase && params["version"] == knownParams["version"] {
				return f
			}
		}
	}
	return Default
}

// Stored returns the format of a form in which servers keep fragments and snapshots.
func Stored(v xtm.Version) *Format {
	for _, f := range All {
		if f.Stored == v {
			return f
		}
	}
	panic("no format is stored as XTM " + string(v)) // a list in the program is wrong
}

// Help is the table of formats for the help of a command: endings, names, titles.
func Help() string {
	var b strings.Builder
	for _, f := range All {
		fmt.Fprintf(&b, "  %-13s %-7s %s\n", strings.Join(f.Endings, ", "), f.Name, f.Title)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Same reports whether two names are of one format. Each may be an alias.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	of, errA := Named(a)
	other, errB := Named(b)
	return errA == nil && errB == nil && of == other
}
