// Package format says what a format of topic maps is.
package format

import (
	"context"
	"io"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/mapping"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Format is one notation in which topic maps are read, written, or both.
type Format struct {
	Name    string   // by which users choose it; unique, as are the other names
	Aliases []string // further names that users may give
	Title   string   // for messages

	// MediaTypes are what requests call it. Answers bear the first one.
	MediaTypes []string
	Endings    []string // of files, each with its dot; no other format has them
	// URLEnding ends the address at which a server offers this form alone; "": none.
	URLEnding string
	// Stored is the form in which servers keep fragments and snapshots; "": they do not keep this one.
	Stored xtm.Version
	Cannot string // what it cannot carry, for help; "" if it carries all

	// Read reads a map. Nil: the format cannot be read.
	Read func(context.Context, io.Reader, ReadOptions) (*tmdm.TopicMap, error)
	// Write writes a map, and returns what it could not carry.
	Write func(io.Writer, *tmdm.TopicMap, WriteOptions) (xtm.Losses, error)
	// WriteRecords is Write for records, in memory that does not grow with the map. Nil: the
	// format needs the whole map.
	WriteRecords func(io.Writer, fragment.Source) (xtm.Losses, error)
	// Statements returns what writes the statements of a graph as they come. Where servers offer the format, its memory
	// does not grow with the graph. Nil: the format is no notation of RDF.
	Statements func(io.Writer) StatementWriter
	// Claims says that statements keep the item identifiers that tell which sources assert them.
	Claims bool
}

// StatementWriter writes the statements of a graph. The document is whole once it is closed.
type StatementWriter interface {
	Write(rdf.Quad) error
	Close() error
}

// ReadOptions say how a map is read.
type ReadOptions struct {
	xtm.Options
	RDF mapping.Options
}

// WriteOptions says how a map is written.
type WriteOptions struct {
	Base      tmdm.Locator  // of relative locators
	NameTypes xtm.NameTypes // applies to XTM 1.0
	RDF       mapping.Options
}

func (f *Format) String() string { return f.Title }

// MarshalText returns the name, for JSON.
func (f *Format) MarshalText() ([]byte, error) { return []byte(f.Name), nil }

// MediaType is what answers bear.
func (f *Format) MediaType() string { return f.MediaTypes[0] }
