package ldes_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// ldesClient returns a command of npm's ldes-client.
func ldesClient(t testing.TB, ctx context.Context, args ...string) *exec.Cmd {
	modules := os.Getenv("TMSHARE_LDES_CLIENT")
	if modules == "" {
		t.Skip("NOT CHECKED: streams with ldes-client: run \"npm install ldes-client\", and set TMSHARE_LDES_CLIENT to the " +
			"folder node_modules")
	}
	cmd := exec.CommandContext(ctx, testenv.Command(t, "node"),
		append([]string{filepath.Join(modules, "ldes-client", "dist", "bin", "cli.js")}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// emitted runs ldes-client to its end, and returns the members that it emits, in its order, as [site.logged] has
// them.
func emitted(t testing.TB, args ...string) (lines []string, says statements) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := ldesClient(t, ctx, args...).Output()
	require.NoError(t, err, "%s", out)
	for block := range strings.SplitSeq(string(out), "\n\n") {
		if !strings.HasPrefix(block, "<") && !strings.HasPrefix(block, "_:") {
			continue // its log
		}
		line, quads := memberOf(t, block)
		lines, says = append(lines, line), append(says, quads...)
	}
	return lines, says
}

func memberOf(t testing.TB, block string) (line string, quads statements) {
	require.NoError(t, turtle.Read(strings.NewReader(block), turtle.Turtle, turtle.Options{}, func(q rdf.Quad) error {
		quads = append(quads, q)
		return nil
	}), "%s", block)
	for _, q := range quads {
		if q.Predicate.Value == isVersionOf && q.Graph.Kind == rdf.None {
			class := ""
			for _, c := range quads.objects(q.Subject, rdf.Type) {
				if strings.HasPrefix(c.Value, as) {
					class = strings.TrimPrefix(c.Value, as)
				}
			}
			return fmt.Sprint(q.Subject.Value, " ", q.Object.Value, " ", class), quads
		}
	}
	return "", quads
}

// ldes-client reads the whole log, in all notations, in order forwards and backwards. If it keeps its position, it
// reads only new members.
func TestLDESClientReadsTheLog(t *testing.T) {
	testenv.OnlyWithAll(t, "runs ldes-client")
	t.Parallel()
	n := start(t, served.DocumentSize(7))
	n.put(concepts(9, "one"))
	n.put(concepts(9, "two") + ":c0 :parts [ :in :c1 ; :and ( 1 2 ) ] .")
	n.put(concepts(4, "two") + ":c0 :parts [ :in :c1 ] .")
	root := n.URL("/topicmaps/m/ldes")
	for _, ending := range endings {
		lines, says := emitted(t, root+ending)
		require.ElementsMatch(t, n.logged(false), lines, ending)
		all, _ := n.walk("/topicmaps/m/ldes", ending)
		content := 0
		for _, m := range all {
			content += 3 + len(m.says)
		}
		require.Len(t, says, content)
	}
	lines, _ := emitted(t, "--ordered", "ascending", root)
	require.Equal(t, n.logged(false), lines)
	lines, _ = emitted(t, "--ordered", "descending", root)
	slices.Reverse(lines)
	require.ElementsMatch(t, n.logged(false), lines)
	settled := len(lines) - 7 // it does not order those of the page that has no end
	require.Equal(t, n.logged(false)[:settled], lines[:settled])
	lines, _ = emitted(t, root+"/latest")
	require.ElementsMatch(t, n.logged(true), lines)

	state := t.TempDir()
	lines, _ = emitted(t, "--save", state, root)
	before := n.logged(false)
	require.ElementsMatch(t, before, lines)
	n.put(concepts(9, "three"))
	lines, _ = emitted(t, "--save", state, root)
	require.ElementsMatch(t, n.logged(false)[len(before):], lines)

	n.MustSet("m", `{"keepFor":"1ms"}`) // members that it has not read yet are pruned meanwhile
	n.put(concepts(9, "four"))
	n.put(concepts(3, "five"))
	before = n.logged(false)
	require.Equal(t, 201, n.Post("/topicmaps/m/snapshots").StatusCode)
	require.Equal(t, 200, n.Post("/topicmaps/m/gc").StatusCode)
	lines, _ = emitted(t, "--save", state, root)
	for _, line := range n.logged(false) {
		if i := slices.Index(before, line); i >= len(before)-3 {
			require.Contains(t, lines, line)
		}
	}
	lines, _ = emitted(t, root)
	require.ElementsMatch(t, n.logged(false), lines)
}

// ldes-client that follows gets new members.
func TestLDESClientFollows(t *testing.T) {
	testenv.OnlyWithAll(t, "runs ldes-client")
	t.Parallel()
	n := start(t, served.DocumentSize(7))
	n.put(concepts(2, "one"))
	cmd := ldesClient(t, t.Context(), "--follow", "--poll-interval", "100", n.URL("/topicmaps/m/ldes"))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	got := make(chan string, 10_000)
	go func() {
		defer close(got)
		var block bytes.Buffer
		for in := bufio.NewScanner(out); in.Scan(); {
			switch line := in.Text(); {
			case line == "" && block.Len() > 0:
				got <- block.String()
				block.Reset()
			case strings.HasPrefix(line, "<"), strings.HasPrefix(line, "_:"):
				block.WriteString(line + "\n")
			}
		}
	}()
	lines := map[string]bool{} // it asks for the open page twice at a time, and may say a member twice
	upTo := func(want []string) {
		t.Helper()
		testenv.Eventually(t, func() bool {
			for len(lines) < len(want) {
				select {
				case block := <-got:
					line, _ := memberOf(t, block)
					lines[line] = true
				default:
					return false
				}
			}
			return true
		}, "members")
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(lines)))
	}
	upTo(n.logged(false))
	for _, name := range []string{"two", "three"} {
		n.put(concepts(9, name))
		n.put(concepts(4, name))
		upTo(n.logged(false))
	}
}
