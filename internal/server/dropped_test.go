package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An item identifier that two unequal statements have stays with the first; the
// second goes without, which is logged and counted.
func TestItemIdentifiersThatClashAreDroppedAndCounted(t *testing.T) {
	var log bytes.Buffer
	s := &Server{Config: Config{MaxBody: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	const name = `<name><itemIdentity href="#n1"/><value>%s</value></name>`
	tm, dropped, err := s.read(strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="t">`+
		strings.ReplaceAll(name, "%s", "one")+strings.ReplaceAll(name, "%s", "other")+`</topic></topicMap>`), "map.xtm", "http://a/")
	require.NoError(t, err)
	assert.Equal(t, 1, dropped)
	assert.Contains(t, log.String(), "map.xtm:1")
	for topic := range tm.Topics() {
		if names := topic.Names(); len(names) == 2 {
			assert.Len(t, names[0].ItemIdentifiers(), 1)
			assert.Empty(t, names[1].ItemIdentifiers())
			return
		}
	}
	require.Fail(t, "the topic has not two names")
}
