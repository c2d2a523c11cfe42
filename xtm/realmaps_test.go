package xtm_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/tmdm/cxtm"
	"github.com/tmshare/tmshare/xtm"
)

// realMaps are maps that people made. The number of topics is that of the topic
// elements and of the topics that are only referred to.
var realMaps = []struct {
	file         string
	lenient      bool
	topics       int
	elements     int // topic elements in the file
	associations int
}{
	{"GCL-2-1.xtm", true, 680, 677, 1729},
	{"TapsasConcerts.xtm", true, 858, 855, 1411},
	{"mondial.xtm.gz", false, 5976, 5972, 16010},
	{"jill.xtm", false, 35, 19, 7},
}

func openMap(t testing.TB, path string) io.Reader {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if !strings.HasSuffix(path, ".gz") {
		return bytes.NewReader(data)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	return z
}

// loadOrEmpty makes do without what jill.xtm merges in.
func loadOrEmpty(l tmdm.Locator) (io.ReadCloser, error) {
	if strings.HasSuffix(string(l), "/dc.xtmm") {
		return io.NopCloser(strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/"/>`)), nil
	}
	return loadFile(l)
}

func TestRealMaps(t *testing.T) {
	dir := testenv.Shared(t, "data")
	for _, m := range realMaps {
		t.Run(m.file, func(t *testing.T) {
			path := filepath.Join(dir, m.file)
			o := xtm.Options{Base: tmdm.Locator("http://example.org/" + m.file), Lenient: m.lenient, Loader: loadOrEmpty}

			topics, associations := 0, 0
			d := xtm.NewDecoder(openMap(t, path), o)
			for {
				e, err := d.Next()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				switch e.(type) {
				case *xtm.Topic:
					topics++
				case *xtm.Association:
					associations++
				}
			}
			assert.Equal(t, m.elements, topics)
			assert.Equal(t, m.associations, associations)

			tm, err := xtm.Read(t.Context(), openMap(t, path), o)
			require.NoError(t, err)
			n := 0
			for range tm.Topics() {
				n++
			}
			assert.Equal(t, m.topics, n)
			want := canonical(t, tm, cxtm.Options{Base: o.Base})
			content := canonical(t, tm, cxtm.Options{Base: o.Base, OmitItemIdentifiers: true})
			for _, v := range []xtm.Version{xtm.V20, xtm.V21} {
				var doc bytes.Buffer
				losses, err := xtm.Write(&doc, tm, xtm.WriteOptions{Version: v, Base: o.Base})
				require.NoError(t, err)
				assert.Zero(t, losses)
				again, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: o.Base})
				require.NoError(t, err)
				if v == xtm.V20 {
					dropMadeIDs(tm, again, o.Base)
				}
				assert.True(t, want == canonical(t, again, cxtm.Options{Base: o.Base}), "XTM %s means something else", v)
			}
			var doc bytes.Buffer
			_, err = xtm.Write(&doc, tm, xtm.WriteOptions{Version: xtm.V10, Base: o.Base, NameTypes: xtm.OntopiaNameTypes})
			require.NoError(t, err)
			again, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: o.Base, Lenient: true})
			require.NoError(t, err)
			assert.True(t, content == canonical(t, again, cxtm.Options{Base: o.Base, OmitItemIdentifiers: true}), "XTM 1.0 means something else")
		})
	}
}

// Every XTM 1.0 document that is written is valid by the DTD.
func TestWrittenXTM10IsValid(t *testing.T) {
	dtd, xmllint := testenv.Shared(t, "schemas/xtm1.dtd"), testenv.Command(t, "xmllint")
	var files []string
	for _, pattern := range []string{
		filepath.Join(testenv.Shared(t, "conformance/cxtm"), "*", "in", "*.xtm"),
		filepath.Join("..", "testdata", "xtm", "*", "in", "*.xtm"),
	} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	dir := testenv.Shared(t, "data")
	for _, m := range realMaps {
		files = append(files, filepath.Join(dir, m.file))
	}
	require.Greater(t, len(files), 120)
	out := t.TempDir()
	args := []string{"--noout", "--dtdvalid", dtd}
	for i, path := range files {
		base := fileURL(path)
		tm, err := xtm.Read(t.Context(), openMap(t, path), xtm.Options{Base: base, Loader: loadOrEmpty, Lenient: true})
		require.NoError(t, err, path)
		for _, b := range []tmdm.Locator{base, "http://example.net/elsewhere", ""} {
			var doc bytes.Buffer
			_, err = xtm.Write(&doc, tm, xtm.WriteOptions{Version: xtm.V10, Base: b})
			require.NoError(t, err)
			name := filepath.Join(out, strings.Join([]string{string(rune('a' + i%26)), filepath.Base(filepath.Dir(filepath.Dir(path))), filepath.Base(path), string(rune('0' + len(b)%10))}, "-"))
			require.NoError(t, os.WriteFile(name, doc.Bytes(), 0o600))
			args = append(args, name)
		}
	}
	result, err := exec.Command(xmllint, args...).CombinedOutput()
	assert.NoError(t, err, "%.5000s", result)
	t.Logf("%d documents are valid", len(args)-3)
}
