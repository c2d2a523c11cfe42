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

// Axe returns the source of axe-core. If it is not installed, it logs the checks that it leaves out, and
// returns "".
func Axe(t testing.TB) string {
	t.Helper()
	path := os.Getenv(axeVariable)
	if path == "" {
		t.Logf("NOT CHECKED: pages with axe-core: run \"npm install axe-core\", and set %s to the path of its axe.min.js",
			axeVariable)
		return ""
	}
	source, err := os.ReadFile(path)
	require.NoError(t, err, axeVariable)
	return string(source)
}

// Violations returns the violations of WCAG 2.2, levels A and AA, and of axe-core's best practices in the page.
func (b *Browser) Violations(axe string) []string {
	b.t.Helper()
	const script = `(async () => {
		const found = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa",
			"best-practice"]});
		if (found.passes.length < 10) return ["only " + found.passes.length + " rules passed: the page was not checked"];
		return found.violations.flatMap(v => v.nodes.map(n => v.id + ": " + v.help + ": " + n.html + ": " +
			n.failureSummary));
	})()`
	if !Eval[bool](b, `typeof axe !== "undefined"`) {
		Eval[bool](b, axe+";\ntrue")
	}
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](script, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err)
	for i := range found {
		found[i] = strings.Join(strings.Fields(found[i]), " ")
	}
	return found
}

// Audit fails the test if the page violates these rules, or is wider than the window: a narrow and light one, and a
// wide and dark one. The rules depend on the width or on the colours, not on both.
func (b *Browser) Audit(axe string) {
	b.t.Helper()
	for _, dark := range []bool{false, true} {
		width := int64(360)
		if dark {
			width = 1000
		}
		b.View(width, dark)
		if axe != "" {
			assert.Empty(b.t, b.Violations(axe), "%s, %d wide, dark: %t", b.URL(), width, dark)
		}
		assert.LessOrEqual(b.t, Eval[int64](b, "document.documentElement.scrollWidth"), width, "%s is wider than the window",
			b.URL())
	}
}
