package collections

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Former is the fate of a collection whose name no collection has now.
type Former struct {
	Name string    `json:"name"`
	To   string    `json:"to,omitempty"` // the name that it has; "": it was deleted
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`

	Moved *uuid.UUID `json:"moved,omitempty"` // its epoch, where it was moved to another server
}

// Leads reports whether the collection is there under another name, or on another server.
func (f *Former) Leads() bool { return f.To != "" || f.Moved != nil }

// FormerError is the error for a name that no collection has any more. It is a [txn.ErrNotFound].
type FormerError struct{ Former }

func (e *FormerError) Error() string {
	if e.To != "" {
		return fmt.Sprintf("collection %q was renamed to %q at %s: use that name; "+
			"\"tmshare-server collections forget %[1]s\" frees the old one", e.Name, e.To, e.At.Format(time.RFC3339))
	}
	if e.Moved != nil {
		return fmt.Sprintf("collection %q was moved to another server at %s, and is here no more; "+
			"\"tmshare-server collections forget %[1]s\" frees its name here", e.Name, e.At.Format(time.RFC3339))
	}
	return fmt.Sprintf("collection %q was deleted at %s: %s", e.Name, e.At.Format(time.RFC3339),
		cmp.Or(e.Note, "no reason was given"))
}

// Unwrap returns [txn.ErrNotFound].
func (e *FormerError) Unwrap() error { return txn.ErrNotFound }

// Leave records the fate of a collection with the name f.Name, also for its former names.
func (c *Collection) Leave(t *txn.Tx, f Former) (err error) {
	for _, name := range append(c.Former[:len(c.Former):len(c.Former)], f.Name) {
		f.Name = name
		err = errors.Join(err, t.PutJSON(keys.Name(keys.TableFormer, name), f))
	}
	return err
}

// Free checks that a name leads to no collection but one with the name own. Else it is a [*FormerError].
func Free(t *txn.Tx, name, own string) error {
	f, err := former(t, name)
	if f == nil || err != nil || !f.Leads() || f.To == own && own != "" {
		return err
	}
	return f
}

// Forget makes a former name lead nowhere.
func Forget(t *txn.Tx, name string) error { return t.Delete(keys.Name(keys.TableFormer, name)) }

func former(t *txn.Tx, name string) (*FormerError, error) {
	var f FormerError
	there, err := t.GetJSON(keys.Name(keys.TableFormer, name), &f.Former)
	if !there || err != nil {
		return nil, err
	}
	return &f, nil
}
