package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
)

// "go test ./... -long" fails in a package that does not know the flag, so every
// package with tests imports the one that defines it.
func TestEveryTestPackageTakesTheFlags(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", module+"/...").Output()
	require.NoError(t, err)
	tested := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath                string
			TestGoFiles, XTestGoFiles []string
			TestImports, XTestImports []string
		}
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 {
			continue
		}
		tested++
		assert.Contains(t, slices.Concat(p.TestImports, p.XTestImports), module+"/internal/testenv", "%s: import it in a test, as _ if need be", p.ImportPath)
	}
	assert.Greater(t, tested, 25)
}
