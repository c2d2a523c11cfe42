package server_test

import (
	"flag"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

var update = flag.Bool("update", false, "bring the methods and addresses of the server into docs/http.md")

// The table of addresses in docs/http.md has each route once, with its methods and a description, and no others. A row
// may have several. -update corrects the methods, removes other rows, and adds missing ones, to be described by hand.
func TestDocumentationListsAllAddresses(t *testing.T) {
	all := ext.All()
	extension.Held(all, &extension.Holding{})
	n := served.Start(t, func(c *server.Config) { c.Parts = extension.Parts(all) })
	methods := map[string][]string{}
	for path, allowed := range n.Addresses() {
		for _, m := range allowed {
			if m != http.MethodHead && !slices.Contains(methods[path], m) {
				methods[path] = append(methods[path], m)
			}
		}
	}
	require.Greater(t, len(methods), 30)

	const path = "../../docs/http.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	if *update {
		page = withRoutes(t, page, methods)
		require.NoError(t, os.WriteFile(path, page, 0o644))
	}
	_, table, found := strings.Cut(string(page), "\n| method | address | ")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string][]string{}
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 5, row)
		assert.NotEmpty(t, strings.TrimSpace(cells[3]), "%s: say what it is", cells[2])
		for _, at := range addressesIn(cells[2]) {
			assert.NotContains(t, listed, at, "listed twice")
			listed[at] = strings.Split(strings.TrimSpace(cells[1]), ", ")
		}
	}
	for at, allowed := range methods {
		assert.ElementsMatch(t, allowed, listed[at], "%s", at)
	}
	for at := range listed {
		assert.Contains(t, methods, at, "there is no such route")
	}
}

// withRoutes returns the page with the routes in its table. Existing rows keep their order and description.
func withRoutes(t *testing.T, page []byte, methods map[string][]string) []byte {
	head, rest, found := strings.Cut(string(page), "\n| --- | --- | --- |\n")
	require.True(t, found)
	table, tail, found := strings.Cut(rest, "\n\n")
	require.True(t, found)
	missing := maps.Clone(methods)
	var rows []string
	row := func(at []string, says string) string {
		sorted := slices.SortedFunc(slices.Values(methods[at[0]]), func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
		return "| " + strings.Join(sorted, ", ") + " | `" + strings.Join(at, "` `") + "` |" + says
	}
	for _, old := range strings.Split(table, "\n") {
		cells := strings.SplitN(old, "|", 4)
		require.Len(t, cells, 4, old)
		at := slices.DeleteFunc(addressesIn(cells[2]), func(at string) bool { return methods[at] == nil })
		if len(at) > 0 {
			rows = append(rows, row(at, cells[3]))
		}
		for _, listed := range at {
			delete(missing, listed)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(missing)) {
		rows = append(rows, row([]string{at}, "  |"))
	}
	return []byte(head + "\n| --- | --- | --- |\n" + strings.Join(rows, "\n") + "\n\n" + tail)
}

// addressesIn returns the addresses of a cell.
func addressesIn(cell string) []string {
	return strings.Split(strings.Trim(strings.TrimSpace(cell), "`"), "` `")
}

// order is that of methods in a row.
var order = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}
