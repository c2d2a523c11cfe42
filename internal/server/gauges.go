package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tmshare/tmshare/internal/store"
)

// CollectionGauges is a [prometheus.Collector] that reads the store on request.
type CollectionGauges struct {
	Store  Store
	Sizes  *sizeGauges
	Now    func() time.Time
	Broken func(collection string) (broken, follows bool) // whether the file that a collection follows cannot be published
	Shown  func(collection string) bool
}

func perCollection(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("tmshare_collection_"+name, help, []string{"collection"}, nil)
}

var (
	topicsDesc  = perCollection("topics", "Topics of the map.")
	entriesDesc = perCollection("entries", "Entries of the fragments feed that are kept.")
	headDesc    = perCollection("published_entries_total",
		"Entries of the fragments feed, those that were pruned included.")
	unchangedDesc   = perCollection("change_age_seconds", "Time since the last entry of the fragments feed.")
	snapshotsDesc   = perCollection("snapshots", "Snapshots that are kept.")
	snapshotAgeDesc = perCollection("snapshot_age_seconds", "Time since the last change in the newest snapshot.")
	snapshotLagDesc = perCollection("snapshot_lag_entries", "Entries that are later than the newest snapshot.")
	fileBrokenDesc  = perCollection("file_broken", "Whether the file that the collection follows cannot be published.")
	freeDesc        = prometheus.NewDesc("tmshare_store_free_bytes", "Space that is left on the disk of the data folder.",
		nil, nil)
	refusesDesc = prometheus.NewDesc("tmshare_store_refuses_changes",
		"Whether nothing is written, as the data folder is damaged, was moved, or its disk is full.", []string{"reason"}, nil)
	bytesDesc = prometheus.NewDesc("tmshare_store_bytes", "Size of the store on disk.", []string{"part"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *CollectionGauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{topicsDesc, entriesDesc, headDesc, unchangedDesc, snapshotsDesc, snapshotAgeDesc,
		snapshotLagDesc, fileBrokenDesc, bytesDesc, freeDesc, refusesDesc} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *CollectionGauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, label string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	for reason, holds := range c.Store.Refusals() {
		value := 0.0
		if holds {
			value = 1
		}
		gauge(refusesDesc, value, reason)
	}
	if sizes, err := c.Sizes.read(); err != nil {
		out <- prometheus.NewInvalidMetric(bytesDesc, err)
	} else {
		gauge(bytesDesc, float64(sizes.Records), "records")
		gauge(bytesDesc, float64(sizes.Snapshots), "snapshots")
		out <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, float64(sizes.Free))
	}
	ctx := store.Once(context.Background()) // collectors get no context
	all, err := c.Store.Collections(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(headDesc, err)
	}
	now := c.Now()
	for i := range all {
		name := all[i].Name
		if !c.Shown(name) {
			continue
		}
		l, err := c.Store.Latest(ctx, name)
		if err != nil {
			out <- prometheus.NewInvalidMetric(snapshotsDesc, err)
			continue
		}
		gauge(topicsDesc, float64(l.Topics), name)
		gauge(entriesDesc, float64(l.Head-l.Horizon), name)
		out <- prometheus.MustNewConstMetric(headDesc, prometheus.CounterValue, float64(l.Head), name)
		gauge(unchangedDesc, now.Sub(l.Updated).Seconds(), name)
		gauge(snapshotsDesc, float64(len(l.Snapshots)), name)
		if broken, follows := c.Broken(name); broken {
			gauge(fileBrokenDesc, 1, name)
		} else if follows {
			gauge(fileBrokenDesc, 0, name)
		}
		if len(l.Snapshots) > 0 {
			gauge(snapshotAgeDesc, now.Sub(l.Snapshots[0].Updated).Seconds(), name)
			gauge(snapshotLagDesc, float64(l.Head-l.Snapshots[0].Seq), name)
		}
	}
}

// sizeGauges caches the sizes of a store, because reading them walks a folder. It is safe for concurrent use.
type sizeGauges struct {
	Sizes func() (store.Sizes, error)

	mu   sync.Mutex
	last store.Sizes
	at   time.Time
}

const sizesFor = 10 * time.Second

func (c *sizeGauges) read() (store.Sizes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < sizesFor {
		return c.last, nil
	}
	sizes, err := c.Sizes()
	if err == nil {
		c.last, c.at = sizes, time.Now()
	}
	return sizes, err
}
