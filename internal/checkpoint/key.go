package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Key is a key for signing checkpoints.
type Key struct {
	Path   string // of the file
	Public string // the text of the public key
	signer note.Signer
}

// A key file has the private key on its first line, and the public key on its second.

// maxKeyFile is the size in bytes of the largest file that is read as one.
const maxKeyFile = 4 << 10

// GenerateKey writes a new key file that only its owner can read, and returns the key. The name identifies the signer
// in each checkpoint. It has no white space and no "+". An existing file is an error, and is kept.
func GenerateKey(path, name string) (*Key, error) {
	if name == "" || strings.ContainsAny(name, "+") || len(strings.Fields(name)) != 1 || strings.Fields(name)[0] != name {
		return nil, fmt.Errorf("%q cannot be the name of a key: use one word without \"+\", such as the name of your server",
			name)
	}
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s is there already: give another name, as a key that is lost cannot be made again", path)
	}
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(f, private+"\n"+public+"\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return ReadKey(path)
}

// ReadKey reads a key file.
func ReadKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading a pipe would block
		return nil, fmt.Errorf("%s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	notKey := func(why string) error {
		return fmt.Errorf("%s is no key file (%s): \"tmshare-server key generate\" makes one", path, why)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(text) > maxKeyFile || len(lines) != 2 {
		return nil, notKey("it has not two lines: the private key and the public key")
	}
	k := &Key{Path: path, Public: strings.TrimSpace(lines[1])}
	if k.signer, err = note.NewSigner(strings.TrimSpace(lines[0])); err != nil {
		return nil, notKey("its first line is no private key")
	}
	proof, err := (&Checkpoint{Origin: "key"}).Sign(k)
	if err == nil {
		_, err = Open(proof, k.Public)
	}
	if err != nil {
		return nil, notKey("its second line is not the public key of the first")
	}
	return k, nil
}

// CheckPublic returns an error if a text is no public key.
func CheckPublic(public string) error {
	if _, err := note.NewVerifier(public); err != nil {
		return fmt.Errorf("%.200q is no public key: take the one that \"tmshare-server key show\" prints, NAME+HASH+KEY",
			public)
	}
	return nil
}
