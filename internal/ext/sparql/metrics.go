package sparql

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/internal/store"
)

// collector shows how the targets of a store are.
type collector struct{ db *store.DB }

var (
	inStepTime = prometheus.NewDesc("tmshare_target_in_step_timestamp_seconds",
		"When a graph in a SPARQL store was last seen to have all that its source had; 0: never.", []string{"target"}, nil)
	failingNow = prometheus.NewDesc("tmshare_target_failing", "Whether the last try to bring a graph in step has failed.",
		[]string{"target"}, nil)
	refusedNow = prometheus.NewDesc("tmshare_target_refused_statements", "Statements that a SPARQL store does not take.",
		[]string{"target"}, nil)
)

// Describe implements [prometheus.Collector].
func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inStepTime, failingNow, refusedNow} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	all, err := targets(ctx, c.db)
	if err != nil {
		to <- prometheus.NewInvalidMetric(failingNow, err)
		return
	}
	for _, t := range all {
		at, failing := 0.0, 0.0
		if !t.InStep.IsZero() {
			at = float64(t.InStep.Unix())
		}
		if t.Error != "" {
			failing = 1
		}
		to <- prometheus.MustNewConstMetric(inStepTime, prometheus.GaugeValue, at, t.Name)
		to <- prometheus.MustNewConstMetric(failingNow, prometheus.GaugeValue, failing, t.Name)
		to <- prometheus.MustNewConstMetric(refusedNow, prometheus.GaugeValue, float64(len(t.Refused)), t.Name)
	}
}
