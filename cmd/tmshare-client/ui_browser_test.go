//go:build !race

package main

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	chromium "github.com/tmshare/tmshare/internal/testkit/browser"
)

// In a real browser the pages keep to WCAG 2.2 AA, and lead from the node to a topic.
func TestUIInARealBrowser(t *testing.T) {
	axe := chromium.Axe(t)
	b := chromium.Start(t)
	o, n := newOrigin(t, version("1"), "egov", "libraries"), newNode(t)
	n.run("subscribe", o.collection("egov"))
	n.run("sync")
	root, path, _ := n.ui()
	b.Visit(root + path)
	assert.Equal(t, "Node", b.Title())
	b.Audit(axe)
	b.Follow("egov")
	b.Audit(axe)
	b.Visit(root)
	b.Fill("Subject identifier", "http://psi.example.org/a")
	require.Equal(t, http.StatusOK, b.Press("Find the topic in all maps"))
	assert.Contains(t, b.Text(), "A 1")
	b.Audit(axe)
	assert.Empty(t, b.Complaints())
}
