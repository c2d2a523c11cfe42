package datafolder

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// A restore killed at its beginning leaves a folder that is not taken for a new one.
func TestAFolderThatIsRestoredAppearsWithItsIdentity(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(dir string) error{
		"missing": func(string) error { return nil },
		"empty":   func(dir string) error { return os.Mkdir(dir, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, before(dir))
			o := Options{Dir: dir, Access: Restore, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, markRestored(o)) // and no further step
			for _, access := range []Access{Create, Write, Read, Restore} {
				o.Access = access
				_, err := Lock(o)
				require.ErrorContains(t, err, "was interrupted, or is under way: if none is, remove the folder, and restore or move again")
			}
			siblings, err := os.ReadDir(filepath.Dir(dir))
			require.NoError(t, err)
			require.Len(t, siblings, 1)
		})
	}
}
