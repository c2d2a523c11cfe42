package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// The search index of docs/changes.md has the topics of the subscription after each version of it: those that are
// added, changed and deleted, and all of them after a reset.
func TestSearchIndexOfTheGuide(t *testing.T) {
	testenv.OnlyWithAll(t, "it needs a search engine")
	testenv.Command(t, "groonga")
	testenv.Command(t, "python3")
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "changes.md"))
	require.NoError(t, err)
	server, engine := freeAddress(t), freeAddress(t)
	_, port, _ := strings.Cut(engine, ":")
	guide := strings.NewReplacer("10041", port, "egov", "words").Replace(string(text))
	blocks := regexp.MustCompile("(?s)```(?:sh|python)\n(.*?)```").FindAllStringSubmatch(guide, 3)
	begin, program, feed := blocks[0][1], blocks[1][1], blocks[2][1]

	dir := t.TempDir()
	sh := startShell(t, dir)
	run := func(command string) string {
		printed, code := sh.run(t, command)
		require.Zero(t, code, "%s\n%s", command, printed)
		return printed
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.py"), []byte(program), 0o600))
	run("cd " + dir + " && export XDG_STATE_HOME=" + dir + "\n" + begin)
	t.Cleanup(func() { askEngine(t, engine, "shutdown", nil) })

	// publish has the vocabulary of the given labels published and read.
	publish := func(labels map[string]string) {
		var b strings.Builder
		b.WriteString("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n")
		for id, label := range labels {
			fmt.Fprintf(&b, "<http://example.org/%s> a skos:Concept ; skos:prefLabel %q@en .\n", id, label)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "words.ttl"), []byte(b.String()), 0o600))
	}
	// checked compares the index with the subscription.
	checked := func(labels map[string]string) {
		want, got := map[string]string{}, map[string]string{}
		for line := range strings.Lines(run("tmshare-client changes words --from beginning")) {
			var l struct{ Topic, Title string }
			require.NoError(t, json.Unmarshal([]byte(line), &l), line)
			want[l.Topic] = l.Title
		}
		for _, row := range askEngine(t, engine, "select", url.Values{"table": {"Topics"}, "limit": {"-1"},
			"output_columns": {"_key,title"}}) {
			got[row[0]] = row[1]
		}
		require.Equal(t, want, got)
		for id, label := range labels {
			require.Equal(t, label, got["http://example.org/"+id])
		}
		require.Len(t, slices.DeleteFunc(slices.Collect(maps.Keys(got)), func(topic string) bool {
			return !strings.HasPrefix(topic, "http://example.org/")
		}), len(labels))
	}
	labels := map[string]string{}
	for i := range 40 {
		labels[fmt.Sprintf("é%d", i)] = fmt.Sprintf("Word %d of \"many\"", i)
	}
	publish(labels)
	run("tmshare-server serve --map words=words.ttl --listen " + server + " 2> server.log &")
	run("tmshare-client subscribe http://" + server + "/topicmaps/words && tmshare-client sync")
	run(feed)
	checked(labels)
	for version := range 3 {
		for i := range 5 {
			delete(labels, fmt.Sprintf("é%d", 10*version+i))
			labels[fmt.Sprintf("é%d", 10*version+5+i)] += ", changed"
			labels[fmt.Sprintf("new%d", 5*version+i)] = "Neologism"
		}
		publish(labels)
		run("tmshare-server import words words.ttl --server http://" + server + " && tmshare-client sync")
		require.Contains(t, run(strings.ReplaceAll(feed, "parliament", "neologism")), "http://example.org/new0")
		checked(labels)
	}
	askEngine(t, engine, "load", url.Values{"table": {"Topics"}, "values": {`[{"_key":"http://example.org/of-before"}]`}})
	run("echo 0123456789ab.1 > index.position") // of another history
	run(feed)
	checked(labels)
}

// askEngine sends a request to the search engine, and returns the rows of its answer, if any.
func askEngine(t *testing.T, engine, command string, arguments url.Values) (rows [][]string) {
	resp, err := http.Get("http://" + engine + "/d/" + command + "?" + arguments.Encode())
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var answer []json.RawMessage
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	if command != "select" {
		return nil
	}
	var sets [][]json.RawMessage // a set: its number of rows, the columns, and the rows
	require.NoError(t, json.Unmarshal(answer[1], &sets))
	for _, row := range sets[0][2:] {
		var texts []string
		require.NoError(t, json.Unmarshal(row, &texts))
		rows = append(rows, texts)
	}
	return rows
}
