package derived_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv/kvtest"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	_ "github.com/tmshare/tmshare/internal/testenv"
)

// Where each question to the engine takes its time, a change is marked and taken with as many questions, however many topics it has.
func TestQuestionsDoNotGrowWithTheChange(t *testing.T) {
	t.Parallel()
	asked := func(topics int) (marking, taking int64) {
		e := &kvtest.Asked{Engine: memory.New()}
		db := txn.New(e, func() error { return nil })
		const number = 1
		source := keys.Source{Number: 2}
		update := func(f func(tx *txn.Tx) error) int64 {
			before := e.Questions.Load()
			require.NoError(t, db.Update(t.Context(), f))
			return e.Questions.Load() - before
		}
		update(func(tx *txn.Tx) error { return derived.Begin(tx, number, []string{"in"}, nil) })
		change := &fragment.Change{}
		for i := range topics {
			topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(fmt.Sprintf("http://psi.example.org/%03d", i))}}}
			role := func(ref fragment.Ref) fragment.Role {
				return fragment.Role{Type: "http://psi.example.org/role", Player: ref}
			}
			change.PutTopics = append(change.PutTopics, topic)
			change.PutAssociations = append(change.PutAssociations, &fragment.Association{Type: "http://psi.example.org/part-of",
				Roles: []fragment.Role{role(topic.TopicSI()), role("http://psi.example.org/whole")}})
			change.Entries = append(change.Entries, fragment.Entry{TopicSI: topic.TopicSI(), Topic: topic.TopicSI()})
		}
		marking = update(func(tx *txn.Tx) error {
			return derived.MarkChange(records.Of(tx, source), "in", change, func(i int) string { return fmt.Sprint("entry-", i) })
		})
		taking = update(func(tx *txn.Tx) error {
			taken, err := derived.Take(tx, number, topics+1)
			require.NoError(t, err)
			require.Len(t, taken.All, topics+1, "and the whole")
			require.Equal(t, []string{"entry-0"}, taken.Via["http://psi.example.org/000"])
			return nil
		})
		return marking, taking
	}
	marking, taking := asked(2)
	for _, topics := range []int{20, 200} {
		m, n := asked(topics)
		require.Equal(t, marking, m, "questions of marking %d topics", topics)
		require.Equal(t, taking, n, "questions of taking %d topics", topics)
	}
	require.LessOrEqual(t, marking, int64(8))
	require.LessOrEqual(t, taking, int64(8))
}
