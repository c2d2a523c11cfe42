package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
)

// Format is the version of the manifest and the chunks.
const Format = 2

// Manifest lists the parts of a backup.
type Manifest struct {
	Format int       `json:"format"`
	Node   uuid.UUID `json:"node"`  // whose data folder it was made of
	Taken  time.Time `json:"taken"` // the moment whose state it holds
	Rows   int64     `json:"rows"`
	Chunks []chunk   `json:"chunks"` // of the rows
	Files  []file    `json:"files"`
}

// file is a file of a snapshot.
type file struct {
	Path   string  `json:"path"` // its name, which is the path in a data folder
	Size   int64   `json:"size"` // in bytes
	Chunks []chunk `json:"chunks"`
}

// chunk is a packed piece of a backup.
type chunk struct {
	SHA256 string `json:"sha256"` // of its bytes, packed
	Size   int64  `json:"size"`   // in bytes, packed
}

// all returns every chunk that m names, those of the rows first.
func (m *Manifest) all() []chunk {
	all := m.Chunks[:len(m.Chunks):len(m.Chunks)]
	for _, f := range m.Files {
		all = append(all, f.Chunks...)
	}
	return all
}

// size returns the total length of the chunks in bytes, each counted as often as it is named.
func (m *Manifest) size() (n int64) {
	for _, c := range m.all() {
		n += c.Size
	}
	return n
}

var (
	manifestName = regexp.MustCompile(`^backup-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{64}\.json$`)
	chunkName    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	snapshotPath = regexp.MustCompile(`^snapshots/[0-9a-f-]{36}/[0-9a-f-]{36}\.xtm21\.gz$`)
)

// encode returns the manifest's bytes, and the name of its file.
func (m *Manifest) encode() (content []byte, name string, err error) {
	if content, err = json.MarshalIndent(m, "", " "); err != nil {
		return nil, "", err
	}
	return content, fmt.Sprintf("backup-%s-%s.json", m.Taken.UTC().Format("20060102T150405.000000Z"), sum(content)), nil
}

// decode reads a manifest that has a name.
func decode(name string, content []byte) (*Manifest, error) {
	name = filepath.Base(name)
	if !manifestName.MatchString(name) {
		return nil, fmt.Errorf("%s is not the manifest of a backup", name)
	}
	if sum(content) != name[len(name)-len(".json")-64:len(name)-len(".json")] {
		return nil, damaged(name, "its SHA-256 is not the one in its name")
	}
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, damaged(name, err.Error())
	}
	if m.Format > 0 && m.Format < Format {
		return nil, kv.Older(name+" is in", "format", m.Format, Format)
	}
	if m.Format != Format {
		return nil, fmt.Errorf(
			"%s is in format %d, this program reads format %d: use the version of tmshare that made it, or a newer one", name,
			m.Format, Format)
	}
	for _, f := range m.Files {
		if !snapshotPath.MatchString(f.Path) {
			return nil, damaged(name, fmt.Sprintf("it names a file %q, which no data folder has", f.Path))
		}
	}
	for _, c := range m.all() {
		if !chunkName.MatchString(c.SHA256) || c.Size < 0 || c.Size > maxPacked {
			return nil, damaged(name, "it names a chunk that cannot be one")
		}
	}
	return &m, nil
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// ErrDamaged is the error for a damaged backup. Nothing was changed.
var ErrDamaged = errors.New("the backup is damaged")

func damaged(what, why string) error {
	return fmt.Errorf("%w: %s: %s. Nothing was changed; use another backup", ErrDamaged, what, why)
}
