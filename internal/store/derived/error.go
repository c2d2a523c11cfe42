package derived

import (
	"fmt"
	"net/http"
	"strings"
)

// Error is the error for a derived collection as an input of another one.
type Error struct {
	Name  string
	From  []string // names, or the URLs of fragments feeds where a source that is followed is derived
	Feeds bool     // From are URLs
}

func (e *Error) Error() string {
	if e.Feeds {
		return fmt.Sprintf(
			"%q follows a collection that is derived itself; follow what that is derived from, and derive from these instead "+
				"(\"derive --expand\" does both): %s", e.Name, strings.Join(e.From, ", "))
	}
	return fmt.Sprintf("collection %q is derived itself; derive from its inputs instead: %s", e.Name,
		strings.Join(e.From, ", "))
}

// HTTPStatus is the status of the answer.
func (e *Error) HTTPStatus() int { return http.StatusForbidden }
