package stream_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/xtm"
)

// FuzzRead checks that any document is an error or becomes records of a size that its length bounds, and that a
// streamed snapshot has the same content as one that is read as a whole.
func FuzzRead(f *testing.F) {
	for _, hostile := range testhostile.Amplifying {
		f.Add(hostile(8000, 20))
		f.Add(hostile(9<<10, 2))
	}
	f.Add(testhostile.Scope(100, 100, 20))
	f.Add(testhostile.Association(50))
	f.Add(testhostile.Identifiers(20, "n"))
	f.Add(testhostile.Hub(3))
	f.Fuzz(func(t *testing.T, document string) {
		o := xtm.Options{Base: sp, DropClashes: true, Limits: xtm.Limits{Growth: 1 << 16, Expansion: 1 << 16}}
		whole, failed := readWhole(document, o)
		streamed, err := streamed(document, o)
		if err == nil && failed == nil {
			require.Equal(t, whole, streamed)
		}
		if err == nil {
			require.LessOrEqual(t, len(strings.Join(streamed, "")), 1<<20+100*len(document))
		}
		one, err := fragment.ReadRecord(t.Context(), strings.NewReader(document), o)
		var ambiguous *fragment.AmbiguousError
		if err == nil {
			require.NotNil(t, one.Topic)
		} else if errors.As(err, &ambiguous) {
			require.NoError(t, failed)
		}
	})
}
