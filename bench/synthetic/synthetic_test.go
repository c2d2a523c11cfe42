package synthetic_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/bench/synthetic"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/xtm"
)

func TestWriteMakesTheShapeThatItPromises(t *testing.T) {
	const n = 1000
	var doc, again bytes.Buffer
	require.NoError(t, synthetic.Write(&doc, n))
	require.NoError(t, synthetic.Write(&again, n))
	assert.True(t, bytes.Equal(doc.Bytes(), again.Bytes()), "the same for the same size")
	assert.InDelta(t, 1180, doc.Len()/n, 50, "bytes per topic")

	tm, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: synthetic.Base})
	require.NoError(t, err)
	topics, names, occurrences, scoped := 0, 0, 0, 0
	for topic := range tm.Topics() {
		topics++
		for _, name := range topic.Names() {
			names++
			if len(name.Scope().Themes()) > 0 {
				scoped++
			}
		}
		occurrences += len(topic.Occurrences())
	}
	// The reader adds the topics of topic-name, type-instance, type and instance.
	assert.Equal(t, n+synthetic.Vocabulary+4, topics)
	assert.Equal(t, 2*n+synthetic.Vocabulary, names)
	assert.Equal(t, n, scoped)
	assert.Equal(t, 2*n, occurrences)
	// The two associations of a topic may happen to be the same, and are one then.
	assert.InDelta(t, n+n*3/2, count(tm.Associations()), 5, "types, and other associations")
}

func TestWriteReifiedReifiesNames(t *testing.T) {
	var doc bytes.Buffer
	require.NoError(t, synthetic.WriteReified(&doc, 100, 10))
	tm, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: synthetic.Base})
	require.NoError(t, err)
	reified := 0
	for topic := range tm.Topics() {
		for _, name := range topic.Names() {
			if name.Reifier() != nil {
				reified++
			}
		}
	}
	assert.Equal(t, 10, reified)
}

func count[T any](seq func(func(T) bool)) (n int) {
	for range seq {
		n++
	}
	return n
}
