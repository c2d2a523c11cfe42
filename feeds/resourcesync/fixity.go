package resourcesync

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strconv"
	"strings"
)

// The algorithms that [Writer] and [PackageWriter] write.
const (
	MD5    = "md5"
	SHA256 = "sha-256"
)

// Hash is one value of a hash attribute (Z39.99 §7): a digest and its algorithm. Unknown algorithms are kept.
type Hash struct {
	Algorithm string // in lower case: "md5", "sha-1", "sha-256"
	Digest    string // hexadecimal, in lower case
}

func (h Hash) String() string { return h.Algorithm + ":" + h.Digest }

// digestSizes maps the known algorithms to the lengths of their digests in bytes.
var digestSizes = map[string]int{MD5: md5.Size, "sha-1": sha1.Size, SHA256: sha256.Size, "sha-512": sha512.Size}

// newHash returns a hash.Hash of the algorithm, or nil where it is not known.
func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case MD5:
		return md5.New()
	case "sha-1":
		return sha1.New()
	case SHA256:
		return sha256.New()
	case "sha-512":
		return sha512.New()
	}
	return nil
}

// parseHash parses one word of a hash attribute. Names of algorithms may lack their hyphen.
func parseHash(word string) Hash {
	algorithm, digest, found := strings.Cut(word, ":")
	if !found {
		return Hash{Digest: word}
	}
	algorithm = strings.ToLower(algorithm)
	switch algorithm {
	case "sha1", "sha256", "sha512":
		algorithm = "sha-" + algorithm[3:]
	}
	if isHex(digest) {
		digest = strings.ToLower(digest)
	}
	return Hash{algorithm, digest}
}

// sum returns the digest as size bytes, or nil where it is no digest of that size. Some Sources write it in base64.
func (h Hash) sum(size int) []byte {
	if b, err := hex.DecodeString(h.Digest); err == nil && len(b) == size {
		return b
	}
	for _, code := range []*base64.Encoding{base64.RawURLEncoding, base64.RawStdEncoding} {
		if b, err := code.DecodeString(strings.TrimRight(h.Digest, "=")); err == nil && len(b) == size {
			return b
		}
	}
	return nil
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return s != ""
}

// Fixity computes the length and the digests of the content that is written to it. It is not safe for concurrent use.
type Fixity struct {
	length int64
	sums   []fixitySum
}

type fixitySum struct {
	algorithm string
	hash.Hash
}

// NewFixity returns a Fixity that computes the digests which [Writer] writes: md5 and sha-256.
func NewFixity() *Fixity {
	return &Fixity{sums: []fixitySum{{MD5, md5.New()}, {SHA256, sha256.New()}}}
}

// newFixityFor returns a Fixity for the digests of known algorithms that r states.
func newFixityFor(r *Representation) *Fixity {
	f := new(Fixity)
	for _, h := range r.Hashes {
		if f.find(h.Algorithm) == nil {
			if sum := newHash(h.Algorithm); sum != nil {
				f.sums = append(f.sums, fixitySum{h.Algorithm, sum})
			}
		}
	}
	return f
}

func (f *Fixity) find(algorithm string) hash.Hash {
	for _, s := range f.sums {
		if s.algorithm == algorithm {
			return s.Hash
		}
	}
	return nil
}

// Write adds content. It never fails.
func (f *Fixity) Write(p []byte) (int, error) {
	f.length += int64(len(p))
	for _, s := range f.sums {
		_, _ = s.Write(p)
	}
	return len(p), nil
}

// Describe sets the length and the digests of r to those of the content.
func (f *Fixity) Describe(r *Representation) {
	r.Length, r.Empty = f.length, f.length == 0
	r.Hashes = make([]Hash, len(f.sums))
	for i, s := range f.sums {
		r.Hashes[i] = Hash{s.algorithm, hex.EncodeToString(s.Sum(nil))}
	}
}

// check compares the content with the length and the digests that r states. Digests of unknown algorithms are ignored.
func (f *Fixity) check(uri string, r *Representation) error {
	if (r.Length > 0 || r.Empty) && f.length != r.Length {
		return &MismatchError{uri, "length", strconv.FormatInt(r.Length, 10), strconv.FormatInt(f.length, 10)}
	}
	for _, h := range r.Hashes {
		if computed := f.find(h.Algorithm); computed != nil {
			got := computed.Sum(nil)
			if !bytes.Equal(h.sum(len(got)), got) {
				return &MismatchError{uri, h.Algorithm, h.Digest, hex.EncodeToString(got)}
			}
		}
	}
	return nil
}

// Verify returns a reader of content that holds it to the length and the hashes which r states of the resource uri:
// where they differ, a *[MismatchError] takes the place of io.EOF. Content that is too long is an error at once. Hashes
// of unknown algorithms are ignored. Content that is not read to its end is not verified.
func (r Representation) Verify(uri string, content io.Reader) io.Reader {
	return &verifier{content: content, uri: uri, want: r, fixity: newFixityFor(&r)}
}

type verifier struct {
	content io.Reader
	uri     string
	want    Representation
	fixity  *Fixity
}

func (v *verifier) Read(p []byte) (int, error) {
	n, err := v.content.Read(p)
	_, _ = v.fixity.Write(p[:n])
	tooLong := (v.want.Length > 0 || v.want.Empty) && v.fixity.length > v.want.Length
	if err == io.EOF || tooLong {
		if mismatch := v.fixity.check(v.uri, &v.want); mismatch != nil {
			return n, mismatch
		}
	}
	return n, err
}
