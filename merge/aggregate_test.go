package merge_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// TestAggregates runs random histories of two or three sources with the same subjects. The update of one leaves the
// records of the others as they are, byte for byte. The subscriber's states together have the same statements as the
// publishers' maps together.
func TestAggregates(t *testing.T) {
	counts := map[string]int{}
	for n := range uint64(histories() / 5) {
		seed := testenv.Seed() + n
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runAggregate(t, seed, counts) })
		if t.Failed() {
			return
		}
	}
	require.Greater(t, counts["joined"], histories()/5, "the sources met too rarely to mean anything")
	require.Greater(t, counts["compared"], histories()/5, "documents could be compared too rarely to mean anything")
	require.Positive(t, counts["conflicts"])
}

func runAggregate(t *testing.T, seed uint64, counts map[string]int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	s := &sources{t: t}
	var maps []*tmdm.TopicMap
	var editors []*testedit.Editor
	for i := range 2 + rng.IntN(2) {
		h := newHistory(t)
		h.at = fmt.Sprintf("http://%d.example.org/maps/", i)
		s.publishers = append(s.publishers, h)
		s.subscribers = append(s.subscribers, &subscriber{})
		maps = append(maps, testedit.SmallMap(sp))
		editors = append(editors, testedit.New(maps[i], h.at, seed*8+uint64(i)))
		defer func() {
			if t.Failed() {
				t.Logf("source %d:\n%s", i, strings.Join(h.edits, "\n"))
			}
		}()
	}
	for commit := range 4 + rng.IntN(8) {
		i := rng.IntN(len(maps))
		h, sub := s.publishers[i], s.subscribers[i]
		for range 1 + rng.IntN(4) {
			h.edits = append(h.edits, fmt.Sprintf("%d: %s", commit, editors[i].Edit()), shareIdentifier(rng, maps[i]), shareStatement(rng, maps[i]))
		}
		h.publish(maps[i], commit)
		before := s.dumps()
		sub.round(h.publisher, len(h.log), rng.IntN(2) == 0, false)
		after := s.dumps()
		after[i] = before[i]
		require.Equal(t, before, after, "an update of source %d leaves the others alone", i)
		s.compareViews(counts)
	}
}

// shareIdentifier gives a topic one of a few identifiers that other sources use
// too, for others of their topics.
func shareIdentifier(rng *rand.Rand, tm *tmdm.TopicMap) string {
	topics := slices.Collect(tm.Topics())
	t := topics[rng.IntN(len(topics))]
	si := tmdm.Locator(fmt.Sprintf("http://%c", 'a'+rng.IntN(6)))
	if t.AddSubjectIdentifier(si) != nil {
		return ""
	}
	return fmt.Sprintf("share %s: %s", si, tmdm.Describe(t))
}

// shareStatement adds a statement that other sources are likely to have as well, with a random reifier.
func shareStatement(rng *rand.Rand, tm *tmdm.TopicMap) string {
	topics := slices.Collect(tm.Topics())
	t, r := topics[rng.IntN(len(topics))], topics[rng.IntN(len(topics))]
	n := t.AddName("shared", nil)
	if r.Reified() == nil {
		_ = tmdm.SetReifier(n, r)
	}
	tm.Normalize(context.Background())
	return "share a name: " + tmdm.Describe(t)
}

func (s *sources) compareViews(counts map[string]int) {
	var published []merge.Part
	topics := 0
	for _, h := range s.publishers {
		published = append(published, merge.Part{SP: h.prefix(), Source: h.snapshot(), Claims: true})
	}
	for _, sub := range s.subscribers {
		for range sub.state.Topics() {
			topics++
		}
	}
	here, conflictsHere, err := merge.Join(s.t.Context(), s.parts()...)
	require.NoError(s.t, err)
	there, conflictsThere, err := merge.Join(s.t.Context(), published...)
	require.NoError(s.t, err)
	require.Equal(s.t, string(canonical(s.t, there)), string(canonical(s.t, here)), "the view of the states is the view of the publishers' maps")
	require.Equal(s.t, linesOf(conflictsThere), linesOf(conflictsHere))
	if len(slices.Collect(here.Topics())) < topics {
		counts["joined"]++
	}
	if len(conflictsHere) > 0 {
		counts["conflicts"]++
		return
	}
	if read := s.readTogether(); read != nil {
		counts["compared"]++
		require.Equal(s.t, string(canonical(s.t, read)), string(canonical(s.t, here)), "the view equals the map of all documents read together")
	}
}

func linesOf(conflicts []*tmdm.ReifierError) (lines []string) {
	for _, c := range conflicts {
		lines = append(lines, c.Error())
	}
	return lines
}

// readTogether puts the snapshots of all publishers into one document and reads it: the data model merges them
// without this package. It returns nil if that document is invalid, by equal roles with different reifiers.
func (s *sources) readTogether() *tmdm.TopicMap {
	var all bytes.Buffer
	enc := xtm.NewEncoder(&all, xtm.V21, sp)
	for _, h := range s.publishers {
		var one bytes.Buffer
		require.NoError(s.t, fragment.WriteSnapshot(&one, &h.state, h.served()))
		dec := xtm.NewDecoder(&one, h.options())
		for {
			element, err := dec.Next()
			if err == io.EOF {
				break
			}
			require.NoError(s.t, err)
			switch element := element.(type) {
			case *xtm.Topic:
				err = enc.Topic(element)
			case *xtm.Association:
				err = enc.Association(element)
			}
			require.NoError(s.t, err)
		}
	}
	require.NoError(s.t, enc.Close())
	tm, err := xtm.Read(s.t.Context(), &all, xtm.Options{Base: sp})
	if err != nil {
		require.ErrorContains(s.t, err, "reif")
		return nil
	}
	return tm
}
