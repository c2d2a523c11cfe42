// Package formatcxtm holds the canonical form of ISO 13250-4 as a format.
package formatcxtm

import (
	"io"

	"github.com/tmshare/tmshare/internal/formats/format"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// CXTM is the canonical form. It is written to compare maps, and not read.
var CXTM = &format.Format{
	Name: "cxtm", Title: "CXTM", Endings: []string{".cxtm"},
	Write: func(w io.Writer, m *tmdm.TopicMap, o format.WriteOptions) (xtm.Losses, error) {
		return xtm.Losses{}, cxtm.Write(w, m, cxtm.Options{Base: o.Base})
	},
}
