package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// Health judges by the results of requests whether the server is out of order, rather than one of its documents.
type Health struct {
	// Alive requests something else from the source after a document could not be fetched. It may be nil.
	Alive func(context.Context) error

	faults int // documents in a row that failed as if the server were out of order
}

// maxFaults is the number of consecutive failed documents after which the server counts as out of order.
const maxFaults = 5

// outOfOrderError is the error for a server that is out of order, or requests a pause.
type outOfOrderError struct{ error }

func (e *outOfOrderError) Unwrap() error { return e.error }

// EndsRound returns the error that ends the round, unless err concerns the document alone. progress reports whether
// others were fetched since the last error.
func (h *Health) EndsRound(ctx context.Context, err error, progress bool) error {
	if h.faults++; progress {
		h.faults = 1
	}
	var failed *fetch.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &failed) && failed.RetryAfter > 0:
		return &outOfOrderError{fmt.Errorf("the server asks to come back in %s: %w", failed.RetryAfter.Round(time.Second),
			err)}
	case WantsPause(err):
		return &outOfOrderError{err}
	case !IsServerFault(err):
		return err
	case h.faults == maxFaults:
		return &outOfOrderError{fmt.Errorf("%d documents in a row could not be fetched, the last one: %w", h.faults, err)}
	case h.Alive != nil && h.Alive(ctx) != nil:
		return &outOfOrderError{err}
	}
	return nil
}

// IsServerFault reports whether an error may concern the whole server, or the connection to it, rather than the
// requested document.
func IsServerFault(err error) bool {
	failed, ok := errors.AsType[*fetch.Error](err)
	return ok && (failed.Transient() || failed.Status == http.StatusUnauthorized ||
		failed.Status == http.StatusForbidden || failed.Status == http.StatusProxyAuthRequired)
}

// WantsPause reports whether the server wants to be left alone for a while.
func WantsPause(err error) bool {
	failed, ok := errors.AsType[*fetch.Error](err)
	return ok && (failed.Status == http.StatusTooManyRequests || failed.RetryAfter > 0)
}
