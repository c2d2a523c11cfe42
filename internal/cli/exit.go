package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Exit codes of both programs.
const (
	OK     = 0
	Failed = 1
	Usage  = 2
	// sync, retry, status, verify: in step, except changes in quarantine; harvest, mirror: except records that failed,
	// or are in doubt
	Quarantined = 3
	// sync, retry, replace: a copy differs from its source's digest; verify, diff, mirror --audit: the compared are not
	// equal; check: damaged, but repairable; doctor: there is work to do
	Differs     = 4
	HeldBack    = 5
	BrokenInput = 6
	Unreachable = 7
	Conflict    = 8
	Interrupted = 128 + 2  // of shells for SIGINT
	ClosedPipe  = 128 + 13 // the output is closed: of shells for SIGPIPE
)

// AwayStatuses are the statuses of a server, or of a proxy before it, that cannot answer now.
var AwayStatuses = []int{429, 502, 503, 504}

// Codes has the meanings of the exit codes: a short and a long text.
var Codes = []struct {
	Code         int
	Short, Means string
}{
	{OK, "done", "as the command says"},
	{Failed, "error", "an error that is none of those below; several errors that are not of one kind"},
	{Usage, "usage", "the command line makes no sense: a name or a value can be none, or flags contradict each other"},
	{Quarantined, "done in part", "in doubt, or done but for what is in quarantine or could not be had"},
	{Differs, "different", "a copy is not what its source states, what was compared differs, or something is to be done"},
	{HeldBack, "held back", "more would be lost than is allowed (`--max-delete`, `--fail-on-loss`); nothing was done"},
	{BrokenInput, "broken input", "a document is not what it should be: a file, or what was sent to a server"},
	{Unreachable, "unreachable", "a server does not answer, or asks to come again later (429, 502, 503, 504)"},
	{Conflict, "conflict", "what is to be changed has changed meanwhile (`--if-match`), or something else is in the way"},
	{Interrupted, "interrupted", "Ctrl-C, or another signal to end; the message says what was done until then"},
}

// Exits is a sentence for the help of a command that ends with some exit codes besides those of all commands.
func Exits(codes ...int) string {
	var texts []string
	for _, c := range Codes {
		if c.Code <= Usage || c.Code == Interrupted || slices.Contains(codes, c.Code) {
			texts = append(texts, fmt.Sprintf("%d %s", c.Code, c.Short))
		}
	}
	return "\n\nExit codes: " + strings.Join(texts, ", ") + "."
}

// ServiceExits is Exits for a command that goes on until a signal ends it: that is no failure.
func ServiceExits(codes ...int) string {
	return strings.NewReplacer("0 done", "0 ended by Ctrl-C or SIGTERM", ", 130 interrupted", "").Replace(Exits(codes...))
}

// AllExits is the sentence for the help of a program.
func AllExits() string {
	return Exits(Quarantined, Differs, HeldBack, BrokenInput, Unreachable, Conflict)
}

// ExitError carries an exit code other than Failed.
type ExitError struct {
	Code int
	Err  error // nil: no message
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns the end of a command without a message.
func Exit(code int) error {
	if code == OK {
		return nil
	}
	return &ExitError{Code: code}
}

// UsageError returns the error for an invalid command line, independent of files and servers: an invalid name, address,
// identifier, number or time, or contradictory flags. A missing object is Failed. It returns nil for nil.
func UsageError(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{Code: Usage, Err: err}
}

// InterruptedError returns the end of an interrupted command. became is its outcome.
func InterruptedError(became string) error {
	return &ExitError{Interrupted, errors.New("interrupted; " + became)}
}

// codeOf returns the exit code for an error: that of the outermost error that has one. Several errors have the code of
// all of them, or are of no one kind.
func codeOf(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		switch e := err.(type) {
		case *ExitError:
			return e.Code
		case interface{ Outcome() int }:
			return e.Outcome()
		case interface{ Unwrap() []error }:
			codes := map[int]bool{}
			for _, one := range e.Unwrap() {
				codes[codeOf(one)] = true
			}
			for code := range codes {
				if len(codes) == 1 {
					return code
				}
			}
			return Failed
		}
		if err == context.Canceled { // only signals do that
			return Interrupted
		}
	}
	return Failed
}
