package follow

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
)

// Fixity is a source's statement about the bytes of a representation: their length and their digests. The zero Fixity
// states nothing.
type Fixity struct{ resourcesync.Representation }

// IsZero reports whether f states nothing.
func (f Fixity) IsZero() bool { return len(f.Hashes) == 0 && !f.hasLength() }

func (f Fixity) hasLength() bool { return f.Length > 0 || f.Empty }

// Digests returns the digests as documents state them, with their algorithms.
func (f Fixity) Digests() []string {
	var all []string
	for _, h := range f.Hashes {
		all = append(all, h.String())
	}
	return all
}

// fixityInState is how a Fixity stands in the state of a folder.
type fixityInState struct {
	Length   *int64 `json:"length,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (f Fixity) MarshalJSON() ([]byte, error) {
	s := fixityInState{Hash: strings.Join(f.Digests(), " "), Encoding: f.Encoding}
	if f.hasLength() {
		s.Length = &f.Length
	}
	return json.Marshal(s)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fixity) UnmarshalJSON(b []byte) error {
	var s fixityInState
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*f = FixityOf(strings.Fields(s.Hash)...)
	f.Encoding = s.Encoding
	if s.Length != nil {
		f.Length, f.Empty = *s.Length, *s.Length == 0
	}
	return nil
}

// FixityOf returns the Fixity that states digests, each with its algorithm: "md5:…".
func FixityOf(hashes ...string) (f Fixity) {
	for _, h := range hashes {
		algorithm, digest, _ := strings.Cut(h, ":")
		f.Hashes = append(f.Hashes, resourcesync.Hash{Algorithm: algorithm, Digest: digest})
	}
	return f
}

// Match is the result of comparing two statements about bytes.
type Match int

// Unknown is the result for statements without a common algorithm.
const (
	Unknown Match = iota
	Same
	Different
)

// Compare compares known bytes with a statement.
func Compare(known, stated Fixity) Match {
	if known.hasLength() && stated.hasLength() && known.Length != stated.Length {
		return Different
	}
	result := Unknown
	for _, s := range stated.Hashes {
		for _, k := range known.Hashes {
			switch {
			case k.Algorithm != s.Algorithm:
			case k.Digest == s.Digest:
				return Same
			case len(k.Digest) == len(s.Digest): // otherwise one of them is not hexadecimal
				result = Different
			}
		}
	}
	return result
}

// OutOfDate reports whether an error means that a list differs from a resource: one of them may have changed after the
// other was read.
func OutOfDate(err error) bool {
	return Gone(err) || errors.As(err, new(*resourcesync.MismatchError)) || errors.Is(err, errChangedSince)
}

// errChangedSince is the error for a record that has changed since an unsure statement about it.
var errChangedSince = errors.New("the record has changed since")

// Gone reports whether an error means that the resource does not exist (Atom-PMH, Resolvability of URIs). A 401 does
// not prove that the record is gone.
func Gone(err error) bool {
	failed, ok := errors.AsType[*fetch.Error](err)
	return ok && (failed.Gone() || failed.Status == http.StatusForbidden || failed.Status == http.StatusNotFound)
}
