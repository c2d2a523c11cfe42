// Package checkpoint has the signed statements about the length and the content of a collection's change log. A reader
// of one can check whether a later log of the server continues it, or was rewritten or forked.
//
// The log is a Merkle tree (RFC 6962 §2.1, Merkle Hash Trees) whose leaves are the entries. A checkpoint is a signed
// note (golang.org/x/mod/sumdb/note) with Ed25519. docs/checkpoints.md specifies both to the byte.
package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is the signed statement.
type Checkpoint struct {
	Origin string    // the source locator prefix of the collection
	Size   int64     // number of entries of the log
	Root   tlog.Hash // of the tree of these entries
	Digest string    // the text of the state digest after the last one
}

// digestLine begins the line with the state digest.
const digestLine = "digest "

// text returns the text to sign.
func (c *Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n%s%s\n", c.Origin, c.Size, c.Root, digestLine, c.Digest)
}

func parse(text string) (*Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 5 || lines[len(lines)-1] != "" {
		return nil, errors.New("it has less than four lines")
	}
	c := &Checkpoint{Origin: lines[0]}
	var err error
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 ||
		strconv.FormatInt(c.Size, 10) != lines[1] {
		return nil, fmt.Errorf("its second line is no number of entries: %.40q", lines[1])
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return nil, fmt.Errorf("its third line is no hash: %.60q", lines[2])
	}
	// What stands in later lines is for later versions.
	if !strings.HasPrefix(lines[3], digestLine) {
		return nil, fmt.Errorf("its fourth line is no state digest: %.80q", lines[3])
	}
	c.Digest = strings.TrimPrefix(lines[3], digestLine)
	return c, nil
}

// Sign returns the checkpoint as a signed note.
func (c *Checkpoint) Sign(k *Key) (string, error) {
	signed, err := note.Sign(&note.Note{Text: c.text()}, k.signer)
	return string(signed), err
}

// Note returns a signed note as it was signed: documents that carry it may end it with other white space.
func Note(carried string) string { return strings.TrimSpace(carried) + "\n" }

// Open returns the checkpoint in a signed note, if the owner of a public key has signed it.
func Open(signed, public string) (*Checkpoint, error) {
	verifier, err := note.NewVerifier(public)
	if err != nil {
		return nil, fmt.Errorf("%.200q is no public key: %w", public, err)
	}
	n, err := note.Open([]byte(Note(signed)), note.VerifierList(verifier))
	var unknown *note.UnverifiedNoteError
	switch {
	case errors.As(err, &unknown):
		var names []string
		for _, s := range unknown.Note.UnverifiedSigs {
			names = append(names, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
		}
		return nil, fmt.Errorf("it is signed by %s, not by %s+%08x", strings.Join(names, ", "), verifier.Name(),
			verifier.KeyHash())
	case err != nil:
		return nil, errors.New(strings.TrimPrefix(err.Error(), "note: "))
	}
	return parse(n.Text)
}

// Leaf returns the bytes of the leaf of an entry: its data in the feed. An entry that was pruned before the log was
// signed has a leaf without bytes.
func Leaf(updated time.Time, topicSI string, live, covered bool, digest string) []byte {
	state := "live"
	switch {
	case !live:
		state = "deleted"
	case covered:
		state = "covered"
	}
	return fmt.Appendf(nil, "%s\n%s\n%s\n%s\n", updated.UTC().Format("2006-01-02T15:04:05.000000Z"), state,
		topicSI, digest)
}

// Follows checks that the log of c continues the one of an earlier checkpoint: proof is the server's consistency proof.
// It is needed if both have entries and c has more. The error is a [*ForkError] without the notes.
func (c *Checkpoint) Follows(earlier *Checkpoint, proof tlog.TreeProof) error {
	switch {
	case c.Origin != earlier.Origin:
		return &ForkError{Reason: fmt.Sprintf("it is of another collection (%s, not %s)", c.Origin, earlier.Origin)}
	case c.Size < earlier.Size:
		return &ForkError{
			Reason: fmt.Sprintf("the log has %d entries, and had %d: it was put back to an earlier state, or forked", c.Size,
				earlier.Size)}
	case earlier.Size == 0:
		return nil
	case c.Size == earlier.Size && c.Root == earlier.Root && c.Digest != earlier.Digest:
		return &ForkError{Reason: "two states are signed for the same entries"}
	case c.Size == earlier.Size && c.Root == earlier.Root:
		return nil
	case c.Size == earlier.Size:
		return &ForkError{Reason: fmt.Sprintf("two logs of %d entries are signed: the log was forked", c.Size)}
	}
	if len(proof) == 0 {
		return &ForkError{Reason: fmt.Sprintf("nothing proves that the log still has the %d entries that it had",
			earlier.Size)}
	}
	if err := tlog.CheckTree(proof, c.Size, c.Root, earlier.Size, earlier.Root); err != nil {
		return &ForkError{Reason: fmt.Sprintf("the log does not have the %d entries that it had: it was rewritten, or forked",
			earlier.Size)}
	}
	return nil
}

// ForkError is the error for a checkpoint that is not accepted.
type ForkError struct {
	Reason        string
	Known, Stated string // the signed notes: the last accepted one, and the server's present one; "" for none
}

func (e *ForkError) Error() string {
	show := func(what, signed string) string {
		if signed == "" {
			return ""
		}
		return "\n  " + what + "\n    " + strings.ReplaceAll(strings.TrimSpace(signed), "\n", "\n    ")
	}
	return e.Reason + show("the checkpoint that was accepted last:", e.Known) +
		show("the checkpoint that is stated now:", e.Stated)
}
