package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A handler may pause between two pieces of a body for longer than a client may.
func TestHandlerMayPauseWhileItReads(t *testing.T) {
	t.Parallel()
	const patience = 100 * time.Millisecond
	pausing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, r := newExchange(w, r, patience)
		var got bytes.Buffer
		for {
			_, err := io.CopyN(&got, r.Body, 1_200_000)
			if err == io.EOF {
				break
			}
			if err != nil {
				x.WriteHeader(http.StatusRequestTimeout)
				return
			}
			time.Sleep(3 * patience)
		}
		_, _ = x.Write(got.Bytes())
	})
	document := bytes.Repeat([]byte("0123456789"), 300_000) // more than HTTP/2 sends ahead
	for _, http2 := range []bool{true, false} {
		h := httptest.NewUnstartedServer(pausing)
		h.EnableHTTP2 = http2
		h.StartTLS()
		res, err := h.Client().Post(h.URL, "text/plain", bytes.NewReader(document))
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		res.Body.Close()
		h.Close()
		assert.Equal(t, map[bool]int{true: 2, false: 1}[http2], res.ProtoMajor)
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.True(t, bytes.Equal(document, body))
	}
}
