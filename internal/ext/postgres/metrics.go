package postgres

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/internal/ext/postgres/pg"
)

// metrics are the metrics of a store in a database: connections, retries, and the jobs of this process. It implements
// prometheus.Collector.
type metrics struct {
	engine *pg.Engine
	jobs   func() map[string]bool
}

var (
	retries = prometheus.NewDesc("tmshare_database_retries_total",
		"Transactions that were tried again, as the database was away or others were in the way.", nil, nil)
	used = prometheus.NewDesc("tmshare_database_connections_used", "Connections to the database that are in use.",
		[]string{"kind"}, nil)
	held = prometheus.NewDesc("tmshare_database_connections", "Connections to the database.", []string{"kind"}, nil)
	most = prometheus.NewDesc("tmshare_database_connections_max", "Connections to the database that there may be.",
		[]string{"kind"}, nil)
	waits = prometheus.NewDesc("tmshare_database_connection_waits_total",
		"How often a connection to the database was waited for.", []string{"kind"}, nil)
	lease = prometheus.NewDesc("tmshare_lease_held", "Whether this process does a job that one process at a time does.",
		[]string{"job"}, nil)
)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{retries, used, held, most, waits, lease} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	s := m.engine.Stats()
	to <- prometheus.MustNewConstMetric(retries, prometheus.CounterValue, float64(s.Retries))
	for kind, p := range map[string]pg.Pool{"read": s.Readers, "write": s.Writers} {
		gauge(used, float64(p.Used), kind)
		gauge(held, float64(p.Open), kind)
		gauge(most, float64(p.Most), kind)
		to <- prometheus.MustNewConstMetric(waits, prometheus.CounterValue, float64(p.Waited), kind)
	}
	for job, held := range m.jobs() {
		value := 0.0
		if held {
			value = 1
		}
		gauge(lease, value, job)
	}
}
