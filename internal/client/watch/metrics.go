package watch

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the watcher's metrics. It reads them from the store on request.
func (w *Watcher) Collector() prometheus.Collector { return watchCollector{w} }

type watchCollector struct{ w *Watcher }

// perSourceDescs are the results of perSource.
var perSourceDescs []*prometheus.Desc

func perSource(name, help string) *prometheus.Desc {
	d := prometheus.NewDesc("tmshare_source_"+name, help, []string{"source"}, nil)
	perSourceDescs = append(perSourceDescs, d)
	return d
}

var (
	lastChangeDesc = perSource("last_change_timestamp_seconds",
		"When a round last changed the copy, by this node's clock.")
	lastCheckDesc = perSource("last_check_timestamp_seconds", "When the last round ended, by this node's clock.")
	markAgeDesc   = perSource("mark_age_seconds",
		"Age of the last change of the server's that is applied. It grows while the server has nothing new.")
	lagDesc = perSource("lag_seconds",
		"Time since nothing was known to be missing: the copy is not older than that.")
	appliedDesc     = perSource("applied_fragments", "Fragments applied since the clean start.")
	quarantinedDesc = perSource("quarantined_topics", "Topics in quarantine: their last change could not be applied.")
	brokenDesc      = perSource("failing", "Whether the last round failed.")
	roundsDesc      = perSource("rounds_total", "Rounds of this process.")
	failuresDesc    = perSource("failed_rounds_total", "Rounds of this process that failed.")
	entriesDesc     = perSource("entries_total", "Entries that rounds of this process moved the mark over.")
	tookDesc        = perSource("last_round_duration_seconds", "Time that the last round of this process took.")
	fetchedDesc     = perSource("fetched_bytes_total", "Bytes of the bodies of answers to this process.")
	provenDesc      = perSource("proven_timestamp_seconds",
		"When the copy was last proven equal to its source, by this node's clock.")
	unprovenDesc = perSource("unproven", "Whether the source states a digest that the copy is not known to have.")
	doubtDesc    = perSource("in_doubt",
		"Whether a reading of the source would take something away, and is not confirmed.")
	missingDesc = perSource("protocol_missing", "Whether this program lacks the protocol of the source.")
	forkedDesc  = perSource("forked",
		"Whether the last round failed because the source shows another history than the one that was accepted.")
	repairedDesc = perSource("repaired_topics_total",
		"Topics that differed from the source and were repaired by this process.")
	sourcesDesc = prometheus.NewDesc("tmshare_sources", "Subscriptions.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (c watchCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range perSourceDescs {
		out <- d
	}
	out <- sourcesDesc
}

// Collect implements [prometheus.Collector].
func (c watchCollector) Collect(out chan<- prometheus.Metric) {
	all, err := c.w.Status(context.Background()) // collectors get no context
	if err != nil {
		out <- prometheus.NewInvalidMetric(sourcesDesc, err)
		return
	}
	out <- prometheus.MustNewConstMetric(sourcesDesc, prometheus.GaugeValue, float64(len(all)))
	now := c.w.Client.Now()
	for i := range all {
		s := &all[i]
		gauge := func(d *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, s.Name)
		}
		at := func(d *prometheus.Desc, t *time.Time) {
			if t != nil {
				gauge(d, float64(t.UnixMilli())/1000)
			}
		}
		at(lastChangeDesc, s.LastChange)
		at(lastCheckDesc, s.LastCheck)
		if s.Mark != nil {
			gauge(markAgeDesc, now.Sub(*s.Mark).Seconds())
		}
		if s.Lag != nil {
			gauge(lagDesc, *s.Lag)
		}
		gauge(appliedDesc, float64(s.Status.Applied))
		gauge(quarantinedDesc, float64(s.Quarantined))
		at(provenDesc, s.Proven)
		for d, is := range map[*prometheus.Desc]bool{
			brokenDesc: s.LastError != "", unprovenDesc: s.Unproven != "", forkedDesc: s.Refused, doubtDesc: s.Doubt != nil,
			missingDesc: s.Missing != "",
		} {
			if is {
				gauge(d, 1)
			} else {
				gauge(d, 0)
			}
		}
		if !s.Watched {
			continue
		}
		count := func(d *prometheus.Desc, value int64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), s.Name)
		}
		count(roundsDesc, s.Rounds)
		count(failuresDesc, s.Failures)
		count(entriesDesc, s.Entries)
		count(fetchedDesc, s.Fetched)
		count(repairedDesc, s.Repaired)
		gauge(tookDesc, s.Took)
	}
}
