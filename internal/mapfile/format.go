package mapfile

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/xtm"
)

// Format is a form in which maps are written.
type Format string

// The formats.
const (
	XTM10 Format = "xtm1.0"
	XTM20 Format = "xtm2.0"
	XTM21 Format = "xtm2.1"
	CXTM  Format = "cxtm" // ISO 13250-4
)

// String returns the name of f as people write it.
func (f Format) String() string {
	if v := f.version(); v != "" {
		return "XTM " + string(v)
	}
	return "CXTM"
}

func (f Format) version() xtm.Version {
	switch f {
	case XTM10:
		return xtm.V10
	case XTM20:
		return xtm.V20
	case XTM21:
		return xtm.V21
	}
	return ""
}

// ParseFormat returns the format with the name, or with a short form of it.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case XTM10, XTM20, XTM21, CXTM:
		return f, nil
	case "xtm1":
		return XTM10, nil
	case "xtm2":
		return XTM20, nil
	case "xtm21":
		return XTM21, nil
	}
	return "", fmt.Errorf("unknown format %q: use xtm1.0, xtm2.0, xtm2.1 or cxtm", name)
}

// FormatOf returns the format that the ending of a file's name stands for. A
// further ending .gz does not matter.
func FormatOf(path string) (Format, bool) {
	switch filepath.Ext(strings.TrimSuffix(path, ".gz")) {
	case ".xtm", ".xtm21":
		return XTM21, true
	case ".xtm1":
		return XTM10, true
	case ".xtm2":
		return XTM20, true
	case ".cxtm":
		return CXTM, true
	}
	return "", false
}
