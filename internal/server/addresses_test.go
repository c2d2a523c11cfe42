package server

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server/operate"
	"github.com/tmshare/tmshare/internal/server/upkeep"
)

// The table of addresses in docs/architecture.md has each route once, with its methods, and no others.
func TestDocumentationListsAllAddresses(t *testing.T) {
	methods := map[string][]string{}
	s := &Server{metrics: &metrics{}, keeper: &upkeep.Keeper{}, operator: operate.Node{Pages: http.NotFoundHandler()}}
	err := s.routes().Routes(func(path string, of []string) {
		for _, m := range of {
			if m != http.MethodHead && !slices.Contains(methods[path], m) {
				methods[path] = append(methods[path], m)
			}
		}
	})
	require.NoError(t, err)
	require.Greater(t, len(methods), 30)

	page, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| method | address | ")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	listed := map[string][]string{}
	for _, row := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(row, "|")
		require.Len(t, cells, 6, row)
		at := strings.Trim(strings.TrimSpace(cells[2]), "`")
		assert.NotContains(t, listed, at, "listed twice")
		listed[at] = strings.Split(strings.TrimSpace(cells[1]), ", ")
		for _, file := range strings.Split(cells[4], ",") {
			assert.FileExists(t, strings.Trim(file, " `"), "%s", at)
		}
	}
	for at, of := range methods {
		assert.ElementsMatch(t, of, listed[at], "%s", at)
	}
	for at := range listed {
		assert.Contains(t, methods, at, "there is no such route")
	}
}
