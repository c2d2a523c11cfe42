package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/badger"
)

// identityFile says whose a data folder is. It is written when the folder is made.
const identityFile = "node.json"

// identityFormat is the version of Identity.
const identityFormat = 1

// Identity says which node a data folder belongs to. The node stands in the database too, so
// that a folder and a database of different nodes are never taken for one.
type Identity struct {
	Format   int       `json:"format"` // of this file
	Node     uuid.UUID `json:"node"`   // random; of its own for each folder that is created or restored
	Origin   Origin    `json:"origin"`
	Created  time.Time `json:"created"`
	Complete bool      `json:"complete"` // false until the folder has all that it must have
}

// Origin says how a data folder came to be.
type Origin string

// The origins of data folders.
const (
	Created  Origin = "created"
	Restored Origin = "restored" // from a backup
	Adopted  Origin = "adopted"  // made by the first release, which wrote no identity
)

var (
	// ErrNoFolder says that there is no data folder where one must be.
	ErrNoFolder = errors.New("no data folder")
	// ErrDamaged says that files of a data folder are missing, short, or of another node.
	// Nothing was changed.
	ErrDamaged = kv.ErrDamaged
)

// remedy ends the messages of ErrDamaged.
const remedy = "Nothing was changed. Keep the folder, and restore it from a backup into a new one with \"restore\"; " +
	"a subscriber can also subscribe again with another --data"

// damaged returns an ErrDamaged about a file of a data folder, with what to do.
func damaged(path, format string, args ...any) error {
	return withRemedy(missing(path, format, args...))
}

// missing is damaged without what to do.
func missing(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", ErrDamaged, path, fmt.Sprintf(format, args...))
}

// withRemedy adds to an [ErrDamaged] of the engine what to do.
func withRemedy(err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w. %s", err, remedy)
	}
	return err
}

func noFolder(dir, remedy string) error { return fmt.Errorf("%w at %s: %s", ErrNoFolder, dir, remedy) }

// withoutPath returns an error of the system without the name of the file.
func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// ReadIdentity reads the identity of a data folder. It is fs.ErrNotExist where the folder has
// none, as those of the first release.
func ReadIdentity(dir string) (*Identity, error) {
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var id Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return nil, damaged(path, "cannot be read (%v)", err)
	}
	if id.Format > identityFormat {
		return nil, fmt.Errorf("%s is in format %d, this program reads format %d: use the version of tmshare that wrote it, or a newer one", path, id.Format, identityFormat)
	}
	if id.Format < 1 || id.Node == uuid.Nil {
		return nil, damaged(path, "names no node")
	}
	return &id, nil
}

// writeIdentity writes the identity of a data folder, durably.
func writeIdentity(dir string, id *Identity) error {
	return durable.WriteJSON(filepath.Join(dir, identityFile), id)
}

func newIdentity(origin Origin, now time.Time) *Identity {
	return &Identity{Format: identityFormat, Node: uuid.New(), Origin: origin, Created: now.UTC().Truncate(time.Second)}
}

// findFolder reports whether there is a data folder at dir, whole or damaged. It looks for an
// identity and for the files of a database, so neither an empty folder nor a folder of other
// things is one. A file in its place, or the folder of the database itself, is an error.
func findFolder(dir string) (found bool, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, noFolder(dir, fmt.Sprintf("%v; name a folder with --data", withoutPath(err)))
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == identityFile:
			return true, nil
		case badger.IsFile(name):
			return false, noFolder(dir, fmt.Sprintf("it is the database inside of one; name the folder above it, --data %s", filepath.Dir(filepath.Clean(dir))))
		}
	}
	inside, err := os.ReadDir(filepath.Join(dir, databaseFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, e := range inside {
		if badger.IsFile(e.Name()) {
			return true, nil
		}
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, snapshotFolder, "*", "*"+snapshotEnding))
	return len(snapshots) > 0, err
}
