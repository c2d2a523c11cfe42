package texts_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext/pages/texts"
)

var update = flag.Bool("update", false, "add missing texts to the files of languages, and remove unused ones")

// ofTemplates returns the texts of all templates, in the order in which a reader of the folder finds them.
func ofTemplates(t *testing.T) (all []string) {
	require.NoError(t, fs.WalkDir(texts.Pages, ".", func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) == ".html" {
			source, err := fs.ReadFile(texts.Pages, file)
			require.NoError(t, err)
			keys, err := texts.Keys(string(source))
			require.NoError(t, err, file)
			all = append(all, keys...)
		}
		return err
	}))
	return all
}

// ofCode returns the texts of code: constants, and those of tables.
func ofCode(t *testing.T) (all []string) {
	file, err := parser.ParseFile(token.NewFileSet(), "words.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 && nameOf(spec.Type) == "Text" {
			text := ""
			ast.Inspect(spec.Values[0], func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok {
					part, err := strconv.Unquote(lit.Value)
					require.NoError(t, err)
					text += part
				}
				return true
			})
			all = append(all, text)
		}
		return true
	})
	require.Greater(t, len(all), 60)
	add := func(t texts.Text) { all = append(all, string(t)) }
	add(texts.Graphs)
	add(texts.Programs)
	add(texts.IsOf)
	for _, r := range texts.Relations {
		add(r.Title)
		add(r.Of)
	}
	for _, a := range texts.API {
		add(a.What)
	}
	for _, t := range slices.Concat(texts.Words, texts.Phrases) {
		add(t)
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// keys are all texts, each once.
func keys(t *testing.T) (all []string) {
	known := map[string]bool{}
	for _, key := range slices.Concat(ofTemplates(t), ofCode(t)) {
		if !known[key] {
			known[key], all = true, append(all, key)
		}
	}
	return all
}

// Each language has all texts and no others, with the same values in them, and as many forms of numbers as it has.
func TestEachLanguageHasAllTexts(t *testing.T) {
	t.Parallel()
	used := keys(t)
	files, err := filepath.Glob("languages/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		says := map[string]string{}
		require.NoError(t, json.Unmarshal(content, &says), file)
		if *update {
			require.NoError(t, os.WriteFile(file, inOrder(t, used, says), 0o644))
		}
		forms := len(strings.Fields(says[string(texts.FormsOfNumbers)]))
		for _, key := range used {
			translation := says[key]
			if !assert.NotEmpty(t, translation, "%s lacks %q. \"go test ./internal/ext/pages/texts -update\" adds it", file, key) {
				continue
			}
			assert.Equal(t, translation, strings.TrimSpace(translation), "%s: %q", file, key)
			some, want := strings.Split(translation, "|"), strings.Split(key, "|")
			if len(want) > 1 {
				assert.Len(t, some, forms, "%s: %q needs a text for each form of a number", file, key)
			}
			for _, form := range some {
				assert.ElementsMatch(t, valuesOf(want[0]), valuesOf(form), "%s: the values of %q and %q differ", file, key, form)
			}
		}
		for key := range says {
			assert.Contains(t, used, key, "%s: no page uses it. \"go test ./internal/ext/pages/texts -update\" takes it out", file)
		}
	}
}

var values = regexp.MustCompile(`\{\d+\}|%[a-z]`)

func valuesOf(text string) []string { return values.FindAllString(text, -1) }

// inOrder writes the texts of a language in the order of the folder.
func inOrder(t *testing.T, used []string, says map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("{")
	for i, key := range used {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n")
		for j, text := range []string{key, says[key]} {
			var quoted bytes.Buffer
			e := json.NewEncoder(&quoted)
			e.SetEscapeHTML(false)
			require.NoError(t, e.Encode(text))
			b.Write(bytes.TrimSpace(quoted.Bytes()))
			if j == 0 {
				b.WriteString(": ")
			}
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

var (
	actions    = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	codes      = regexp.MustCompile(`(?s)<code>.*?</code>`)
	tags       = regexp.MustCompile(`<[^>]*>|[a-z-]+="[^"]*"`)
	attributes = regexp.MustCompile(`\b(?:aria-label|title|alt|placeholder|data-label)="([^"]*)"`)
	letters    = regexp.MustCompile(`\pL{2,}`)
)

// Whatever has words in a template is marked: as text, in attributes that people hear or see, and in strings of actions
// that are shown.
func TestAllTextsOfTemplatesAreMarked(t *testing.T) {
	t.Parallel()
	require.NoError(t, fs.WalkDir(texts.Pages, ".", func(file string, _ fs.DirEntry, err error) error {
		if filepath.Ext(file) != ".html" {
			return err
		}
		source, err := fs.ReadFile(texts.Pages, file)
		require.NoError(t, err)
		rest := unmarked(t, file, string(source))
		for _, action := range actions.FindAllString(rest, -1) {
			for _, text := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(action, -1) {
				assert.NotRegexp(t, `\pL \pL|^\p{Lu}\p{Ll}+$`, text[1], "%s: %s shows a text that is not marked", file, action)
			}
		}
		rest = codes.ReplaceAllString(actions.ReplaceAllString(rest, ""), "")
		for _, a := range attributes.FindAllStringSubmatch(rest, -1) {
			assert.NotRegexp(t, letters, a[1], "%s: %q is not marked", file, a[0])
		}
		for _, text := range letters.FindAllString(tags.ReplaceAllString(rest, " "), -1) {
			assert.Fail(t, "a text is not marked with [[ and ]]", "%s: %q", file, text)
		}
		return nil
	}))
}

// unmarked returns a source without its marked texts.
func unmarked(t *testing.T, file, source string) string {
	for {
		end := strings.Index(source, "]]")
		begin := strings.LastIndex(source[:max(end, 0)], "[[")
		if end < 0 || begin < 0 {
			require.Equal(t, -1, end, "%s: a mark has no beginning", file)
			return source
		}
		source = source[:begin] + source[end+2:]
	}
}

// A text has numbers as placeholders; a translation puts them elsewhere, and html/template escapes the values there.
func TestTextsWithValues(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`<p>[[Edit <a href="{{.}}">this</a> now]]</p>`:         "Edit {1}this{2} now",
		`[[{{count .N}} <b>x</b>]]`:                            "{1} {2}x{3}",
		`[[a <code>b [c]</code> d]]`:                           "a {1} d",
		"[[two\n\tlines]]":                                     "two lines",
		`{{line . "[[Title: it]]"}}`:                           "Title: it",
		`[[in {{range .}}{{if .}}, {{end}}{{.}}{{end}} only]]`: "in {1} only",
		`[[{{count .}} topic|{{count .}} topics]]`:             "{1} topic|{1} topics",
		`[[not {{if .}}[[nested]]{{end}} here]]`:               "nested; not {1} here",
	} {
		keys, err := texts.Keys(source)
		require.NoError(t, err, source)
		assert.Equal(t, want, strings.Join(keys, "; "), source)
	}
	for _, source := range []string{"[[never ends", "[[a {{if .}} b]]", "[[one|two]]", "[[a < b]]"} {
		_, err := texts.Keys(source)
		assert.Error(t, err, source)
	}
}
