package nodepages

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
)

// The faults that a command has found in a copy are shown; they are no failure of the command.
func TestPagesShowWhatCommandsFind(t *testing.T) {
	for code, shown := range map[int]bool{cli.OK: true, cli.Quarantined: true, cli.Differs: true, cli.Failed: false, cli.Usage: false} {
		out, err := printed(t.Context(), &control.Request{}, nil, func(_ context.Context, r *control.Request, _ *extension.Holding) int {
			fmt.Fprint(r.Stdout, "found")
			return code
		})
		assert.Equal(t, shown, err == nil, code)
		assert.Equal(t, shown, string(out) == "found", code)
	}
}
