// Package formatxtm holds the versions of XTM as formats.
package formatxtm

import (
	"cmp"
	"context"
	"io"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/formats/format"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// The versions of XTM. A reader of one reads all.
var (
	XTM21 = version(xtm.V21, format.Format{
		Name: "xtm2.1", Aliases: []string{"xtm21"},
		MediaTypes: []string{feeds.MediaTypeXTM21, "application/x-tm+xml"},
		Endings:    []string{".xtm", ".xtm21"}, URLEnding: ".xtm21", Stored: xtm.V21, Claims: true,
	})
	XTM20 = version(xtm.V20, format.Format{
		Name: "xtm2.0", Aliases: []string{"xtm2"},
		MediaTypes: []string{"application/x-tm+xml;version=2.0"},
		Endings:    []string{".xtm2"},
	})
	XTM10 = version(xtm.V10, format.Format{
		Name: "xtm1", Aliases: []string{"xtm1.0"},
		MediaTypes: []string{feeds.MediaTypeXTM1, "text/xtm1+xml", "application/xtm+xml", "application/x-tm+xml;version=1.0"},
		Endings:    []string{".xtm1"}, URLEnding: ".xtm1", Stored: xtm.V10,
		Cannot: "datatypes, item identifiers beside ids, types of names",
	})
)

func version(v xtm.Version, f format.Format) *format.Format {
	f.Title = "XTM " + string(v)
	f.Read = func(ctx context.Context, r io.Reader, o format.ReadOptions) (*tmdm.TopicMap, error) {
		start, r := otherformat.Start(r)
		if otherformat.IsCXTM(start) {
			const reason = "the root element <topicMap> is in no namespace"
			return nil, &xtm.SyntaxError{URI: cmp.Or(o.URI, string(o.Base)), Line: 1, Column: 1, Reason: otherformat.Explain("XTM", reason, "", start)}
		}
		return xtm.Read(ctx, r, o.Options)
	}
	f.Write = func(w io.Writer, m *tmdm.TopicMap, o format.WriteOptions) (xtm.Losses, error) {
		return xtm.Write(w, m, xtm.WriteOptions{Version: v, Base: o.Base, NameTypes: o.NameTypes})
	}
	if f.Stored != "" {
		f.WriteRecords = func(w io.Writer, records fragment.Source) (xtm.Losses, error) {
			return fragment.WriteMap(w, records, fragment.Form{Version: v})
		}
	}
	return &f
}
