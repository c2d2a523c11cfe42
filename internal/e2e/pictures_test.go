//go:build !race

package e2e_test

import (
	"bytes"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testkit/browser"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// The pictures of the README exist. -update takes them again: of the page of a map, and of that of a topic.
func TestPicturesOfTheReadme(t *testing.T) {
	pictures := map[string]string{"../../docs/page-of-a-map.png": "/topicmaps/egov.html", "../../docs/page-of-a-topic.png": "/topicmaps/egov/topics/" + fragment.Key("https://psi.egov.example.org/service/dog-licence") + ".html"}
	if *updateGolden {
		b := browser.Start(t)
		s := startServer(t, server.Config{Name: "Fjordstad topic maps"})
		importMap(t, s, "egov", maps.EGov)
		for file, path := range pictures {
			b.Visit(s.BaseURL + path)
			require.NoError(t, os.WriteFile(file, b.Picture(), 0o644))
		}
	}
	for file := range pictures {
		picture, err := os.ReadFile(file)
		require.NoError(t, err)
		config, err := png.DecodeConfig(bytes.NewReader(picture))
		require.NoError(t, err, file)
		assert.Equal(t, 1000, config.Width)
		assert.Less(t, len(picture), 200_000, file)
	}
}
