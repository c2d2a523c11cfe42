package txn

import (
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/internal/kv"
)

// Errors for callers to distinguish.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrTooLarge = errors.New("too large a change") // it takes more memory than it may
)

// Refusal is the reason why a request is refused.
type Refusal struct {
	error
	status int
}

// Refuse returns a [*Refusal] with the status of the answer.
func Refuse(status int, format string, args ...any) error {
	return &Refusal{fmt.Errorf(format, args...), status}
}

// HTTPStatus is the status of the answer.
func (r *Refusal) HTTPStatus() int { return r.status }

// DamageRemedy ends the messages about rows that are damaged.
const DamageRemedy = "What is read may be wrong or incomplete. \"check\" says what else is damaged. Restore the " +
	"folder from a backup with \"restore\"; " +
	"a subscriber can also subscribe again with another --data"

// Corrupt returns the error of a row that cannot be read.
func Corrupt(table string, key []byte, err error) error {
	return fmt.Errorf("%w: %s row %x: %w. %s", kv.ErrDamaged, table, key, err, DamageRemedy)
}
