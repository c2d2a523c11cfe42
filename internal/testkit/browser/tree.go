package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Tree returns the accessibility tree of the page, as for screen readers: a line for each element, with its role and
// name.
func (b *Browser) Tree() string {
	b.t.Helper()
	var tree accessibility.GetFullAXTreeResult
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) (err error) {
		tree, err = cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		return err
	})))
	byID := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range tree.Nodes {
		byID[n.NodeID] = n
	}
	var out strings.Builder
	var write func(n *accessibility.Node, depth int)
	write = func(n *accessibility.Node, depth int) {
		role := textOf(n.Role)
		switch role {
		case "StaticText", "InlineTextBox", "LineBreak", "ListMarker":
			return
		}
		// A form without a name is no landmark (HTML-AAM): only some versions of the browser list it.
		if !n.Ignored && role != "none" && role != "generic" && (role != "form" || textOf(n.Name) != "") {
			out.WriteString(strings.TrimRight(fmt.Sprintf("%s%s %s", strings.Repeat("  ", depth), role, textOf(n.Name)), " ") +
				"\n")
			depth++
		}
		for _, child := range n.ChildIDs {
			if c := byID[child]; c != nil {
				write(c, depth)
			}
		}
	}
	if len(tree.Nodes) > 0 {
		write(tree.Nodes[0], 0)
	}
	return out.String()
}

func textOf(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var text string
	_ = json.Unmarshal(v.Value, &text) // values other than text are no names
	return strings.Join(strings.Fields(text), " ")
}
