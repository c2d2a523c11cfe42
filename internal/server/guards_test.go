package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// If-Unmodified-Since guards writes too, where there is no If-Match.
func TestIfUnmodifiedSinceOnWrites(t *testing.T) {
	n := start(t)
	n.publish("egov", maps.EGov)
	a := n.put("egov", maps.Libraries, "If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT")
	assert.Equal(t, http.StatusPreconditionFailed, a.StatusCode, string(a.body))
	a = n.put("egov", maps.EGov, "If-Unmodified-Since", "Sat, 01 Jan 2050 00:00:00 GMT")
	assert.Equal(t, http.StatusOK, a.StatusCode, string(a.body))
}

// Settings that every reader would have to pay for are refused.
func TestSettingsAreBounded(t *testing.T) {
	n := start(t)
	for _, bad := range []string{`{"documentSize": 1000000000}`, `{"title": "\u001b[31m"}`, `{"summary": "a\u0007"}`} {
		assert.Equal(t, http.StatusUnprocessableEntity, n.putSettings("bad", bad).StatusCode, bad)
	}
}
