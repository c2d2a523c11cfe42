package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/derive"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/testenv"
)

// There is a fixture of each format that data folders have had: testdata/folders/make.sh makes them. The present program opens each, finds it
// sound, and has the map that was there. Server and client go on with what they have, and prove that they are in step.
func TestDataFoldersOfAllFormats(t *testing.T) {
	const derivedSince = 3 // the format before which there were no derived collections
	const base = "http://127.0.0.1:18080/"
	for format := 1; format <= keys.FormatVersion; format++ {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			unpack(t, fmt.Sprintf("testdata/folders/format%d.tar.gz", format), dir)
			expected, err := os.ReadFile(filepath.Join(dir, "expected.xtm"))
			require.NoError(t, err)
			published, held := openSound(t, filepath.Join(dir, "server")), openSound(t, filepath.Join(dir, "client"))

			head := func() (seq uint64) {
				require.NoError(t, published.View(t.Context(), "cities", func(v *store.View) error {
					seq = v.Head
					return nil
				}))
				return seq
			}
			before := head()
			s, err := server.New(server.Config{Store: published, BaseURL: "http://127.0.0.1:18080", OnLoopback: true, Logger: quiet})
			require.NoError(t, err)
			t.Cleanup(s.Close)
			require.NoError(t, s.Start())
			if format == 1 { // two topics, of which its log has not said all
				testenv.Eventually(t, func() bool { return head() == before+2 }, "the server states them anew in the background")
			}
			socket := httptest.NewServer(s)
			t.Cleanup(socket.Close)
			// Links have the address that the server had when the fixture was made.
			there := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, socket.Listener.Addr().String())
			}}}
			c, err := client.New(client.Config{Store: held, Logger: quiet, HTTP: there})
			require.NoError(t, err)
			view := merged.View{Store: held, Report: c.Report}

			tm, _, err := view.Map(t.Context(), false)
			require.NoError(t, err)
			assert.Equal(t, canonical(t, readXTM(t, expected, base, false), base), canonical(t, tm, base))
			round, err := c.Sync(t.Context(), "cities")
			require.NoError(t, err)
			assert.False(t, round.CleanStart, round.Reason)
			verdict, err := c.Verify(t.Context(), "cities", true)
			require.NoError(t, err)
			assert.True(t, verdict.Equal)
			if format >= derivedSince {
				_, err := derive.CatchUp(t.Context(), published, "all")
				require.NoError(t, err)
				require.NoError(t, published.View(t.Context(), "all", func(v *store.View) error {
					assert.False(t, v.Filling)
					assert.Equal(t, 11, v.Topics)
					return nil
				}))
			}

			earlier, err := os.ReadFile("testdata/folders/before.xtm")
			require.NoError(t, err)
			putThrough(t, there, earlier)
			round, err = c.Sync(t.Context(), "cities")
			require.NoError(t, err)
			assert.Equal(t, 3, round.Entries)
			verdict, err = c.Verify(t.Context(), "cities", true)
			require.NoError(t, err)
			assert.True(t, verdict.Equal)
		})
	}
}

// openSound opens a data folder for writing, which brings it to the present format, and checks it.
func openSound(t *testing.T, dir string) *store.DB {
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Access: store.Write, Logger: quiet, Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	require.NoError(t, db.Check(t.Context(), false, func(f store.Finding) { t.Errorf("%s: %s: %s", dir, f.Where, f.What) }, func(string) {}))
	return db
}

// putThrough publishes a version of the map of the fixtures.
func putThrough(t *testing.T, there *http.Client, doc []byte) {
	req, err := http.NewRequest(http.MethodPut, "http://127.0.0.1:18080/topicmaps/cities", bytes.NewReader(doc))
	require.NoError(t, err)
	res, err := there.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
}

// unpack unpacks a fixture into a folder.
func unpack(t *testing.T, archive, dir string) {
	f, err := os.Open(archive)
	require.NoError(t, err, "make the fixture of this format with testdata/folders/make.sh")
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, filepath.FromSlash(head.Name))
		if head.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o700))
			continue
		}
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, 0o600))
	}
}
