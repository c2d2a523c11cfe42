package server

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/store"
)

// validator is what tells one version of an answer from another (RFC 9110 §8.8,
// Validator Fields).
type validator struct {
	tag      string    // without quotes, of the content as it is without a coding
	modified time.Time // zero: not to be told
}

// etag returns the strong ETag of the content in a coding.
func (v *validator) etag(c coding) string {
	if c == identity {
		return `"` + v.tag + `"`
	}
	return `"` + v.tag + "-" + string(c) + `"`
}

// digest returns a tag for bytes.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// stateTag returns a tag for what this server makes of a state of a collection,
// so that an answer need not be made to see that it is known. The state must say
// all that the answer at this address depends on, but for configuration and
// program.
func (s *Server) stateTag(r *http.Request, state string) string {
	b := make([]byte, 0, 512)
	b = append(b, state...)
	b = append(b, 0)
	b = append(b, r.URL.Path...)
	b = append(b, 0)
	return digest(append(b, s.program...))
}

// stateOf says all that may change of a collection, but for its snapshots.
func stateOf(c *store.Collection) string {
	settings, _ := json.Marshal(&c.Settings) // numbers and strings: this cannot fail
	b := append(settings, c.Epoch[:]...)
	for _, n := range []uint64{c.Head, c.Horizon, uint64(len(c.Segments)), uint64(c.Updated.UnixMicro()), uint64(c.Topics)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return string(b)
}

// program returns what stands for this program and its configuration: others may
// make another answer of the same state.
func program(c *Config) string {
	build := strconv.FormatInt(c.Now().UnixNano(), 36) // built from edited sources: nothing is known of it
	if info, ok := debug.ReadBuildInfo(); ok {
		settings := map[string]string{}
		for _, set := range info.Settings {
			settings[set.Key] = set.Value
		}
		if settings["vcs.revision"] != "" && settings["vcs.modified"] == "false" {
			build = settings["vcs.revision"]
		}
	}
	return build + " " + c.BaseURL
}

// unchanged sets the validators of an answer, and answers those requests whose
// preconditions do not hold, in the order of RFC 9110 §13.2.2 (Precedence of
// Preconditions): with 304, or an error for 412.
func unchanged(w http.ResponseWriter, r *http.Request, v validator, c coding) (answered bool, err error) {
	h := w.Header()
	tag := v.etag(c)
	h.Set("ETag", tag)
	h.Del("Last-Modified")
	modified := v.modified.Truncate(time.Second)
	since := func(header string) (time.Time, bool) {
		given := r.Header.Get(header)
		if given == "" || modified.IsZero() {
			return time.Time{}, false
		}
		t, err := http.ParseTime(given)
		return t, err == nil
	}
	if given := r.Header.Values("If-Match"); len(given) > 0 {
		if !names(given, tag, false) {
			return false, problem(http.StatusPreconditionFailed, "this is another version than the one asked for: its ETag is %s", tag)
		}
	} else if t, ok := since("If-Unmodified-Since"); ok && modified.After(t) {
		return false, problem(http.StatusPreconditionFailed, "this was modified at %s", modified.UTC().Format(http.TimeFormat))
	}
	known := false
	if given := r.Header.Values("If-None-Match"); len(given) > 0 {
		known = names(given, tag, true)
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

// names reports whether header lines with ETags name one, or all by "*".
func names(lines []string, tag string, weakly bool) bool {
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
