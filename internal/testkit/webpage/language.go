package webpage

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

var parts = regexp.MustCompile(`\{\d+\}|%[a-z]|[|:;,.()“”„]`)

// englishTexts are the texts whose German translation differs.
var englishTexts = sync.OnceValues(func() (map[string]bool, error) {
	all, german := map[string]bool{}, map[string]bool{}
	add := func(text texts.Text) {
		for _, part := range parts.Split(texts.For("de", nil).Say(text), -1) {
			german[strings.TrimSpace(part)] = true
		}
		for _, part := range parts.Split(string(text), -1) {
			if part = strings.TrimSpace(part); len(part) > 2 {
				all[part] = true
			}
		}
	}
	for _, text := range slices.Concat(texts.Words, texts.Phrases, texts.FirstRelations) {
		add(text)
	}
	err := fs.WalkDir(texts.Pages, ".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		source, err := fs.ReadFile(texts.Pages, file)
		if err != nil {
			return err
		}
		keys, err := texts.Keys(string(source))
		for _, key := range keys {
			add(texts.Text(key))
		}
		return err
	})
	for part := range german {
		delete(all, part)
	}
	return all, err
})

// EnglishInGerman returns the English texts in a German page, except the content of maps, and text marked as another
// language.
func EnglishInGerman(t testing.TB, page []byte) []string {
	t.Helper()
	english, err := englishTexts()
	require.NoError(t, err)
	require.Greater(t, len(english), 400)
	root, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	return englishIn(root, english)
}

func englishIn(node *html.Node, english map[string]bool) (found []string) {
	for _, a := range node.Attr {
		switch {
		case a.Key == "lang" && a.Val != "" && a.Val != "de", a.Key == "class" && a.Val == "notation":
			return nil
		case slices.Contains([]string{"aria-label", "title", "data-label", "placeholder"}, a.Key) && english[a.Val]:
			found = append(found, a.Val)
		}
	}
	switch {
	case node.Type == html.ElementNode &&
		slices.Contains([]string{"bdi", "code", "pre", "head", "h1", "textarea", "option"}, node.Data):
		return nil
	case node.Type == html.TextNode:
		for _, part := range parts.Split(node.Data, -1) {
			if part = strings.Join(strings.Fields(part), " "); english[part] {
				found = append(found, part)
			}
		}
	}
	for child := range node.ChildNodes() {
		found = append(found, englishIn(child, english)...)
	}
	return found
}
