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

// Error says that a document could not be fetched.
type Error struct {
	URL        string
	Status     int           // 0 where there was no answer
	Detail     string        // what the server said about it, "" if nothing
	RetryAfter time.Duration // what the server asked for, 0 if nothing
	Err        error         // without an answer: why; with one: nil
	plain      bool          // a server of HTTPS was asked by HTTP
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

// remedy says what to do where there was no connection, or no whole answer.
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

// Remedy says what people can do, where the text of the error does not.
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

// Gone reports whether the server said that the document is not kept.
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

// errTooSlow is in errors of what would take too long: another server, or time, may do better.
var errTooSlow = errors.New("too slow")

// What no other try can mend.
var (
	errNotAllowed = errors.New("not followed") // an address to which links are not followed
	errTooLong    = errors.New("longer than the limit")
)

// Permanent marks an error of what reads an answer as one that no other try can
// mend: a document that exceeds a limit will do so again. [Do] returns err itself,
// or an error that unwraps to it.
func Permanent(err error) error { return backoff.Permanent(err) }

// detail returns what an error says of itself: the detail of a problem (RFC 9457
// §3.1.4, "detail"), or the first line of a page that is plain text.
func detail(res *http.Response, body []byte) string {
	var line string
	switch kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind {
	case "application/problem+json":
		var problem struct{ Detail string }
		_ = json.Unmarshal(body, &problem) // where it cannot be read, the status must do
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
