package main

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/triplestore"
)

// TestReadme runs what the README shows, and TestGuides what the guides show: the
// blocks of a document that are marked "console", as one session of a shell in the
// clone. A line that begins with "$ " is a command, the lines below it are what it
// prints: "…" stands for anything within a line, and alone on a line for any lines.
// A command after which nothing is shown may print anything. All must succeed.
func TestReadme(t *testing.T) {
	testenv.SkipUnderRace(t)
	runDocument(t, "README.md")
}

func TestGuides(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "all guides are run")
	paths, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	run := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		if len(consoleBlocks(string(text))) == 0 {
			continue
		}
		run++
		guide := filepath.Base(path)
		t.Run(guide, func(t *testing.T) { runDocument(t, filepath.Join("docs", guide)) })
	}
	require.GreaterOrEqual(t, run, 8)
}

// Documents use this folder and this address; the tests use others.
const shownFolder = "/tmp/tmshare"

var shownAddresses = []string{"127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:8082"}

// setUp matches commands that the test skips: the clone and the programs exist.
var setUp = regexp.MustCompile(`^(git clone|go install|export PATH)`)

// step is a command of a document with its output.
type step struct {
	line    int
	command string
	output  []string
}

func runDocument(t *testing.T, path string) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	require.NoError(t, err)
	commands := consoleBlocks(string(text))
	require.NotEmpty(t, commands, "%s shows no command", path)

	dir := t.TempDir()
	shown, used := []string{shownFolder, dir}, []string{dir, shownFolder}
	var free []string
	for range shownAddresses {
		free = append(free, freeAddress(t))
	}
	slices.Sort(free) // sources are shown in the order of their prefixes
	for i, address := range shownAddresses {
		shown, used = append(shown, address, free[i]), append(used, free[i], address)
	}
	if strings.Contains(string(text), "--sparql-update http://"+shownAddresses[2]) {
		triplestore.New(t, free[2])
	}
	ours, theirs := strings.NewReplacer(shown...), strings.NewReplacer(used...)
	sh := startShell(t, dir)
	for _, c := range commands {
		if setUp.MatchString(c.command) {
			continue
		}
		printed, code := sh.run(t, ours.Replace(c.command))
		printed = theirs.Replace(printed)
		where := fmt.Sprintf("%s:%d: %s", path, c.line, c.command)
		require.Zero(t, code, "%s\n%s", where, printed)
		if len(c.output) > 0 {
			assert.Regexp(t, pattern(c.output), printed, where)
		}
	}
}

// consoleBlocks returns the commands of the blocks marked "console".
func consoleBlocks(text string) (commands []step) {
	inBlock := false
	for i, line := range strings.Split(text, "\n") {
		last := len(commands) - 1
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = line == "```console"
		case !inBlock:
		case strings.HasPrefix(line, "$ "):
			commands = append(commands, step{line: i + 1, command: line[2:]})
		case last >= 0 && strings.HasSuffix(commands[last].command, `\`):
			commands[last].command += "\n" + line
		case last >= 0:
			commands[last].output = append(commands[last].output, line)
		}
	}
	return commands
}

// pattern returns the regular expression of an output.
func pattern(output []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for _, line := range output {
		if line == "…" {
			b.WriteString(`(.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`)
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// shell is a session of bash, in which programs continue in the background.
type shell struct {
	in  io.Writer
	out *bufio.Reader
}

func startShell(t *testing.T, dir string) *shell {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NOT CHECKED: there is no bash to run the document with")
	}
	cmd := exec.Command(bash, "--noprofile", "--norc")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "LC_ALL=C.UTF-8")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	hung := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill(); _ = out.Close() })
	t.Cleanup(func() {
		fmt.Fprintln(in, "kill $(jobs -p) 2>/dev/null; wait") // what a test that failed has left
		_ = in.Close()
		_ = cmd.Wait()
		hung.Stop()
		_ = out.Close()
	})
	return &shell{in, bufio.NewReader(out)}
}

// run runs a command and returns its output, and its exit code.
func (s *shell) run(t *testing.T, command string) (printed string, code int) {
	const end = "\x1e" // nothing else prints it
	fmt.Fprintf(s.in, "{ %s\n} </dev/null\nprintf '%s%%d\\n' $?\n", command, end)
	for {
		line, err := s.out.ReadString('\n')
		require.NoError(t, err, "the shell ended at: %s\n%s", command, printed)
		before, last, ended := strings.Cut(line, end)
		printed += before
		if ended {
			_, err := fmt.Sscan(last, &code)
			require.NoError(t, err)
			return printed, code
		}
	}
}

// Links between the documents lead to files, and to headings, that are there.
func TestLinksBetweenDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	require.NoError(t, err)
	paths = append(append(paths, decisions...), filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md"), filepath.Join(root, "SECURITY.md"))
	anchors := map[string]map[string]bool{}
	texts := map[string]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		texts[path], anchors[path] = string(text), map[string]bool{}
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
			anchors[path][anchor(heading[1])] = true
		}
	}
	found := 0
	for path, text := range texts {
		for _, link := range regexp.MustCompile(`\]\(([^):]*)\)`).FindAllStringSubmatch(text, -1) {
			file, heading, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
				_, err := os.Stat(target) // a file or a folder
				assert.NoError(t, err, "%s links to %s", path, link[1])
			}
			if heading != "" {
				assert.True(t, anchors[target][heading], "%s links to %s: there is no such heading", path, link[1])
			}
			found++
		}
	}
	assert.Greater(t, found, 20)
}

// The Go files, and the tests, that documents name are there. The name of a file may begin at any folder of the path.
func TestDocumentsNameFilesThatAreThere(t *testing.T) {
	root := filepath.Join("..", "..")
	known := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		for rest, more := filepath.ToSlash(path), strings.HasSuffix(path, ".go"); more; _, rest, more = strings.Cut(rest, "/") {
			known[rest] = true
		}
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, name := range test.FindAllStringSubmatch(string(text), -1) {
				known[name[1]] = true
			}
		}
		return err
	}))
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	found := 0
	for _, path := range documents {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(?:([\\w/.-]+\\.go)|(?:\\w+\\.)?((?:Test|Fuzz)\\w+))`").FindAllStringSubmatch(string(text), -1) {
			assert.True(t, known[name[1]+name[2]], "%s names %s", path, name[0])
			found++
		}
	}
	assert.Greater(t, found, 200)
}

// anchor returns the name under which a heading can be linked to.
func anchor(heading string) string {
	heading = strings.ToLower(strings.ReplaceAll(heading, "`", ""))
	return strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(heading, ""), " ", "-")
}
