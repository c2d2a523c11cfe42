package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/watch"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// The rules and the dashboard of packaging use metrics of the programs.
func TestMetricsOfRulesAreThere(t *testing.T) {
	s := startServer(t, server.Config{})
	importMap(t, s, "egov", maps.EGov)
	answer, err := http.Get(s.BaseURL + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	again, err := http.Get(s.BaseURL + "/metrics") // with the first request
	require.NoError(t, err)
	defer again.Body.Close()
	text, err := io.ReadAll(again.Body)
	require.NoError(t, err)
	there := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^(tmshare_\w+)`).FindAllString(string(text), -1) {
		there[name] = true
	}
	names(t, string(text))
	db := openStore(t)
	c, err := client.New(client.Config{Store: db, Logger: quiet})
	require.NoError(t, err)
	w, err := watch.New(c, watch.Options{Store: db, Interval: time.Hour})
	require.NoError(t, err)
	_, err = c.Subscribe(t.Context(), s.BaseURL+"/topicmaps/egov", client.SubscribeOptions{})
	require.NoError(t, err)
	_, err = c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	described := prometheus.NewPedanticRegistry() // a metric that is not described is an error
	require.NoError(t, described.Register(w.Collector()))
	collected, err := described.Gather()
	require.NoError(t, err)
	require.Greater(t, len(collected), 5)
	shown := httptest.NewRecorder()
	w.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	assert.Regexp(t, `(?m)^tmshare_store_free_bytes [1-9]`, shown.Body.String())
	names(t, shown.Body.String())
	for _, c := range []prometheus.Collector{w.Collector(), &server.CollectionGauges{}} {
		all := make(chan *prometheus.Desc, 100)
		c.Describe(all)
		close(all)
		for d := range all {
			there[regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]] = true
		}
	}
	for _, file := range []string{"prometheus/alerts.yml", "grafana/tmshare.json"} {
		b, err := os.ReadFile("../../packaging/" + file)
		require.NoError(t, err)
		asked := regexp.MustCompile(`\btmshare_[a-z_]+`).FindAllString(string(b), -1)
		require.Greater(t, len(asked), 8, file)
		for _, name := range asked {
			assert.True(t, there[name], "%s asks for %s", file, name)
		}
	}
}

// names has promtool look at the names, the units and the help of metrics.
func names(t *testing.T, text string) {
	promtool := testenv.Command(t, "promtool")
	text = regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go|process)_.*\n`).ReplaceAllString(text, "") // not ours
	c := exec.Command(promtool, "check", "metrics")
	c.Stdin = strings.NewReader(text)
	printed, err := c.CombinedOutput()
	assert.NoError(t, err, "%s", printed)
	assert.Empty(t, string(printed))
}
