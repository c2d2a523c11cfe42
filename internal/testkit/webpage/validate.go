package webpage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// validatorVariable names the environment variable with the folder of the npm package html-validate.
const validatorVariable = "TMSHARE_HTML_VALIDATE"

// rules are those of the standard of HTML, as html-validate names them.
const rules = `{"root": true, "extends": ["html-validate:standard"]}`

// Validator holds pages to the standard of HTML, all of them in one run. It passes over pages in which each element
// stands as in one that it has: a crawl meets thousands.
type Validator struct {
	t      testing.TB
	folder string
	pages  map[string]string // addresses by files
	added  int
	known  map[place]bool
}

// place is the context of an element: its parent, the elements before it, and its attributes.
type place struct{ parent, before, element, attributes string }

// NewValidator returns one that looks at its pages when the test ends.
func NewValidator(t testing.TB) *Validator {
	v := &Validator{t: t, folder: t.TempDir(), pages: map[string]string{}, known: map[place]bool{}}
	t.Cleanup(v.check)
	return v
}

// Add adds the page at an address.
func (v *Validator) Add(address string, body []byte) {
	v.added++
	if !v.isNew(body) {
		return
	}
	file := filepath.Join(v.folder, fmt.Sprintf("%04d.html", len(v.pages)))
	require.NoError(v.t, os.WriteFile(file, body, 0o600))
	v.pages[file] = address
}

// isNew reports whether an element of a page has a place that no earlier one had.
func (v *Validator) isNew(body []byte) (found bool) {
	root, err := html.Parse(bytes.NewReader(body))
	require.NoError(v.t, err)
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		at := place{parent: node.Parent.Data, element: node.Data}
		for s := node.PrevSibling; s != nil; s = s.PrevSibling {
			if s.Type == html.ElementNode {
				at.before = s.Data
				break
			}
		}
		for _, a := range node.Attr {
			at.attributes += " " + a.Key
		}
		found = found || !v.known[at]
		v.known[at] = true
	}
	return found
}

// Faults returns the errors in the pages, and false if no validator is installed.
func (v *Validator) Faults() (faults []string, checked bool) {
	path := os.Getenv(validatorVariable)
	if path == "" {
		return nil, false
	}
	config := filepath.Join(v.folder, "rules.json")
	require.NoError(v.t, os.WriteFile(config, []byte(rules), 0o600))
	run := exec.Command("node", filepath.Join(path, "bin", "html-validate.mjs"), "--config", config,
		"--formatter", "json", filepath.Join(v.folder, "*.html"))
	run.Stderr = os.Stderr
	out, err := run.Output()
	var failed *exec.ExitError
	if !errors.As(err, &failed) { // it fails where anything is wrong
		require.NoError(v.t, err)
	}
	var results []struct {
		FilePath string
		Messages []struct {
			RuleID  string
			Message string
			Line    int
			Column  int
		}
	}
	require.NoError(v.t, json.Unmarshal(out, &results), "%s", out)
	for _, r := range results {
		for _, m := range r.Messages {
			faults = append(faults, fmt.Sprintf("%s:%d:%d: %s (%s)", v.pages[r.FilePath], m.Line, m.Column, m.Message, m.RuleID))
		}
	}
	return faults, true
}

func (v *Validator) check() {
	faults, checked := v.Faults()
	if !checked {
		v.t.Logf("NOT CHECKED: pages by the standard of HTML: run \"npm install html-validate\", and set %s to its folder",
			validatorVariable)
		return
	}
	v.t.Logf("%d pages validated, of %d: the others have no other elements", len(v.pages), v.added)
	for i, f := range faults {
		if i == 20 {
			assert.Fail(v.t, fmt.Sprintf("and %d more", len(faults)-i))
			break
		}
		assert.Fail(v.t, f)
	}
}
