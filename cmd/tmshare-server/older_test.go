package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testkit/pgserver"
)

// Each command refuses the data of the previous program, in folders of format 5, a database of layout 1 and a backup of
// format 1, with the remedy and its losses. No byte of them changes.
func TestWhatAnEarlierProgramWroteIsRefused(t *testing.T) {
	dir := t.TempDir()
	unpack(t, "testdata/older/folders.tar.gz", dir)
	publisher, follower := filepath.Join(dir, "server"), filepath.Join(dir, "client")
	backup, err := os.ReadFile("testdata/older/format1.backup")
	require.NoError(t, err)
	kept := filepath.Join(dir, "kept.backup")
	require.NoError(t, os.WriteFile(kept, backup, 0o600))
	before := contents(t, dir)
	for _, command := range [][]string{
		{"tmshare-server", "serve", "--data", publisher, "--listen", "127.0.0.1:0"},
		{"tmshare-server", "check", "--data", publisher},
		{"tmshare-server", "check", "--repair", "--data", publisher},
		{"tmshare-server", "backup", filepath.Join(dir, "new.backup"), "--data", publisher},
		{"tmshare-client", "sync", "--data", follower},
		{"tmshare-client", "status", "--data", follower},
		{"tmshare-client", "export", "--data", follower},
	} {
		refused(t, command, "node.json is in format 1, this program reads format 6")
	}
	out, _ := exec.Command("tmshare-client", "doctor", "--data", follower).CombinedOutput()
	assert.Contains(t, string(out), "node.json is in format 1, this program reads format 6")
	restored := filepath.Join(dir, "restored")
	refused(t, []string{"tmshare-server", "restore", kept, "--data", restored}, "is in format 1, this program reads format 2")
	assert.NoDirExists(t, restored)
	assert.Equal(t, before, contents(t, dir))
}

// A database is refused likewise.
func TestADatabaseOfAnEarlierLayoutIsRefused(t *testing.T) {
	server := pgserver.Start(t, "fsync=off")
	database := server.URL()
	server.SQL(t, `CREATE SCHEMA tmshare; SET search_path = tmshare;
		CREATE TABLE tm_rows (head bytea NOT NULL, hash bytea NOT NULL, tail bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (head, hash));
		CREATE TABLE tm_commits (id uuid PRIMARY KEY, version bigint NOT NULL);
		CREATE TABLE tm_state (one int PRIMARY KEY, version bigint NOT NULL, layout int NOT NULL);
		INSERT INTO tm_state VALUES (1, 7, 1); INSERT INTO tm_rows VALUES ('mformat', '', '', '5')`)
	all := func() string {
		return server.SQL(t, `SET search_path = tmshare; SELECT relname || ' ' || relkind::text FROM pg_class WHERE relnamespace = 'tmshare'::regnamespace
			UNION ALL SELECT r::text FROM tm_rows r UNION ALL SELECT s::text FROM tm_state s ORDER BY 1`)
	}
	before := all()
	require.Contains(t, before, "(1,7,1)")
	for _, command := range [][]string{
		{"tmshare-server", "serve", "--store", database, "--listen", "127.0.0.1:0", "--data", t.TempDir()},
		{"tmshare-server", "migrate", "--store", database},
		{"tmshare-client", "status", "--store", database},
	} {
		refused(t, command, "the tables of the database have layout 1, this program reads layout 5")
	}
	assert.Equal(t, before, all())
}

func refused(t *testing.T, command []string, why string) {
	t.Helper()
	var failed bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = &failed
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit, "%s", command)
	assert.Equal(t, 1, exit.ExitCode(), "%s: %s", command, &failed)
	for _, what := range []string{why, "an earlier program wrote it, and nothing is converted. Nothing was changed. ", `"export"`, `"import"`, "Epochs, subscriptions and rejections are lost"} {
		assert.Contains(t, failed.String(), what, "%s", command)
	}
}

// contents returns the sums of all files below a folder.
func contents(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	for _, path := range filesIn(t, dir) {
		b, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		sums[path] = sha256.Sum256(b)
	}
	return sums
}

// unpack unpacks an archive into a folder.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
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
		require.NoError(t, errors.Join(err, os.WriteFile(path, content, 0o600)))
	}
}
