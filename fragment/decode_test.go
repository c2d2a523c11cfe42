package fragment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testenv"
)

// A decoder reads one record after the other as if each were the only one, also behind bytes that are no record.
func TestADecoderReadsRecordAfterRecord(t *testing.T) {
	testenv.Check(t, 50, 200, func(t *rapid.T) {
		var d fragment.Decoder
		for range 5 {
			stored := fragment.MarshalTopic(genTopic.Draw(t, "topic"))
			topic, err := d.Topic(stored)
			require.NoError(t, err)
			require.Equal(t, stored, fragment.MarshalTopic(topic))
			_, err = d.Topic(stored[:rapid.IntRange(0, len(stored)-1).Draw(t, "cut")])
			require.ErrorIs(t, err, fragment.ErrCorrupt)

			stored = fragment.MarshalAssociation(genAssociation.Draw(t, "association"))
			association, err := d.Association(stored)
			require.NoError(t, err)
			require.Equal(t, stored, fragment.MarshalAssociation(association))
			require.Equal(t, string(association.Players()[0]), string(fragment.LeastPlayer(stored)))
			_, err = d.Association(stored[:rapid.IntRange(0, len(stored)-1).Draw(t, "cut")])
			require.ErrorIs(t, err, fragment.ErrCorrupt)
		}
	})
}

func TestBytesThatAreNoAssociationHaveNoPlayer(t *testing.T) {
	for _, stored := range [][]byte{nil, {0}, {3, 0, 0, 0}, {4, 0, 0, 0, 0}, {5, 0, 0, 0, 1, 0}, {1, 200}, {4, 0xff, 0xff, 0xff, 0xff}} {
		require.Nil(t, fragment.LeastPlayer(stored), "%v", stored)
		_, err := fragment.UnmarshalAssociation(stored)
		require.ErrorIs(t, err, fragment.ErrCorrupt)
	}
}
