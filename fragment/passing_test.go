package fragment_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// A record that is seen in passing is the one that stays, also after one that had more in it.
func TestRecordsInPassingAreThoseThatStay(t *testing.T) {
	m := published(t, nil, func(m draft) {
		base(m)
		m.Named("rich", "http://rich").AddName("2", m.Topic(d), m.Topic(e)).AddVariant("v", tmdm.XSDString, m.Topic(c))
		m.Topic("http://rich").AddType(m.Topic(b))
		m.Topic("http://rich").AddType(m.Topic(c))
		m.Topic("http://rich").AddOccurrence("o", tmdm.XSDString, m.Topic(d), m.Topic(a), m.Topic(e))
		m.Associate(x, m.Topic(a), m.Topic("http://rich"), m.Topic(e))
		m.Reify(m.Associate(x, m.Topic("http://rich"), m.Topic(e)), d)
		m.Associate(x, m.Topic(e), m.Topic(e))
		require.NoError(t, tmdm.AddItemIdentifier(m.Topic("http://rich").AddType(m.Topic(e)), sp+"typing"))
	})
	passing := fragment.InPassing(m)
	require.NotEqual(t, fragment.Source(m), passing)
	forms := func(src fragment.Source) (all [][]byte) {
		for topic, err := range src.Topics() {
			require.NoError(t, err)
			all = append(all, fragment.MarshalTopic(topic))
			for _, part := range fragment.Parts {
				for a, err := range src.AssociationsOf(topic.TopicSI(), part) {
					require.NoError(t, err)
					all = append(all, []byte{byte(part)}, fragment.MarshalAssociation(a))
				}
			}
		}
		for a, err := range src.Associations() {
			require.NoError(t, err)
			all = append(all, fragment.MarshalAssociation(a))
		}
		return all
	}
	want := forms(m)
	require.Greater(t, len(want), 30)
	require.Equal(t, want, forms(passing))
	require.Equal(t, want, forms(passing), "again")

	for topic, err := range m.Topics() { // and so are fragments, which are written of such records
		require.NoError(t, err)
		one, err := passing.Topic(topic.TopicSI())
		require.NoError(t, err)
		require.Equal(t, fragment.MarshalTopic(topic), fragment.MarshalTopic(one))
		for _, v := range []xtm.Version{xtm.V10, xtm.V21} {
			for _, form := range []fragment.Form{{}, {OmitInstances: true}, {ContentOnly: true}} {
				form.Version, form.SP = v, sp
				var fromMap, fromAny bytes.Buffer
				require.NoError(t, fragment.Write(&fromMap, m, topic.TopicSI(), form))
				require.NoError(t, fragment.Write(&fromAny, struct{ fragment.Source }{m}, topic.TopicSI(), form))
				require.Equal(t, fromAny.String(), fromMap.String())
			}
		}
	}
}
