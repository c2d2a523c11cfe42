package datafolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/durable"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// identityFile is the file with the identity of a data folder. It is written when the folder is created.
const identityFile = "node.json"

// identityFormat is the version of Identity, and of all that is in the folder. So a folder of an earlier format is
// refused before its database is opened.
const identityFormat = keys.FormatVersion

// Identity identifies the node of a data folder. The database has the node, too, so that a folder and a database of
// different nodes are never combined.
type Identity struct {
	Format   int       `json:"format"` // of the folder
	Node     uuid.UUID `json:"node"`   // random; of its own for each folder that is created or restored
	Origin   Origin    `json:"origin"`
	Created  time.Time `json:"created"`
	Complete bool      `json:"complete"` // false until the folder has all that it must have
}

// Origin is the way in which a data folder was created.
type Origin string

// The origins of data folders.
const (
	Created  Origin = "created"
	Restored Origin = "restored" // from a backup
)

// ErrNoFolder is the error for a missing data folder.
var ErrNoFolder = errors.New("no data folder")

// remedy ends the messages of kv.ErrDamaged.
const remedy = "Nothing was changed. Keep the folder, and restore it from a backup into a new one with \"restore\"; " +
	"a subscriber can also subscribe again with another --data"

// damaged returns a kv.ErrDamaged about a file of a data folder, with the remedy.
func damaged(path, format string, args ...any) error {
	return WithRemedy(missing(path, format, args...))
}

// missing is damaged without the remedy.
func missing(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", kv.ErrDamaged, path, fmt.Sprintf(format, args...))
}

// WithRemedy adds the remedy for a refused folder to a [kv.ErrDamaged].
func WithRemedy(err error) error {
	if errors.Is(err, kv.ErrDamaged) {
		return fmt.Errorf("%w. %s", err, remedy)
	}
	return err
}

// ReadIdentity reads the identity of a data folder. The error is fs.ErrNotExist if the folder has none.
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
		return nil, fmt.Errorf(
			"%s is in format %d, this program reads format %d: use the version of tmshare that wrote it, or a newer one", path,
			id.Format, identityFormat)
	}
	if id.Format > 0 && id.Format < identityFormat {
		return nil, kv.Older(path+" is in", "format", id.Format, identityFormat)
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
