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
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	_ "github.com/tmshare/tmshare/internal/testenv"
)

// A change is taken with as many questions to the engine, however many topics it has.
func TestQuestionsDoNotGrowWithTheChange(t *testing.T) {
	t.Parallel()
	asked := func(topics int) (taking int64) {
		e := &kvtest.Asked{Engine: memory.New()}
		db := txn.New(e, func() error { return nil })
		own, in := keys.Source{Number: 1}, derived.Input{ID: keys.Source{Number: 2}}
		in.Via = func(after, upTo uint64, f func(fragment.Ref, string)) error {
			require.Equal(t, uint64(1), upTo-after)
			f("http://psi.example.org/000", "entry-0")
			return nil
		}
		update := func(f func(tx *txn.Tx) error) int64 {
			before := e.Questions.Load()
			require.NoError(t, db.Update(t.Context(), f))
			return e.Questions.Load() - before
		}
		take := func(n int) int64 {
			return update(func(tx *txn.Tx) error {
				taken, err := derived.Take(tx, own, []derived.Input{in}, n+1)
				require.NoError(t, err)
				require.False(t, taken.More)
				if n == 0 {
					require.Empty(t, taken.All)
					return nil
				}
				require.Len(t, taken.All, n+1, "and the whole")
				require.Equal(t, []string{"entry-0"}, taken.Via["http://psi.example.org/000"])
				return nil
			})
		}
		take(0) // the initial state
		update(func(tx *txn.Tx) error {
			past.Record(tx, in.ID, 0, func() (uint64, error) { return 1, nil })
			state := records.In(tx, in.ID)
			for i := range topics {
				topic := &fragment.Topic{Identity: fragment.Identity{SubjectIdentifiers: []fragment.Ref{fragment.Ref(fmt.Sprintf("http://psi.example.org/%03d", i))}}}
				role := func(ref fragment.Ref) fragment.Role {
					return fragment.Role{Type: "http://psi.example.org/role", Player: ref}
				}
				require.NoError(t, state.PutTopic(topic))
				require.NoError(t, state.PutAssociation(&fragment.Association{Type: "http://psi.example.org/part-of",
					Roles: []fragment.Role{role(topic.TopicSI()), role("http://psi.example.org/whole")}}))
			}
			return nil
		})
		return take(topics)
	}
	taking := asked(2)
	for _, topics := range []int{20, 200} {
		require.Equal(t, taking, asked(topics), "questions of taking %d topics", topics)
	}
	require.LessOrEqual(t, taking, int64(12))
}
