package admin_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/admin"
)

// killed is a server that ends each connection as a kill does: once it has the request, or in the middle of its answer.
func killed(t *testing.T, answer string) *admin.Client {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, out, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_, _ = out.WriteString(answer)
			_ = out.Flush()
			_ = conn.Close()
		}
	}))
	t.Cleanup(h.Close)
	c, err := admin.New(h.URL, token)
	require.NoError(t, err)
	return c
}

// A command without an answer to its change reports whether it was made, how to find out, and the remedy.
func TestLostAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"killed before the answer": "",
		"killed in the answer":     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"collection\":",
	} {
		c := killed(t, answer)
		ctx := t.Context()
		change := func(err error, shownBy string) {
			t.Helper()
			assert.ErrorContains(t, err, "EOF", name)
			assert.ErrorContains(t, err, "It did all of what was asked, or nothing: "+shownBy+" shows which. If it was nothing, check that the server runs, and try again", name)
		}
		const log = `"tmshare-server log a/b"`
		_, err := c.PutTopics(ctx, "a/b", nil, doc(xtm21("")), admin.Write{})
		change(err, log)
		_, err = c.RevertCommit(ctx, "a/b", 3, false, admin.Write{})
		change(err, log)
		_, _, err = c.Put(ctx, "a/b", admin.Change{"title": "x"}, "")
		change(err, `"tmshare-server collections show a/b"`)
		_, err = c.Delete(ctx, "a/b", admin.Write{})
		change(err, `"tmshare-server collections"`)
		_, err = c.Prune(ctx, "a/b", false)
		change(err, "the log of the server")
		_, _, err = c.TakeSnapshot(ctx, "a/b")
		change(err, "the log of the server")

		const read = "has not answered to the end"
		_, err = c.RevertTopic(ctx, "a/b", a, time.Now(), admin.Write{DryRun: true})
		assert.ErrorContains(t, err, read)
		assert.NotContains(t, err.Error(), "or nothing", "a dry run changes nothing")
		for _, err := range []error{
			second(c.Settings(ctx, "m")), second(c.History(ctx, "m", admin.Query{})),
			second(c.Differences(ctx, "m", time.Now(), time.Time{}, nil)), c.Export(ctx, "m", ".xtm21", time.Time{}, &bytes.Buffer{}),
		} {
			assert.ErrorContains(t, err, read, name)
			assert.ErrorContains(t, err, "check that the server still runs, then try again", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// An untrusted certificate is reported. As no request was sent, the outcome is known.
func TestCertificatesThatAreNotTrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c, err := admin.New(s.URL, "")
	require.NoError(t, err)
	_, _, err = c.Put(t.Context(), "m", admin.Change{"title": "x"}, "")
	assert.ErrorContains(t, err, "no answer from "+s.URL+": tls: failed to verify certificate")
	assert.ErrorContains(t, err, "name its file: --ca-cert FILE")
}
