package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/cli"
)

// Each message of the table in "Troubleshooting" is part of a text in the code.
func TestDocumentsQuoteMessagesOfThePrograms(t *testing.T) {
	text := readDocument(t, filepath.Join("docs", "operations.md"))
	_, table, found := strings.Cut(text, "\n## Troubleshooting\n")
	require.True(t, found)
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(messages), 10)

	code := codeOf(t)
	for _, m := range messages {
		if m[1] == "no space left on device" { // the system's own words
			continue
		}
		for part := range strings.SplitSeq(m[1], "…") {
			assert.True(t, strings.Contains(code, strings.TrimSpace(part)), "no program prints %q", m[1])
		}
	}
}

// codeOf returns the Go code of the project, without tests, packages for tests and comments. Texts that are joined of
// parts are whole.
func codeOf(t *testing.T) string {
	root := filepath.Join("..", "..")
	var code strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testkit") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") {
				code.WriteString(line)
			}
		}
		return err
	}))
	return regexp.MustCompile(`" ?\+\s+"`).ReplaceAllString(code.String(), "")
}

// docs/operations.md names all alerts, and no others.
func TestDocumentsNameAllAlerts(t *testing.T) {
	rules := readDocument(t, filepath.Join("packaging", "prometheus", "alerts.yml"))
	var defined, named []string
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		defined = append(defined, m[1])
	}
	_, section, found := strings.Cut(readDocument(t, filepath.Join("docs", "operations.md")), "\n## Monitoring\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("`(TMShare[A-Z]\\w+)`").FindAllStringSubmatch(section, -1) {
		named = append(named, m[1])
	}
	assert.ElementsMatch(t, defined, named)
}

// docs/README.md links to each document in its folder.
func TestDocumentsAreListed(t *testing.T) {
	index := readDocument(t, filepath.Join("docs", "README.md"))
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	for _, path := range paths {
		if name := filepath.Base(path); name != "README.md" {
			assert.Contains(t, index, "]("+name+")")
		}
	}
}

var update = flag.Bool("update", false, "write the reference of the commands into docs/commands.md")

// docs/commands.md has the helps of the commands. -update rewrites it.
func TestDocumentsHaveAllCommands(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString(`# Commands

What each command says of itself with ` + "`--help`" + `, of both programs. This page is made of the programs by
` + "`go test ./cmd/tmshare-server -run DocumentsHaveAllCommands -update`" + `. The [guides](README.md) show the commands at work.

## Exit codes

Both programs have the same. The help of a command has those that need saying. Several errors of one kind have its code.

| exit code | means |
| --- | --- |
`)
	for _, c := range cli.Codes {
		fmt.Fprintf(&text, "| %d | **%s**: %s |\n", c.Code, c.Short, c.Means)
	}
	text.WriteString("\n")
	for _, program := range []string{"tmshare-server", "tmshare-client"} {
		cmd := exec.Command(program, "man", "--markdown", dir)
		cmd.Env = append(os.Environ(), "HOME=~", "XDG_STATE_HOME=") // so that defaults are shown as they are for everybody
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		written, err := os.ReadFile(filepath.Join(dir, program+".md"))
		require.NoError(t, err)
		text.Write(written)
	}
	made := strings.TrimSpace(text.String()) + "\n"
	require.Greater(t, strings.Count(made, "\n## "), 60)
	var list strings.Builder // of the commands of a program, for the other one
	for _, c := range regexp.MustCompile(`(?m)^## (tmshare-\S+ \S+)\n\n(.*)\.$`).FindAllStringSubmatch(made, -1) {
		fmt.Fprintf(&list, "%s: %s\n", c[1], c[2])
	}
	words := map[string]bool{}
	for line := range strings.Lines(list.String()) {
		command, _, _ := strings.Cut(line, ":")
		words[strings.Fields(command)[1]] = true
	}
	assert.LessOrEqual(t, len(words), 45, "words that are commands of a program: put new ones below others")
	for flag, short := range map[string]string{"limit": "n", "verbose": "v", "quiet": "q"} {
		assert.NotRegexp(t, `(?m)^      --`+flag+` `, made, "--%s is -%s too", flag, short)
	}
	for path, text := range map[string]string{"docs/commands.md": made, "internal/cli/commands.txt": list.String()} {
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join("..", "..", path), []byte(text), 0o644))
		}
		if text != readDocument(t, path) {
			t.Errorf("%s is not what the programs say: run this test with -update, and read what has changed", path)
		}
	}
	assert.NotContains(t, made, "Additional Commands:", "each command is in a group")
}

