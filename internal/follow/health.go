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
	// Alive asks the source for something else when a document could not be fetched. It may be nil.
	Alive func(context.Context) error

	faults int // documents in a row that failed as if the server were out of order
}

// maxFaults is how many documents in a row may fail, as if the server were out of order, before it
// is taken to be.
const maxFaults = 5

// outOfOrderError says that the server is out of order, or wants a pause.
type outOfOrderError struct{ error }

func (e *outOfOrderError) Unwrap() error { return e.error }

// EndsRound returns the error that ends the round, where err is not one of the document alone.
// progress says that others were fetched since the last one.
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

// IsServerFault reports whether an error may be one of the server as a whole, or of the way to it,
// rather than one of the document that was asked for.
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
