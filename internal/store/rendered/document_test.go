package rendered

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const sp = "http://example.org/map/"

// sameAsWritten holds that what is derived from fragments of a map is, byte for byte, what is written of its records. It returns
// the number of fragments.
func sameAsWritten(t *testing.T, tm *tmdm.TopicMap, most int) (n int) {
	t.Helper()
	m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
	require.NoError(t, err)
	check := func(e fragment.Entry, form fragment.Form) {
		written := func(version xtm.Version) []byte {
			var b bytes.Buffer
			form.Version, form.SP = version, sp
			require.NoError(t, e.Write(&b, m, form))
			return b.Bytes()
		}
		plain := written(stored)
		for _, version := range Forms {
			derived, err := derive(plain, version, sp)
			require.NoError(t, err)
			require.Equal(t, string(written(version)), string(derived), "%s as XTM %s", e.TopicSI, version)
		}
		n++
	}
	for topic, err := range m.Topics() {
		require.NoError(t, err)
		if n > most {
			break
		}
		e := fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI(), Tombstone: topic.Identity}
		check(e, fragment.Form{})
		check(e, fragment.Form{OmitInstances: true})
		check(e, fragment.Form{OmitInstances: true, ContentOnly: true})
		e.Deleted = true
		check(e, fragment.Form{})
	}
	return n
}

func TestFormsAreDerivedAsTheyWouldBeWritten(t *testing.T) {
	t.Run("random maps", func(t *testing.T) {
		n := 0
		for seed := range uint64(testenv.Rounds(100, 5000)) {
			tm := testedit.SmallMap(sp, 2)
			editor := testedit.New(tm, sp, testenv.Seed()*100_000+seed)
			for range 60 {
				editor.Edit()
			}
			require.NoError(t, tm.Normalize(t.Context()))
			n += sameAsWritten(t, tm, 1000)
		}
		require.Greater(t, n, 200)
	})
	for _, folder := range []string{"data", "conformance"} {
		t.Run(folder, func(t *testing.T) {
			files, n := 0, 0
			require.NoError(t, filepath.Walk(testenv.Shared(t, folder), func(path string, info os.FileInfo, err error) error {
				if err != nil || info.IsDir() || !strings.Contains(filepath.Base(path), ".xtm") {
					return err
				}
				if tm := readMap(t, path); tm != nil {
					files++
					n += sameAsWritten(t, tm, 400)
				}
				return nil
			}))
			require.Greater(t, files, 2, "maps that can be read")
			require.Greater(t, n, 500)
		})
	}
}

// readMap returns the map in a file, nil where that is not well-formed or valid: tests of conformance have such.
func readMap(t *testing.T, path string) *tmdm.TopicMap {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		r, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	none := func(tmdm.Locator) (io.ReadCloser, error) { return nil, os.ErrNotExist }
	tm, err := xtm.Read(context.Background(), r, xtm.Options{Base: sp, Lenient: true, Loader: none})
	if err != nil {
		return nil
	}
	return tm
}

// What has an address has the same bytes in each release. If this test fails, the encoder or the decoder of XTM, or the
// packing, has been changed such that they write other bytes: see Version.
func TestBytesOfAVersionStay(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		return b
	}
	f := &Fragment{}
	var err error
	f.Gzipped, err = compress(read("fragment.xtm"))
	require.NoError(t, err)
	f.Record, err = compress(read("record.xtm"))
	require.NoError(t, err)
	for name, apart := range map[string]bool{"fragment": false, "record": true} {
		d, err := Read(f.Pack(), apart, xtm.V10, 1, sp)
		require.NoError(t, err)
		plain, err := d.Plain()
		require.NoError(t, err)
		require.Equal(t, string(read(name+".version1.xtm1")), string(plain))
		packed, err := d.Gzipped()
		require.NoError(t, err)
		sum := sha256.Sum256(packed)
		require.Equal(t, strings.TrimSpace(string(read(name+".version1.gz.sha256"))), hex.EncodeToString(sum[:]), name)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	packed, err := compress([]byte("no fragment"))
	require.NoError(t, err)
	whole := (&Fragment{Gzipped: packed}).Pack()
	_, err = Read(whole, false, xtm.V21, Version+1, sp)
	require.ErrorContains(t, err, "a newer version of tmshare")
	_, err = Read(whole, false, xtm.V20, Version, sp)
	require.ErrorContains(t, err, "ask for one of")
	_, err = Read(whole, true, xtm.V21, Version, sp)
	require.ErrorIs(t, err, kv.ErrDamaged)
	_, err = Read(whole[:5], false, xtm.V21, Version, sp)
	require.ErrorIs(t, err, kv.ErrDamaged)
	d, err := Read(whole, false, xtm.V10, Version, sp)
	require.NoError(t, err)
	_, err = d.Plain()
	require.ErrorIs(t, err, kv.ErrDamaged)
	_, err = d.Gzipped()
	require.ErrorIs(t, err, kv.ErrDamaged)
}
