package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// axeVariable names the environment variable with the path of axe.min.js, of the npm package axe-core.
const axeVariable = "TMSHARE_AXE"

// Axe returns the source of axe-core. Where there is none, the test is skipped and says what is not checked.
func Axe(t testing.TB) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		t.Skipf("NOT CHECKED: pages with axe-core: run \"npm install axe-core\", and set %s to the path of its axe.min.js", axeVariable)
	}
	source, err := os.ReadFile(path)
	require.NoError(t, err, axeVariable)
	return string(source)
}

// Violations returns what axe-core finds wrong with the page by WCAG 2.2, levels A and AA, and by its best practices.
func (b *Browser) Violations(axe string) []string {
	b.t.Helper()
	const script = `(async () => {
		const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]});
		if (found.passes.length < 10) return ["only " + found.passes.length + " rules passed: the page was not checked"];
		return found.violations.flatMap(v => v.nodes.map(n => v.id + ": " + v.help + ": " + n.html + ": " + n.failureSummary));
	})()`
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](axe+";\n"+script, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	for i := range found {
		found[i] = strings.Join(strings.Fields(found[i]), " ")
	}
	return found
}

// Audit fails the test where the page does not keep to these rules, or is wider than the window: a narrow one and a wide one, in light and dark.
func (b *Browser) Audit(axe string) {
	b.t.Helper()
	for _, width := range []int64{360, 1000} {
		for _, dark := range []bool{false, true} {
			b.View(width, dark)
			assert.Empty(b.t, b.Violations(axe), "%s, %d wide, dark: %t", b.URL(), width, dark)
			assert.LessOrEqual(b.t, Eval[int64](b, "document.documentElement.scrollWidth"), width, "%s is wider than the window", b.URL())
		}
	}
}
