package rendered

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Digest is the length and the hashes of data.
type Digest struct {
	Length int64
	MD5    [md5.Size]byte
	SHA256 [sha256.Size]byte
}

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	return Digest{int64(len(data)), md5.Sum(data), sha256.Sum256(data)}
}

// Digester computes the digest of the bytes written to it.
type Digester struct {
	length int64
	md5    hash.Hash
	sha256 hash.Hash
}

// NewDigester returns a Digester without data.
func NewDigester() *Digester { return &Digester{md5: md5.New(), sha256: sha256.New()} }

// Write adds data. It never fails.
func (d *Digester) Write(data []byte) (int, error) {
	d.length += int64(len(data))
	d.md5.Write(data)
	d.sha256.Write(data)
	return len(data), nil
}

// Digest returns the digest of the written bytes.
func (d *Digester) Digest() Digest {
	return Digest{d.length, [md5.Size]byte(d.md5.Sum(nil)), [sha256.Size]byte(d.sha256.Sum(nil))}
}

// MarshalText implements [encoding.TextMarshaler].
func (d Digest) MarshalText() ([]byte, error) {
	b := binary.AppendVarint(nil, d.Length)
	b = append(append(b, d.MD5[:]...), d.SHA256[:]...)
	return base64.RawStdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := base64.RawStdEncoding.AppendDecode(nil, text)
	length, n := binary.Varint(b)
	if err != nil || n <= 0 || len(b) != n+md5.Size+sha256.Size {
		return fmt.Errorf("%w: a digest cannot be read. %s", kv.ErrDamaged, txn.DamageRemedy)
	}
	d.Length = length
	copy(d.MD5[:], b[n:])
	copy(d.SHA256[:], b[n+md5.Size:])
	return nil
}
