package derived

import (
	"fmt"
	"strings"
)

// Error says that a collection is derived from others. So it cannot be written, nor be an input of another.
type Error struct {
	Name  string
	From  []string // names, or the URLs of fragments feeds where a source that is followed is derived
	Input bool     // what was wanted is to be an input
	Feeds bool     // From are URLs
}

func (e *Error) Error() string {
	switch {
	case e.Feeds:
		return fmt.Sprintf("%q follows a collection that is derived itself; follow what that is derived from, and derive from these instead (\"derive --expand\" does both): %s", e.Name, strings.Join(e.From, ", "))
	case e.Input:
		return fmt.Sprintf("collection %q is derived itself; derive from its inputs instead: %s", e.Name, strings.Join(e.From, ", "))
	}
	return fmt.Sprintf("collection %q is derived from %s and cannot be written: change these instead", e.Name, strings.Join(e.From, ", "))
}
