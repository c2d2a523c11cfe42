package fetch

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"

	"github.com/tmshare/tmshare/internal/cli"
)

// Error is the error of a failed fetch.
type Error struct {
	URL        string
	Status     int           // 0 without an answer
	Detail     string        // the server's explanation, "" if none
	RetryAfter time.Duration // requested by the server, 0 if none
	Err        error         // without an answer: why; with one: nil
	plain      bool          // an HTTPS server got an HTTP request
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v%s", e.URL, e.Err, remedy(e.Err))
	}
	text := fmt.Sprintf("%s: the server answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Detail != "" {
		text += fmt.Sprintf(" (%s)", e.Detail)
	}
	if e.Status == http.StatusBadRequest && e.plain {
		text += "; begin the address with https://"
	}
	if e.Status == http.StatusUnauthorized {
		text += "; subscribe, mirror and harvest take a file with the token: --token-file FILE"
	}
	return text
}

// remedy returns the remedy if there was no connection, or no complete answer.
func remedy(err error) string {
	var op *net.OpError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "; tell the owner of the server that its certificate has to be renewed, and check the clock of this machine"
	case errors.As(err, new(x509.HostnameError)):
		return "; check the address: the certificate of the server is for another host"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "; if its authority is your own, name the file with that one's certificate: " +
			"\"subscribe --ca-cert FILE\", or \"source set NAME --ca-cert FILE\""
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ": the answer was cut off; try again, and if it stays so, tell the owner of the server"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "; begin the address with http://"
	case !errors.As(err, &op):
	case op.Op == "proxyconnect":
		return "; check the proxy (HTTP_PROXY, HTTPS_PROXY)"
	case op.Op == "dial":
		return "; check the address, and that the server runs"
	}
	return ""
}

// Remedy returns the remedy for people, if the text of the error lacks it.
func (e *Error) Remedy() string {
	if e.Status == http.StatusNotFound {
		return "check the address"
	}
	return ""
}

// Outcome returns the exit code of a command that ends with the error.
func (e *Error) Outcome() int {
	if e.Status == 0 && e.Transient() || slices.Contains(cli.AwayStatuses, e.Status) {
		return cli.Unreachable
	}
	return cli.Failed
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Gone reports whether the server answered that the document no longer exists.
func (e *Error) Gone() bool { return e.Status == http.StatusGone }

// Transient reports whether another try may succeed.
func (e *Error) Transient() bool {
	switch {
	case e.Status == 0:
		return !errors.Is(e.Err, errNotAllowed) && !errors.Is(e.Err, errTooLong)
	case e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout:
		return true
	}
	return e.Status >= 500
}

// errTooSlow is in errors of transfers that would take too long: another server, or a later try, may be faster.
var errTooSlow = errors.New("too slow")

// What no other try can mend.
var (
	errNotAllowed = errors.New("not followed") // an address to which links are not followed
	errTooLong    = errors.New("longer than the limit")
)

// Permanent marks an error of a reader as one that a retry cannot help, such as an exceeded limit. [Do] returns err
// itself, or an error that unwraps to it.
func Permanent(err error) error { return backoff.Permanent(err) }

// detail returns the explanation of an error: the detail of a problem (RFC 9457 §3.1.4, "detail"), or the first line of
// a page in plain text.
func detail(res *http.Response, body []byte) string {
	var line string
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/problem+json":
		var problem struct{ Detail string }
		_ = json.Unmarshal(body, &problem) // if it cannot be read, the status is used
		line = problem.Detail
	case "text/plain":
		line, _, _ = strings.Cut(strings.TrimSpace(string(body)), "\n")
		line = strings.TrimPrefix(line, http.StatusText(res.StatusCode)+": ")
	}
	line = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	if runes := []rune(line); len(runes) > 200 {
		line = string(runes[:200]) + "…"
	}
	return line
}

func retryAfter(res *http.Response, now time.Time) time.Duration {
	text := res.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
