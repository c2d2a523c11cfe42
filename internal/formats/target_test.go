package formats

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// typedName is a map that XTM 1.0 cannot carry.
const typedName = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="a">` +
	`<name><type><topicRef href="#t"/></type><value>A</value></name></topic></topicMap>`

func document(t *testing.T, content string) *Document {
	t.Helper()
	d, err := Source{Path: "-", Stdin: strings.NewReader(content), Base: "http://example.org/map"}.Read(t.Context())
	require.NoError(t, err)
	return d
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWriteFormats(t *testing.T) {
	d := document(t, typedName)
	for format, want := range map[*Format]string{
		XTM10: `http://www.topicmaps.org/xtm/1.0/`, XTM20: `version="2.0"`, XTM21: `version="2.1"`, CXTM: "<topicMap>\n",
	} {
		var out bytes.Buffer
		losses, err := Target{Path: "-", Stdout: &out}.Write(t.Context(), d.Encoder(format, WriteOptions{}))
		require.NoError(t, err)
		assert.Contains(t, out.String(), want)
		assert.Equal(t, format == XTM10, losses.NameTypes == 1)

		dir := t.TempDir()
		for _, name := range []string{"map", "map.gz"} {
			_, err = Target{Path: filepath.Join(dir, name)}.Write(t.Context(), d.Encoder(format, WriteOptions{}))
			require.NoError(t, err)
		}
		plain, err := os.ReadFile(filepath.Join(dir, "map"))
		require.NoError(t, err)
		assert.Equal(t, out.String(), string(plain))
		f, err := os.Open(filepath.Join(dir, "map.gz"))
		require.NoError(t, err)
		unpacked, err := (&input{left: 1 << 20}).unpack(f)
		require.NoError(t, err)
		content, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		assert.Equal(t, out.String(), string(content))
		info, err := os.Stat(filepath.Join(dir, "map.gz"))
		require.NoError(t, err)
		assert.NotEqual(t, int64(len(content)), info.Size(), "it is gzipped")
		assert.Equal(t, []string{"map", "map.gz"}, files(t, dir))
	}
}

func TestOntopiaNameTypes(t *testing.T) {
	var out bytes.Buffer
	losses, err := Target{Path: "-", Stdout: &out, FailOnLoss: true}.Write(t.Context(), document(t, typedName).Encoder(XTM10, WriteOptions{NameTypes: xtm.OntopiaNameTypes}))
	require.NoError(t, err)
	assert.Zero(t, losses)
	d, err := Source{Path: "-", Stdin: &out, Base: "http://example.org/map", Lenient: true}.Read(t.Context())
	require.NoError(t, err)
	topic := d.Map.ConstructByItemIdentifier("http://example.org/map#a").(*tmdm.Topic)
	assert.Equal(t, tmdm.Locator("http://example.org/map#t"), topic.Names()[0].Type().ItemIdentifiers()[0])
}

// A file that cannot be written as a whole is not there at all, and the one that
// was there stays.
func TestFailedWriteLeavesNothing(t *testing.T) {
	d := document(t, typedName)
	ended, end := context.WithCancel(t.Context())
	end()
	var loss *LossError
	for _, there := range []bool{false, true} {
		dir := t.TempDir()
		path, want := filepath.Join(dir, "map.xtm1"), []string{}
		if there {
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			want = []string{"map.xtm1"}
		}
		losses, err := Target{Path: path, FailOnLoss: true}.Write(t.Context(), d.Encoder(XTM10, WriteOptions{}))
		require.ErrorAs(t, err, &loss)
		assert.Equal(t, 1, losses.NameTypes)
		assert.Equal(t, want, files(t, dir))

		_, err = Target{Path: path}.Write(ended, d.Encoder(XTM21, WriteOptions{}))
		require.ErrorIs(t, err, context.Canceled)
		assert.ErrorContains(t, err, path)
		assert.Equal(t, want, files(t, dir))

		if there {
			old, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, "old", string(old))
		}
	}

	var out bytes.Buffer
	_, err := Target{Path: "-", Stdout: &out, FailOnLoss: true}.Write(t.Context(), d.Encoder(XTM10, WriteOptions{}))
	require.ErrorAs(t, err, &loss)
	assert.Empty(t, out.String())
}

func TestWriteWhereNoFileCanBe(t *testing.T) {
	d, dir := document(t, typedName), t.TempDir()
	_, err := Target{Path: dir}.Write(t.Context(), d.Encoder(XTM21, WriteOptions{}))
	assert.ErrorContains(t, err, dir+" is a folder")
	path := filepath.Join(dir, "nowhere", "map.xtm")
	_, err = Target{Path: path}.Write(t.Context(), d.Encoder(XTM21, WriteOptions{}))
	assert.EqualError(t, err, "writing "+path+": no such file or directory; make its folder first")
	if _, err := os.Stat("/dev/full"); err == nil {
		_, err = Target{Path: "/dev/full"}.Write(t.Context(), d.Encoder(XTM21, WriteOptions{}))
		assert.EqualError(t, err, "writing /dev/full: no space left on device")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = Target{Path: "-", Stdout: w}.Write(t.Context(), d.Encoder(XTM21, WriteOptions{}))
	assert.EqualError(t, err, "writing standard output: broken pipe")
	require.NoError(t, w.Close())
}

// The new file has the mode of the old one, and what links to it still does.
func TestReplaceKeepsModeAndLinks(t *testing.T) {
	d, dir := document(t, typedName), t.TempDir()
	path, link := filepath.Join(dir, "map.xtm"), filepath.Join(dir, "link.xtm")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, os.Symlink("map.xtm", link))
	_, err := Target{Path: link}.Write(t.Context(), d.Encoder(XTM21, WriteOptions{}))
	require.NoError(t, err)
	to, err := os.Readlink(link)
	require.NoError(t, err)
	assert.Equal(t, "map.xtm", to)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(content), `version="2.1"`)
	assert.Equal(t, []string{"link.xtm", "map.xtm"}, files(t, dir))
}
