package publish

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/formats"
	_ "github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/xtm"
)

// A file whose map needs too much memory is refused as an upload is.
func TestAFileThatTakesTooMuchMemoryIsRefused(t *testing.T) {
	d := &Reader{MaxSize: 1 << 20, Limits: xtm.Limits{Memory: 1000}}
	path := filepath.Join(t.TempDir(), "map.xtm")
	require.NoError(t, os.WriteFile(path, []byte(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic><subjectIdentifier href="http://a"/></topic><topic><subjectLocator href="http://b"/></topic><topic id="t"/><topic id="u"/><topic id="v"/></topicMap>`), 0o600))
	_, err := d.readFile(t.Context(), &Watched{File: path}, "http://a/")
	assert.ErrorContains(t, err, "the map takes more than 1000 bytes of memory, which is the limit; publish it in parts, or raise the limit of the server (--max-body)")
}

// An item identifier of two unequal statements stays with the first; it is removed from the second, which is logged and
// counted.
func TestItemIdentifiersThatClashAreDroppedAndCounted(t *testing.T) {
	var log bytes.Buffer
	d := &Reader{MaxSize: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	const name = `<name><itemIdentity href="#n1"/><value>%s</value></name>`
	tm, tolerated, err := d.Read(t.Context(), strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t">`+
		strings.ReplaceAll(name, "%s", "one")+strings.ReplaceAll(name, "%s", "other")+`</topic></topicMap>`), formats.Default, "map.xtm", "http://a/")
	require.NoError(t, err)
	assert.Equal(t, 1, tolerated.Times(xtm.ItemIdentifiers))
	assert.Contains(t, log.String(), "file=map.xtm line=1")
	for topic := range tm.Topics() {
		if names := topic.Names(); len(names) == 2 {
			assert.Len(t, names[0].ItemIdentifiers(), 1)
			assert.Empty(t, names[1].ItemIdentifiers())
			return
		}
	}
	require.Fail(t, "the topic has not two names")
}
