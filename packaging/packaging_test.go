package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/testenv"
)

// The rules are those that Prometheus reads, and each fires when it should, and not before.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := testenv.Command(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		c := exec.Command(promtool, args...)
		c.Dir = "prometheus"
		printed, err := c.CombinedOutput()
		require.NoError(t, err, "%s", printed)
	}
	rules, err := os.ReadFile("prometheus/alerts.yml")
	require.NoError(t, err)
	tests, err := os.ReadFile("prometheus/alerts_test.yml")
	require.NoError(t, err)
	for _, rule := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		assert.Regexp(t, `alertname: `+rule[1]+`\n\s+exp_alerts:\n`, string(tests), "nothing shows that %s fires", rule[1])
	}
}

// The dashboard is one that can be read, each panel of which has a query and says what it shows.
func TestDashboard(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("grafana/tmshare.json")
	require.NoError(t, err)
	var d struct {
		UID    string
		Panels []struct {
			ID                 int
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(b, &d))
	assert.NotEmpty(t, d.UID)
	assert.Len(t, d.Panels, 14)
	ids := map[int]bool{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		assert.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		assert.NotEmpty(t, p.Targets[0].Expr)
	}
}

// Services can do little beyond what they need: systemd rates their exposure from 0 to 10.
func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	analyze := testenv.Command(t, "systemd-analyze")
	rated := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`)
	for _, unit := range []string{"systemd/tmshare-server.service", "systemd/tmshare-client.service"} {
		printed, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", unit).CombinedOutput()
		found := rated.FindSubmatch(printed)
		require.NotNil(t, found, "%v: %s", err, printed)
		level, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(t, err)
		assert.Less(t, level, 2.0, unit)
	}
}
