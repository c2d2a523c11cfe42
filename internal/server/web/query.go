package web

import (
	"errors"
	"net/http"
	"strconv"
)

// Number reads the whole number above 0 that the query gives under a name; otherwise is the default. A number that is
// too large for the program counts as the largest one, as a limit may be any number.
func Number(r *http.Request, name string, otherwise uint64) (uint64, error) {
	given := r.URL.Query().Get(name)
	if given == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(given, 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) || n == 0 {
		return 0, Problemf(http.StatusBadRequest, "?%s=%.40s cannot be: write a whole number above 0, or leave it out",
			name, given)
	}
	return n, nil
}

// Flag reads whether the query sets a name: "" and "true" set it.
func Flag(r *http.Request, name string) (bool, error) {
	query := r.URL.Query()
	if !query.Has(name) {
		return false, nil
	}
	switch given := query.Get(name); given {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, Problemf(http.StatusBadRequest, "?%s=%.40s cannot be: write true, or leave it out", name, given)
	}
}
