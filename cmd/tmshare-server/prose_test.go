package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mostWords is the maximum number of words in a sentence.
const mostWords = 25

// sentence is one of a text, and where it begins.
type sentence struct {
	where string
	words []string
}

// In documents, helps and messages, no sentence has more than mostWords words, and no word stands twice in a row.
func TestSentencesAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	var all []sentence
	count := func(from string, minimum int, found []sentence) {
		assert.Greater(t, len(found), minimum, "sentences of %s", from)
		all = append(all, found...)
	}
	var users, developers, helps []sentence
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(name) != ".md":
		case name == filepath.Join("docs", "commands.md"):
			helps = sentencesOf(name, helpsIn(readDocument(t, name)), clause)
		case isForDevelopers.MatchString(filepath.ToSlash(name)):
			developers = append(developers, sentencesOf(name, paragraphsOf(readDocument(t, name)), clause)...)
		default:
			users = append(users, sentencesOf(name, paragraphsOf(readDocument(t, name)), fullStop)...)
		}
		return nil
	}))
	count("documents for users", 1000, users)
	count("documents for developers", 1000, developers)
	count("helps of commands", 500, helps)
	count("messages", 500, messagesOf(t, root))
	for _, s := range all {
		assert.LessOrEqual(t, len(s.words), mostWords, "%s: %d words: %s", s.where, len(s.words), strings.Join(s.words, " "))
		for i := range len(s.words) - 1 {
			word := s.words[i]
			if isWord.MatchString(word) && word == s.words[i+1] {
				t.Errorf("%s: %q stands twice in: %s", s.where, word, strings.Join(s.words, " "))
			}
		}
	}
}

var (
	// Documents that list things, one after the other. There, and in helps and messages, a colon or a semicolon ends a
	// sentence too.
	isForDevelopers = regexp.MustCompile(`^(CHANGELOG|CONTRIBUTING|docs/(architecture|performance|specs|decisions/.*)|bench/figures)\.md$`)

	fullStop = regexp.MustCompile(`[.!?]["”)*_]*(\s+|$)`)
	clause   = regexp.MustCompile(`[.!?:;]["”)*_]*(\s+|$)`)
	isWord   = regexp.MustCompile(`^\pL+$`)

	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	webAddress = regexp.MustCompile(`<?https?://[^\s>]+>?`)
	listItem   = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
)

// paragraph is a piece of text whose sentences may continue from line to line.
type paragraph struct {
	line int
	text string
}

func sentencesOf(path string, paragraphs []paragraph, end *regexp.Regexp) (all []sentence) {
	for _, p := range paragraphs {
		text := webAddress.ReplaceAllString(link.ReplaceAllString(inlineCode.ReplaceAllString(p.text, "'code'"), "$1"), "'URL'")
		for _, s := range end.Split(text, -1) {
			if words := strings.Fields(s); len(words) > 0 {
				all = append(all, sentence{path + ":" + strconv.Itoa(p.line), words})
			}
		}
	}
	return all
}

// paragraphsOf returns the paragraphs, the items of lists and the cells of tables of a document in Markdown.
func paragraphsOf(text string) (all []paragraph) {
	inCode, inParagraph := false, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			inCode, inParagraph = !inCode, false
		case inCode:
		case trimmed == "", strings.HasPrefix(trimmed, "#"):
			inParagraph = false
		case strings.HasPrefix(trimmed, "|"):
			for _, cell := range strings.Split(strings.Trim(trimmed, "|"), "|") {
				all = append(all, paragraph{i + 1, cell})
			}
			inParagraph = false
		case inParagraph && !listItem.MatchString(line):
			all[len(all)-1].text += " " + trimmed
		default:
			all = append(all, paragraph{i + 1, listItem.ReplaceAllString(line, "")})
			inParagraph = true
		}
	}
	return all
}

// columns are those of a table: words with more than a space between them.
var columns = regexp.MustCompile(`\S {2,}\S`)

var flagLine = regexp.MustCompile(`^ +(-\w, )?--[\w-]+( \S+)* {2,}`)

// helpsIn returns the paragraphs of helps, and the descriptions of flags. Usage lines, examples and lists of commands
// are no sentences.
func helpsIn(text string) (all []paragraph) {
	inHelp, inParagraph := false, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case line == "```text", line == "Flags:", line == "Global Flags:":
			inHelp, inParagraph = true, false
		case line == "```", line == "Usage:", line == "Examples:", line == "Available Commands:":
			inHelp = false
		case !inHelp || trimmed == "":
			inParagraph = false
		case flagLine.MatchString(line):
			all = append(all, paragraph{i + 1, flagLine.ReplaceAllString(line, "")})
			inParagraph = true
		case inParagraph && !strings.HasPrefix(trimmed, "- ") && !columns.MatchString(trimmed):
			all[len(all)-1].text += " " + trimmed
		default:
			all = append(all, paragraph{i + 1, trimmed})
			inParagraph = true
		}
	}
	return all
}

// messagesOf returns the sentences of errors: the texts that are given to errors.New, fmt.Errorf and their like.
func messagesOf(t *testing.T, root string) (all []sentence) {
	makers := map[string]bool{"New": true, "Errorf": true, "Problemf": true, "usage": true}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			for _, arg := range call.Args {
				if text, ok := arg.(*ast.BasicLit); ok && makers[name] && text.Kind == token.STRING {
					value, err := strconv.Unquote(text.Value)
					require.NoError(t, err)
					at := files.Position(text.Pos())
					all = append(all, sentencesOf(at.Filename, []paragraph{{at.Line, value}}, clause)...)
				}
			}
			return true
		})
		return nil
	}))
	return all
}
