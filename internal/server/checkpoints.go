package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/filestate"
	"github.com/tmshare/tmshare/internal/server/web"
	"github.com/tmshare/tmshare/internal/store"
)

// signedNote holds the elements of a feed about a signed collection; empty if it is not signed.
type signedNote struct {
	Note string // the checkpoint
	Key  string // the public key that has signed it
}

// statesCheckpoint reports whether the feeds of a collection state checkpoints. A replica passes on those of its
// origin.
func statesCheckpoint(c *store.Collection) bool {
	return c.Sign != "" || c.Replica != nil && c.Replica.Checkpoint != ""
}

// checkpointOf signs the state of a view.
func checkpointOf(v *store.View) (signedNote, error) {
	if v.Replica != nil {
		return signedNote{v.Replica.Checkpoint, v.Replica.Key}, nil
	}
	if v.Sign == "" {
		return signedNote{}, nil
	}
	key, err := checkpoint.ReadKey(v.Sign)
	if err != nil {
		return signedNote{}, fmt.Errorf("collection %s cannot be signed: %w", v.Name, err)
	}
	stated, err := v.Checkpoint()
	if err != nil {
		return signedNote{}, err
	}
	signed, err := stated.Sign(key)
	return signedNote{signed, key.Public}, err
}

// keyState returns a value that changes when the key in a file is replaced.
func keyState(path string) string {
	if path == "" {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return filestate.Describe(info)
}

// readyToSign returns an error if a collection with these settings cannot be signed.
func readyToSign(s *store.Settings) error {
	if s.Sign == "" {
		return nil
	}
	if _, err := checkpoint.ReadKey(s.Sign); err != nil {
		return fmt.Errorf(
			"sign (--sign): %w; give the path, on the server's machine, of a file that \"tmshare-server key generate\" "+
				"has made there", err)
	}
	return nil
}

const checkpointType = "text/plain; charset=utf-8"

// serveCheckpoint answers with the checkpoint of the present state.
func serveCheckpoint(w http.ResponseWriter, _ *http.Request, v *store.View) error {
	if err := signedOnly(v); err != nil {
		return err
	}
	signed, err := checkpointOf(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", checkpointType)
	w.Header().Set("Cache-Control", "no-cache")
	_, err = io.WriteString(w, signed.Note)
	return err
}

func signedOnly(v *store.View) error {
	if !statesCheckpoint(&v.Collection) {
		return web.Problemf(http.StatusNotFound,
			"the log of %s is not signed; ask its owner for that (\"collections set --sign\")", v.Name)
	}
	return nil
}

// logProof is the answer to a request for the proof that one log continues another.
type logProof struct {
	Hashes tlog.TreeProof `json:"proof"`
}

// serveProof answers with the proof that the log of ?from= entries is the beginning of the log of ?to= entries (RFC
// 6962 §2.1.2, Merkle Consistency Proofs).
func serveProof(w http.ResponseWriter, r *http.Request, v *store.View) error {
	if err := signedOnly(v); err != nil {
		return err
	}
	from, err := entriesAsked(r, "from")
	if err != nil {
		return err
	}
	to, err := entriesAsked(r, "to")
	if err != nil {
		return err
	}
	if from > to || to > int64(v.Hashed) {
		return web.Problemf(http.StatusNotFound, "the log of %s has %d entries: there is no proof from %d to %d", v.Name,
			v.Hashed, from, to)
	}
	hashes, err := v.ProveLog(from, to)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	return json.NewEncoder(w).Encode(logProof{append(tlog.TreeProof{}, hashes...)})
}

func entriesAsked(r *http.Request, name string) (int64, error) {
	n, err := web.Number(r, name, 0)
	if err == nil && n == 0 {
		err = web.Problemf(http.StatusBadRequest, "?%s= is missing, the number of entries: ask for ?from=1&to=2", name)
	}
	return int64(n), err
}
