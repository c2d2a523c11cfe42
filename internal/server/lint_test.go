package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// What the server publishes is checked by somebody else's program: feed and
// entry documents against the schemas of Atom, XTM 1.0 against its DTD.

// schemas returns the folder of published schemas, which stands beside the
// repository where there is one, or why nothing can be checked.
var schemas = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		folder := filepath.Join(dir, "shared", "schemas")
		if _, err := os.Stat(filepath.Join(folder, "atom.rng")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no folder shared/schemas above the package")
		}
		dir = parent
	}
})

// linter collects the documents that a test gets, each once, and validates them
// when the test ends.
type linter struct {
	mu        sync.Mutex
	documents map[string][]string // kind → documents
	seen      map[string]bool
}

func newLinter(t testing.TB) *linter {
	l := &linter{documents: map[string][]string{}, seen: map[string]bool{}}
	t.Cleanup(func() {
		if _, err := schemas(); err != nil {
			t.Logf("NOT CHECKED: documents against the schemas of Atom and XTM 1.0: %v", err)
			return
		}
		_, complaints := l.validate(t)
		assert.Empty(t, complaints)
	})
	return l
}

func (l *linter) add(t testing.TB, a answer) {
	kind := map[string]string{"application/atom+xml": "atom", "application/xtm1+xml": "xtm1"}[a.mediaType()]
	if kind == "" && a.mediaType() != resourcesync.MediaTypeXML {
		return
	}
	document := string(a.plain(t))
	switch {
	case kind != "":
	case strings.Contains(document, "<sitemapindex "):
		kind = "siteindex11"
	case strings.Contains(document, "<url>"): // the schemas allow none without any
		kind = "sitemap11"
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[document] {
		l.seen[document] = true
		l.documents[kind] = append(l.documents[kind], document)
	}
}

// validate returns how many documents of each kind it has checked, and what
// xmllint says of those that are wrong.
func (l *linter) validate(t testing.TB) (checked map[string]int, complaints string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := schemas()
	require.NoError(t, err)
	checked = map[string]int{}
	dir, err := os.MkdirTemp("", "lint")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for kind, documents := range l.documents {
		var files []string
		for i, d := range documents {
			file := filepath.Join(dir, fmt.Sprintf("%s-%d.xml", kind, i))
			require.NoError(t, os.WriteFile(file, []byte(d), 0o600))
			files = append(files, file)
		}
		for batch := range slices.Chunk(files, 500) {
			switch kind {
			case "atom":
				complaints += xmllint(t, batch, "--relaxng", filepath.Join(folder, "atom.rng"))
				complaints += xmllint(t, batch, "--schematron", filepath.Join(folder, "atom.sch"))
			case "xtm1":
				complaints += xmllint(t, batch, "--dtdvalid", filepath.Join(folder, "xtm1.dtd"))
			default:
				complaints += xmllint(t, batch, "--schema", filepath.Join(folder, "resourcesync", "joint-"+kind+".xsd"))
			}
		}
		checked[kind] = len(files)
	}
	return checked, complaints
}

// xmllint returns what is wrong with files, or "".
func xmllint(t testing.TB, files []string, args ...string) string {
	t.Helper()
	args = append([]string{"--noout", "--nonet"}, args...)
	out, err := exec.CommandContext(context.Background(), "xmllint", append(args, files...)...).CombinedOutput()
	// Every file must have been looked at: xmllint says which of them validate,
	// except with a DTD, where it says nothing.
	if validates := bytes.Count(out, []byte(" validates\n")); err == nil && args[2] != "--dtdvalid" && validates != len(files) {
		return fmt.Sprintf("%d of %d files validate:\n%s", validates, len(files), out)
	}
	if err == nil {
		return ""
	}
	var wrong []string
	for line := range strings.Lines(string(out)) {
		if !strings.HasSuffix(line, " validates\n") {
			wrong = append(wrong, line)
		}
	}
	return err.Error() + ":\n" + strings.Join(wrong[:min(len(wrong), 40)], "")
}

// Every kind of document is checked, so that no test passes by having nothing
// to check, and the check can fail.
func TestEveryKindOfDocumentIsValidatedAgainstItsSchema(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	if _, err := schemas(); err != nil {
		t.Skipf("NOT CHECKED: documents against the schemas of Atom and XTM 1.0: %v", err)
	}
	n := start(t, documentSize(7))
	n.publish("libraries", maps.Libraries)
	w := n.walk("/topicmaps")
	require.Greater(t, len(w.feeds), 10)
	pages := n.walk("/topicmaps/libraries/fragments?since=2001-01-01")
	require.Greater(t, len(pages.feeds), len(w.feeds), "and those of a paged feed")
	checked, complaints := n.lint.validate(t)
	assert.Empty(t, complaints)
	assert.Greater(t, checked["atom"], 50, "feed and entry documents")
	assert.Greater(t, checked["xtm1"], 50, "fragments and snapshots")
	t.Logf("validated %d Atom documents and %d XTM 1.0 documents", checked["atom"], checked["xtm1"])

	for _, broken := range []struct{ kind, document, old, new string }{
		{"atom", w.feeds[n.url("/topicmaps")].raw, "<updated>", "<updatd>2001</updatd><updated>"},
		{"atom", w.feeds[n.url("/topicmaps")].raw, `rel="self"`, `rel="self" href2="x"`},
		{"xtm1", string(n.mustGet("/topicmaps/libraries/snapshots/current").body), "<topic ", "<topic href='x' "},
	} {
		require.Contains(t, broken.document, broken.old)
		l := &linter{documents: map[string][]string{broken.kind: {
			strings.Replace(broken.document, broken.old, broken.new, 1), broken.document,
		}}}
		_, complaints := l.validate(t)
		assert.NotEmpty(t, complaints, "%s", broken.new)
	}
	l := &linter{documents: map[string][]string{"atom": {strings.ReplaceAll(w.feeds[n.url("/topicmaps")].raw, "alternate", "related")}}}
	_, complaints = l.validate(t)
	assert.Contains(t, complaints, "atom-0.xml fails to validate", "Schematron")
}
