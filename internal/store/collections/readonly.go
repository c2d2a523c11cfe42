package collections

import (
	"fmt"
	"slices"
	"strings"
)

// Owner is the extension that alone may publish a collection. Without the extension it is read-only.
type Owner struct {
	Extension string // its name
	Says      string // text after the collection's name: why others cannot write it, and the alternative
}

// ReadOnlyError is the error for a collection that is not written here, or not by this writer. Nothing was changed.
type ReadOnlyError struct {
	Name   string
	Origin string // URL of the fragments feed of the collection to write instead, "" for none
	says   string // text after the name
}

func (e *ReadOnlyError) Error() string {
	if e.says != "" {
		return fmt.Sprintf("collection %q %s", e.Name, e.says)
	}
	return fmt.Sprintf(
		"%s is a replica, which only follows its origin: write to that, %s. \"tmshare-client unsubscribe %[1]s\" ends "+
			"the replica", e.Name, e.Origin)
}

// Writable returns a [*ReadOnlyError] where the collection is not written here, or a [*LeavingError] where it moves.
func (c *Collection) Writable() error {
	if c.Leaving != nil {
		return &LeavingError{c.Name}
	}
	if c.Replica != nil {
		return &ReadOnlyError{Name: c.Name, Origin: c.Replica.Origin}
	}
	return nil
}

// Bound returns a [*ReadOnlyError] if the collection has a binding setting that the program does not know.
func (c *Collection) Bound(known []Setting) error {
	for key := range c.Ext {
		lacking, _, binds := strings.Cut(key, "!")
		if binds && !slices.ContainsFunc(known, func(x Setting) bool { return x.key() == key }) {
			return &ReadOnlyError{Name: c.Name,
				says: "needs the extension " + lacking + ", which this program does not have: write it with one that has"}
		}
	}
	return nil
}

// WritableBy returns a [*ReadOnlyError] if an extension, or for "" any other writer, may not write the collection here.
func (c *Collection) WritableBy(extension string) error {
	if c.Owner != nil && c.Owner.Extension != extension {
		return &ReadOnlyError{Name: c.Name, says: c.Owner.Says}
	}
	return c.Writable()
}
