package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What a request waits for a change, as it wishes, does not make it slow.
func TestWaitingIsNotSlow(t *testing.T) {
	for _, c := range []struct {
		limit, took, busy time.Duration
		want              string
	}{
		{10 * time.Second, time.Minute, time.Second, "level=INFO msg=request "},
		{10 * time.Second, time.Minute, 11 * time.Second, `level=WARN msg="slow request" `},
		{0, time.Hour, time.Hour, "level=INFO msg=request "},
	} {
		var log bytes.Buffer
		f := &Front{Logger: slog.New(slog.NewTextHandler(&log, nil)), SlowRequest: c.limit}
		x, r := newRecorder(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil), time.Minute)
		f.logAccess(x, r, c.took, c.busy)
		assert.Contains(t, log.String(), c.want)
	}
}
