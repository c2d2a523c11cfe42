package xtm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/xtm"
)

// Two unequal statements with one item identifier: an error, or the second goes
// without.
const clashing = `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">
<topic id="t">
  <name><itemIdentity href="#n1"/><value>one</value></name>
  <name><itemIdentity href="#n1"/><value>other</value></name>
</topic>
</topicMap>`

func TestDropClashesKeepsTheFirstAndReportsTheSecond(t *testing.T) {
	o := xtm.Options{Base: "http://example.org/map"}
	_, err := xtm.Read(t.Context(), strings.NewReader(clashing), o)
	var syntax *xtm.SyntaxError
	require.ErrorAs(t, err, &syntax)

	var dropped []*xtm.SyntaxError
	o.DropClashes, o.Tolerated = true, func(e *xtm.SyntaxError) { dropped = append(dropped, e) }
	tm, err := xtm.Read(t.Context(), strings.NewReader(clashing), o)
	require.NoError(t, err)
	require.Len(t, dropped, 1)
	assert.Equal(t, 2, dropped[0].Line, "where the topic begins")
	for topic := range tm.Topics() {
		names := topic.Names()
		if len(names) == 2 {
			assert.Len(t, names[0].ItemIdentifiers(), 1)
			assert.Empty(t, names[1].ItemIdentifiers())
		}
	}
}
