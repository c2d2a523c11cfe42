package collections

import (
	"fmt"
	"slices"
	"strings"
)

// Owner is an extension that alone publishes a collection. Without the extension nobody does.
type Owner struct {
	Extension string // its name
	Says      string // behind the name of the collection: why others cannot write it, and what to write instead
}

// ReadOnlyError says that a collection is not written here, or not by this writer. Nothing was changed.
type ReadOnlyError struct {
	Name   string
	Origin string // URL of the fragments feed of the collection to write instead, "" for none
	says   string // behind the name
}

func (e *ReadOnlyError) Error() string {
	if e.says != "" {
		return fmt.Sprintf("collection %q %s", e.Name, e.says)
	}
	return fmt.Sprintf(
		"%s is a replica, which only follows its origin: write to that, %s. \"tmshare-client unsubscribe %[1]s\" ends "+
			"the replica", e.Name, e.Origin)
}

// Writable returns a [*ReadOnlyError] where the collection is not written here.
func (c *Collection) Writable() error {
	if c.Replica != nil {
		return &ReadOnlyError{Name: c.Name, Origin: c.Replica.Origin}
	}
	return nil
}

// Bound returns a [*ReadOnlyError] where the collection has a setting that binds and is not among those that the
// program knows.
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

// WritableBy returns a [*ReadOnlyError] where the collection is not written here, or not by an extension; "" for all
// others who may write.
func (c *Collection) WritableBy(extension string) error {
	if c.Owner != nil && c.Owner.Extension != extension {
		return &ReadOnlyError{Name: c.Name, says: c.Owner.Says}
	}
	return c.Writable()
}
