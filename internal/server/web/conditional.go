package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Validator distinguishes versions of an answer (RFC 9110 §8.8, Validator Fields).
type Validator struct {
	Tag      string    // without quotes, of the content as it is without a coding
	Modified time.Time // zero: omitted
}

// etag returns the strong ETag of the content in a coding.
func (v *Validator) etag(c Coding) string {
	if c == Identity {
		return `"` + v.Tag + `"`
	}
	return `"` + v.Tag + "-" + string(c) + `"`
}

// Digest returns a tag for bytes: one that only the same bytes have.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Unchanged sets the validators of an answer, and answers requests whose preconditions fail, in the order of RFC 9110
// §13.2.2 (Precedence of Preconditions): with 304, or an error for 412.
func Unchanged(w http.ResponseWriter, r *http.Request, v Validator, c Coding) (answered bool, err error) {
	h := w.Header()
	tag := v.etag(c)
	h.Set("ETag", tag)
	h.Del("Last-Modified")
	modified := v.Modified.Truncate(time.Second)
	since := func(header string) (time.Time, bool) {
		given := r.Header.Get(header)
		if given == "" || modified.IsZero() {
			return time.Time{}, false
		}
		t, err := http.ParseTime(given)
		return t, err == nil
	}
	if given := r.Header.Values("If-Match"); len(given) > 0 {
		if !NamesETag(given, tag, false) {
			return false, Problemf(http.StatusPreconditionFailed,
				"this is another version than the one asked for: its ETag is %s", tag)
		}
	} else if t, ok := since("If-Unmodified-Since"); ok && modified.After(t) {
		return false, Problemf(http.StatusPreconditionFailed, "this was modified at %s",
			modified.UTC().Format(http.TimeFormat))
	}
	known := false
	if given := r.Header.Values("If-None-Match"); len(given) > 0 {
		known = NamesETag(given, tag, true)
	} else if t, ok := since("If-Modified-Since"); ok {
		known = !modified.After(t)
	}
	if !known {
		if !modified.IsZero() {
			h.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
		}
		return false, nil
	}
	h.Del("Content-Type")
	h.Del("Content-Encoding")
	w.WriteHeader(http.StatusNotModified) // without Last-Modified: the ETag is better
	return true, nil
}

// NamesETag reports whether header lines with ETags name one, or all by "*".
func NamesETag(lines []string, tag string, weakly bool) bool {
	for given := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		given = strings.TrimSpace(given)
		if weakly {
			given = strings.TrimPrefix(given, "W/")
		}
		if given == "*" || given != "" && given == tag {
			return true
		}
	}
	return false
}

// NamesVersion reports whether header lines with ETags contain the tag of a version, in any content coding.
func NamesVersion(lines []string, tag string) bool {
	return slices.ContainsFunc([]Coding{Identity, Gzipped, zstd1}, func(in Coding) bool {
		return NamesETag(lines, (&Validator{Tag: tag}).etag(in), false)
	})
}
