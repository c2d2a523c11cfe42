package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// Other programs check the documents of the server: feed and entry documents against the schemas of Atom, XTM 1.0
// against its DTD.

// Each kind of document is checked, so that no test passes without a document, and the check can fail.
func TestEveryKindOfDocumentIsValidatedAgainstItsSchema(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	if _, err := served.Schemas(); err != nil {
		t.Skipf("NOT CHECKED: documents against the schemas of Atom and XTM 1.0: %v", err)
	}
	n := start(t, served.DocumentSize(7))
	n.Publish("libraries", maps.Libraries)
	w := n.walk("/topicmaps")
	require.Greater(t, len(w.feeds), 10)
	pages := n.walk("/topicmaps/libraries/fragments?since=2001-01-01")
	require.Greater(t, len(pages.feeds), len(w.feeds), "and those of a paged feed")
	checked, complaints := n.Lint.Validate(t)
	assert.Empty(t, complaints)
	assert.Greater(t, checked["atom"], 50, "feed and entry documents")
	assert.Greater(t, checked["xtm1"], 50, "fragments and snapshots")
	t.Logf("validated %d Atom documents and %d XTM 1.0 documents", checked["atom"], checked["xtm1"])

	for _, broken := range []struct{ kind, document, old, new string }{
		{"atom", w.feeds[n.URL("/topicmaps")].Raw, "<updated>", "<updatd>2001</updatd><updated>"},
		{"atom", w.feeds[n.URL("/topicmaps")].Raw, `rel="self"`, `rel="self" href2="x"`},
		{"xtm1", string(n.MustGet("/topicmaps/libraries/snapshots/current").Bytes), "<topic ", "<topic href='x' "},
	} {
		require.Contains(t, broken.document, broken.old)
		l := &served.Linter{Documents: map[string][]string{broken.kind: {
			strings.Replace(broken.document, broken.old, broken.new, 1), broken.document,
		}}}
		_, complaints := l.Validate(t)
		assert.NotEmpty(t, complaints, "%s", broken.new)
	}
	l := &served.Linter{Documents: map[string][]string{"atom": {strings.ReplaceAll(w.feeds[n.URL("/topicmaps")].Raw, "alternate", "related")}}}
	_, complaints = l.Validate(t)
	assert.Contains(t, complaints, "atom-0.xml fails to validate", "Schematron")
}
