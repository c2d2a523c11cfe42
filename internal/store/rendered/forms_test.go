package rendered

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/xtm"
)

// Representations have the same bytes in each release. If this test fails, fragments or records are written in another
// form: see Version.
func TestBytesOfAVersionStay(t *testing.T) {
	const sp, si = "http://example.org/map/", "http://psi.example.org/bibliothek"
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		return b
	}
	f, err := fragment.Read(t.Context(), bytes.NewReader(read("source.xtm")), xtm.Options{Base: sp}, si)
	require.NoError(t, err)
	src := &merge.Memory{}
	require.NoError(t, merge.Apply(src, f))
	for name, form := range map[string]fragment.Form{
		"fragment": {SP: sp}, "record": {SP: sp, OmitInstances: true, ContentOnly: true},
	} {
		for version, ending := range map[xtm.Version]string{xtm.V21: ".xtm", xtm.V10: ".xtm1"} {
			var b bytes.Buffer
			form.Version = version
			require.NoError(t, fragment.Write(&b, src, f.Topic.TopicSI(), form))
			require.Equal(t, string(read(name+ending)), b.String(), "%s%s", name, ending)
		}
	}
}

func TestSmallDocumentsHaveALimit(t *testing.T) {
	var b Small
	n, err := b.Write(make([]byte, MaxSmall))
	require.NoError(t, err)
	require.Equal(t, MaxSmall, n)
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, ErrLarge)
	require.Equal(t, MaxSmall, b.Len())
}
