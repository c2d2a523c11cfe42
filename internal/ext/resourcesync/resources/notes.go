package resources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"github.com/tmshare/tmshare/internal/store/files"
)

// notes is the name of the file with the notes of a group.
const notes = "set.json"

// noted holds the notes of a group.
type noted struct {
	About  json.RawMessage // a [Set] or a [Part]
	Files  made            // all others of the group
	SHA256 string          // of the notes without it
}

// made is the recorded content of the files of a group, by name in it.
type made map[string]content

// content is the length of a file in bytes, and its hash.
type content struct {
	Length int64
	SHA256 string
}

func (n noted) sum() (string, error) {
	n.SHA256 = ""
	b, err := json.Marshal(&n)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

// readNotes reads the notes of a group into about. It returns nil if they are missing or damaged.
func readNotes(ctx context.Context, from files.Store, group string, about any) (made, error) {
	f, err := from.Open(ctx, group+notes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var n noted
	if json.Unmarshal(b, &n) != nil {
		return nil, nil
	}
	if sum, err := n.sum(); err != nil || sum != n.SHA256 || json.Unmarshal(n.About, about) != nil {
		return nil, nil
	}
	return n.Files, nil
}
