package main

// run is one benchmark with its settings.
type run struct {
	in, name string // the folder of its package, and its name without "Benchmark"
	million  bool   // it takes a map of a million topics
	database bool   // stores are in a database
	topics   bool   // it takes -topics
	flags    []string
}

// runs are all benchmarks of bench/README.md, in the order of the table.
//
// Of the benchmarks with a million topics, the table has only those whose goals name a million. Post, PeakMemory,
// VerifyFull, ServingMemory and ResourceList are left out: they take minutes each, and 100,000 topics show almost the
// same.
var runs = []run{
	{in: "bench", name: "Synthetic", topics: true},
	{in: "bench", name: "Mondial"},
	{in: "bench", name: "SmallDocument"},
	{in: "bench", name: "RDF"},
	{in: "bench", name: "RDFMap"},
	{in: "bench", name: "ConvertRDF"},
	{in: "bench", name: "Concept"},
	{in: "bench", name: "GraphFragments"},
	{in: "bench", name: "PeakMemory", topics: true},
	{in: "bench", name: "FirstPut", topics: true, flags: []string{"-rounds", "2"}},
	{in: "bench", name: "CleanStart", topics: true, flags: []string{"-test.benchtime", "2x"}},
	{in: "bench", name: "PutUnchanged", topics: true},
	{in: "bench", name: "Post", topics: true},
	{in: "bench", name: "AddConcept", flags: []string{"-test.benchtime", "3x"}},
	{in: "bench", name: "Writers", flags: []string{"-test.benchtime", "2x"}},
	{in: "bench", name: "PostsBesideAPut", flags: []string{"-test.benchtime", "3x"}},
	{in: "bench", name: "Partitions", flags: []string{"-test.benchtime", "3x"}},
	{in: "internal/store", name: "PostBatches", topics: true,
		flags: []string{"-topics", "10000", "-test.benchtime", "2x"}},
	{in: "internal/store", name: "Apply", topics: true, flags: []string{"-topics", "10000", "-test.benchtime", "3x"}},
	{in: "bench", name: "PartialUpdate", topics: true},
	{in: "bench", name: "Latency", topics: true, flags: []string{"-rounds", "1"}},
	{in: "bench", name: "Push"},
	{in: "internal/server", name: "Waiting", flags: []string{"-test.benchtime", "5x"}},
	{in: "bench", name: "Pages", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "HubFragment", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "PageKinds", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "FirstPages", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "PagesAfterAStart", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "UncachedPages", flags: []string{"-test.benchtime", "30x"}},
	{in: "bench", name: "LargeTopic", flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "Find", topics: true, flags: []string{"-test.benchtime", "1x"}},
	{in: "bench", name: "Export", topics: true},
	{in: "bench", name: "ExportAt", topics: true},
	{in: "bench", name: "VerifyFull", topics: true},
	{in: "bench", name: "Disk", topics: true},
	{in: "bench", name: "Archive", topics: true, flags: []string{"-rounds", "2"}},
	{in: "bench", name: "Serving", flags: []string{"-seconds", "3"}},
	{in: "bench", name: "ResourceList", topics: true, flags: []string{"-seconds", "2"}},
	{in: "bench", name: "ServingMemory", topics: true},
	{in: "bench", name: "ReplicaChain", flags: []string{"-topics", "10000"}},
	{in: "bench", name: "Derive", flags: []string{"-topics", "10000"}},
	{in: "bench", name: "DeriveCatchUp"},
	{in: "internal/ext/sparql", name: "Target"},
	{in: "internal/ext/sparql", name: "LargeTarget", flags: []string{"-test.benchtime", "1x"}},
	{in: "internal/ext/ldes", name: "Following", flags: []string{"-test.benchtime", "1x"}},
	{in: "internal/ext/folder", name: "Delta", flags: []string{"-test.benchtime", "3x"}},
	{in: "internal/ext/folder", name: "BaselineByDump", flags: []string{"-test.short"}},
	{in: "internal/server", name: "RecordsPerChange", flags: []string{"-test.benchtime", "300x"}},
	{in: "internal/server", name: "Overview", flags: []string{"-test.benchtime", "20x"}},
	{in: "bench", name: "ManyCollections", flags: []string{"-test.benchtime", "1x"}},
	{in: "internal/client", name: "PartialUpdateOfRecords"},
	{in: "internal/client", name: "BaselineOfRecords"},
	{in: "internal/xml/patch", name: "Make", flags: []string{"-test.benchtime", "10x"}},
	{in: "bench", name: "CleanStart", database: true, topics: true},
	{in: "bench", name: "Post", database: true, topics: true},
	{in: "bench", name: "Writers", database: true, flags: []string{"-test.benchtime", "2x"}},
	{in: "bench", name: "Nodes", database: true, flags: []string{"-test.benchtime", "2x"}},
	{in: "bench", name: "ManyCollections", database: true, flags: []string{"-test.benchtime", "1x"}},
	{in: "internal/ext/postgres/pg", name: "PostBatches", database: true},
	{in: "internal/ext/postgres/pg", name: "RecentDocument", database: true},
	{in: "bench", name: "PartialUpdate", database: true, topics: true},
	{in: "bench", name: "ServingMemory", database: true, topics: true},
	{in: "bench", name: "LongFeed", million: true},
	{in: "bench", name: "PartialUpdate", million: true},
	{in: "bench", name: "CleanStart", million: true},
	{in: "bench", name: "FirstPut", million: true, flags: []string{"-topics", "1000000", "-rounds", "1"}},
}

// What follows the names of those rows that are of stores in a database, and of a million topics.
const (
	inDatabase = ", in a database"
	aMillion   = ", a million topics"
)

// row is the name of the row of a benchmark in the table, or the beginning of it.
func (r *run) row(benchmark string) string {
	if r.database {
		benchmark += inDatabase
	}
	if r.million {
		benchmark += aMillion
	}
	return benchmark
}
