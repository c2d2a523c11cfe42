package collections

import "fmt"

// ReadOnlyError says that a collection is not written here. Nothing was changed.
type ReadOnlyError struct {
	Name   string
	Origin string // URL of the fragments feed of the collection to write instead
}

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%s is a replica, which only follows its origin: write to that, %s. \"tmshare-client unsubscribe %[1]s\" ends the replica", e.Name, e.Origin)
}

// Writable returns a [*ReadOnlyError] where the collection is not written here.
func (c *Collection) Writable() error {
	if c.Replica != nil {
		return &ReadOnlyError{c.Name, c.Replica.Origin}
	}
	return nil
}
