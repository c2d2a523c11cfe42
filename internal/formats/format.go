package formats

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// Format is one notation in which topic maps are read, written, or both.
type Format struct {
	Name    string   // by which users choose it; unique, as are the other names
	Aliases []string // further names that users may give
	Title   string   // for messages

	// MediaTypes are the types in requests. Answers have the first one.
	MediaTypes []string
	Endings    []string // of files, each with its dot; no other format has them
	// URLEnding is the ending of the address of this form on a server; "": none.
	URLEnding string
	// Stored is the form in which servers keep fragments and snapshots; "": they do not keep this one.
	Stored xtm.Version
	Cannot string // what it cannot represent, for help; "": nothing

	// Read reads a map. Nil: the format cannot be read.
	Read func(context.Context, io.Reader, ReadOptions) (*tmdm.TopicMap, error)
	// Write writes a map, and returns the losses.
	Write func(io.Writer, *tmdm.TopicMap, WriteOptions) (xtm.Losses, error)
	// WriteRecords is Write for records, in memory that does not grow with the map. Nil: the
	// format needs the whole map.
	WriteRecords func(io.Writer, fragment.Source) (xtm.Losses, error)
	// Straight returns a function that reads a document in this format to write it in another one without a map. If
	// Straight or its result is nil, a map is needed.
	Straight func(to *Format) Straight
	// Asks are the request parameters for reading a document.
	Asks []string
	// Claims states that statements keep the item identifiers of their sources.
	Claims bool

	// Exchange holds the functions for exchange between nodes if they differ from those of XTM. Servers offer such a
	// format for collections with the setting "rdf".
	*Exchange
}

// Straight reads a document to be written in another format, without a map.
type Straight func(context.Context, io.Reader, ReadOptions) (Copy, error)

// Copy is a document that was read to be written in another format. Its memory does not grow with it.
type Copy interface {
	Write(io.Writer) error // may be called again
	Statements() int       // that were written
	Close() error
}

// Exchange has the functions by which nodes exchange fragments and snapshots in a format with its own data model. All
// are set. Without a URLEnding, servers do not offer the format, and Fragment and Snapshot may be nil.
type Exchange struct {
	// Fragment writes a state's statements about a topic.
	Fragment func(io.Writer, Shown) error
	// Snapshot writes the records of a source with a prefix. Where servers offer the format, its memory does not grow
	// with them.
	Snapshot func(w io.Writer, sp string, records iter.Seq2[fragment.Record, error]) error

	// ReadFragment reads the statements of a document about some topics, by the identifiers in its entry. It skips
	// those about others, which come with their own documents.
	ReadFragment func(ctx context.Context, r io.Reader, o xtm.Options, topics []string) ([]*fragment.Fragment, error)
	// Apply applies the result of ReadFragment. It is idempotent.
	Apply func(merge.State, []*fragment.Fragment) error
	// ReadSnapshot reads the records of a source.
	ReadSnapshot func(context.Context, io.Reader, xtm.Options) iter.Seq2[fragment.Record, error]
}

// Shown is a topic that is written.
type Shown struct {
	SP      string          // the source locator prefix
	State   fragment.Source // present or past; nil: the topic is deleted
	TopicSI fragment.Ref
	Record  bool // the document is that of the topic, not that of an entry
}

// ReadOptions are the options for reading a map.
type ReadOptions struct {
	xtm.Options
	Collection string     // of which the document is a file; "": none
	Asked      url.Values // the values of Format.Asks in a request. Nil: no request
}

// ChooseGraph is the parameter by which a request chooses one of several graphs, as messages have it.
const ChooseGraph = "?graph=IRI"

// WriteOptions are the options for writing a map.
type WriteOptions struct {
	Base      tmdm.Locator  // of relative locators
	NameTypes xtm.NameTypes // applies to XTM 1.0
}

// Flags adds flags for reading and writing formats to a command.
type Flags func(*pflag.FlagSet, Use) Check

// Check returns the request parameters for the parsed flags, and an error for invalid flags. It gets the files of a
// command that reads several, by name.
type Check func(files map[string]string) (asked url.Values, err error)

// Use is the use of files by a command.
type Use struct{ Reads, Several, Writes bool }

func (f *Format) String() string { return f.Title }

// MarshalText returns the name, for JSON.
func (f *Format) MarshalText() ([]byte, error) { return []byte(f.Name), nil }

// MediaType returns the type of answers.
func (f *Format) MediaType() string { return f.MediaTypes[0] }

// The formats that all programs have. A reader of one version of XTM reads all. CXTM, the canonical form of
// ISO 13250-4, is written to compare maps, and not read.
var (
	XTM21 = version(xtm.V21, Format{
		Name: "xtm2.1", Aliases: []string{"xtm21"},
		MediaTypes: []string{feeds.MediaTypeXTM21, "application/x-tm+xml"},
		Endings:    []string{".xtm", ".xtm21"}, URLEnding: ".xtm21", Stored: xtm.V21, Claims: true,
	})
	XTM20 = version(xtm.V20, Format{
		Name: "xtm2.0", Aliases: []string{"xtm2"},
		MediaTypes: []string{"application/x-tm+xml;version=2.0"},
		Endings:    []string{".xtm2"},
	})
	XTM10 = version(xtm.V10, Format{
		Name: "xtm1", Aliases: []string{"xtm1.0"},
		MediaTypes: []string{feeds.MediaTypeXTM1, "text/xtm1+xml", "application/xtm+xml", "application/x-tm+xml;version=1.0"},
		Endings:    []string{".xtm1"}, URLEnding: ".xtm1", Stored: xtm.V10,
		Cannot: "datatypes, item identifiers beside ids, types of names",
	})
	CXTM = &Format{
		Name: "cxtm", Title: "CXTM", Endings: []string{".cxtm"},
		Write: func(w io.Writer, m *tmdm.TopicMap, o WriteOptions) (xtm.Losses, error) {
			return xtm.Losses{}, cxtm.Write(w, m, cxtm.Options{Base: o.Base})
		},
	}
)

func version(v xtm.Version, f Format) *Format {
	f.Title = "XTM " + string(v)
	f.Read = func(ctx context.Context, r io.Reader, o ReadOptions) (*tmdm.TopicMap, error) {
		start, r := otherformat.Start(r)
		if otherformat.IsCXTM(start) {
			const reason = "the root element <topicMap> is in no namespace"
			return nil, &xtm.SyntaxError{URI: cmp.Or(o.URI, string(o.Base)), Line: 1, Column: 1,
				Reason: otherformat.Explain("XTM", reason, "", start, o.ReadAs)}
		}
		return xtm.Read(ctx, r, o.Options)
	}
	f.Write = func(w io.Writer, m *tmdm.TopicMap, o WriteOptions) (xtm.Losses, error) {
		return xtm.Write(w, m, xtm.WriteOptions{Version: v, Base: o.Base, NameTypes: o.NameTypes})
	}
	if f.Stored != "" {
		f.WriteRecords = func(w io.Writer, records fragment.Source) (xtm.Losses, error) {
			return fragment.WriteMap(w, records, fragment.Form{Version: v})
		}
	}
	return &f
}