// The samples of configuration files have all settings of "serve" and "watch" with their defaults, and can be read.
// -update rewrites them.
func TestSamplesOfConfigurationFilesHaveAllSettings(t *testing.T) {
	type setting struct{ Key, From, Default, Usage string }
	for program, command := range map[string]string{"tmshare-server": "serve", "tmshare-client": "watch"} {
		list := func(args ...string) (all []setting) {
			cmd := exec.Command(program, append([]string{"config", "show", command, "--json"}, args...)...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=~"}
			out, err := cmd.Output()
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(out, &all))
			return all
		}
		var sample, whole strings.Builder
		fmt.Fprintf(&sample, "# All settings of \"%s %s\", as they are by default. Take away the \"# \" before those to change.\n"+
			"# What the environment and the command line say counts more. \"%[1]s config show\" shows what is in force.\n",
			program, command)
		all := list()
		require.Greater(t, len(all), 10)
		for _, s := range all {
			if s.Key == "config" || s.Key == "json" {
				continue
			}
			assert.Equal(t, "default", s.From)
			value := strings.ReplaceAll(s.Default, "~/.local/state/tmshare", "/var/lib/tmshare")
			if value == "" {
				value = `""`
			}
			fmt.Fprintf(&sample, "\n# %s\n# %s: %s\n", s.Usage, s.Key, value)
			if s.Default != "" {
				fmt.Fprintf(&whole, "%s: %s\n", s.Key, value)
			}
		}
		path := filepath.Join("packaging", "config", program+".yaml")
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join("..", "..", path), []byte(sample.String()), 0o644))
		}
		assert.Equal(t, readDocument(t, path), sample.String(), "run this test with -update, and read what has changed")
		file := filepath.Join(t.TempDir(), "whole.yaml")
		require.NoError(t, os.WriteFile(file, []byte(whole.String()), 0o644))
		read := 0
		for _, s := range list("--config", file) {
			if strings.HasPrefix(s.From, file+":") {
				read++
			}
		}
		assert.Greater(t, read, 6)
	}
}

// The help of "serve" is short: rare settings are in a configuration file.
func TestHelpOfServeIsShort(t *testing.T) {
	_, help, found := strings.Cut(readDocument(t, "docs/commands.md"), "\nUsage:\n  tmshare-server serve ")
	require.True(t, found)
	help, _, _ = strings.Cut(help, "```")
	assert.LessOrEqual(t, strings.Count(help, "\n      --")+strings.Count(help, "\n  -"), 30)
}

// A command of the other program gets an error that names that program.
func TestCommandsOfTheOtherProgram(t *testing.T) {
	for _, other := range []struct{ program, command, want string }{
		{"tmshare-client", "import x.xtm", "tmshare-client: import is a command of tmshare-server: Publish a file as the new version of a map of a running server\nTry \"tmshare-server import --help\"\n"},
		{"tmshare-client", "serve --map m=x.xtm", "tmshare-client: serve is a command of tmshare-server: Serve the topic maps of a data folder\nTry \"tmshare-server serve --help\"\n"},
		{"tmshare-server", "sync", "tmshare-server: sync is a command of tmshare-client: Bring subscriptions up to date\nTry \"tmshare-client sync --help\"\n"},
		{"tmshare-server", "nothing", "tmshare-server: unknown command \"nothing\" for \"tmshare-server\"\n"},
	} {
		out, err := exec.Command(other.program, strings.Fields(other.command)...).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, cli.Usage, exit.ExitCode())
		assert.Equal(t, other.want, string(out))
	}
}

// The README is read in a minute.
func TestReadmeIsShort(t *testing.T) {
	assert.LessOrEqual(t, strings.Count(readDocument(t, "README.md"), "\n"), 120)
}

// mostWordsOfDocuments is the maximum number of words of the documents, without the reference that is made of the
// helps. Strings without letters and digits are not counted.
const mostWordsOfDocuments = 40_000

// The documents are short: each fact is stated once. A new paragraph replaces another one.
func TestDocumentsAreNotLong(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	all, list := 0, ""
	for _, path := range append(paths, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		if name := strings.TrimPrefix(filepath.ToSlash(path), "../../"); name != "docs/commands.md" {
			words := 0
			for field := range strings.FieldsSeq(readDocument(t, name)) {
				if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
					words++
				}
			}
			all += words
			list += fmt.Sprintf("\n%6d %s", words, name)
		}
	}
	require.Greater(t, all, mostWordsOfDocuments/2)
	assert.LessOrEqual(t, all, mostWordsOfDocuments, "say each thing once, link to what a decision says, and leave to the helps what they say:%s", list)
}

func readDocument(t *testing.T, path string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	return string(text)
}
