package records

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// Reading records in passing returns the stored ones, for all topics whose classes are read.
func TestRecordsInPassingAreThoseThatStay(t *testing.T) {
	list := reifying(200)
	for i, r := range list { // classes of many instances, before, among and after these
		if r.Topic != nil && i%4 > 0 {
			for class := range i % 4 {
				list = append(list, fragment.Record{Association: instanceOf(r.Topic.TopicSI(), ref(60*class), i%7 == 0)})
			}
		}
	}
	db := open(t)
	id := keys.Source{Number: 7, Generation: 7}
	for _, other := range []keys.Source{id, {Number: 7, Generation: 6}, {Number: 8, Generation: 1}} {
		l := Loader{Engine: db.Engine, Scratch: t.TempDir(), Ready: func() error { return nil }}
		require.NoError(t, l.Load(t.Context(), other, yielding(list), nil))
	}
	random := rand.New(rand.NewPCG(testenv.Seed(), 0))
	require.NoError(t, db.View(t.Context(), func(tx *txn.Tx) error {
		state := Read(tx, id)
		for _, asked := range []float64{1, 0, 0.5, 0.02, 0.98} {
			topics := 0
			src := fragment.InPassing(state)
			for topic, err := range src.Topics() {
				require.NoError(t, err)
				kept, err := state.Topic(topic.TopicSI())
				require.NoError(t, err)
				require.Equal(t, fragment.MarshalTopic(kept), fragment.MarshalTopic(topic))
				topics++
				for random.Float64() < asked/1.2 {
					part := fragment.Parts[random.IntN(10)%len(fragment.Parts)]
					require.Equal(t, associationsOf(t, state, topic.TopicSI(), part), associationsOf(t, src, topic.TopicSI(), part))
				}
			}
			require.Equal(t, 200, topics)
			require.Equal(t, associationsOf(t, state, ref(3), fragment.AsInstance), associationsOf(t, src, ref(3), fragment.AsInstance))
		}
		for _, version := range []xtm.Version{xtm.V10, xtm.V21} {
			var inPassing, kept bytes.Buffer
			require.NoError(t, fragment.WriteSnapshot(&inPassing, state, fragment.Form{Version: version}))
			require.NoError(t, fragment.WriteSnapshot(&kept, struct{ fragment.Source }{state}, fragment.Form{Version: version}))
			require.Equal(t, kept.String(), inPassing.String())
		}
		return nil
	}))
}

func instanceOf(instance, class fragment.Ref, identified bool) *fragment.Association {
	a := &fragment.Association{Type: tmdm.PSITypeInstance, Roles: []fragment.Role{
		{Type: tmdm.PSIInstance, Player: instance}, {Type: tmdm.PSIType, Player: class},
	}}
	if identified {
		a.ItemIdentifiers = []tmdm.Locator{"http://test/" + instance}
	}
	a.Canonical()
	return a
}

func associationsOf(t *testing.T, src fragment.Source, player fragment.Ref, part fragment.Part) (forms [][]byte) {
	for a, err := range src.AssociationsOf(player, part) {
		require.NoError(t, err)
		forms = append(forms, fragment.MarshalAssociation(a))
	}
	return forms
}
