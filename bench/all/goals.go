package main

import (
	"path"
	"strconv"
	"strings"
)

// goal is the maximum or minimum of a figure of a benchmark.
type goal struct {
	row     string // a row of bench/README.md
	part    string // a pattern of [path.Match] for the rest of the name; all if empty
	million bool   // it holds with a million topics only
	unit    string // as the benchmark reports it
	atMost  float64
	atLeast float64

	database bool // it holds for stores in a database, all others for those in folders
}

// goals are the goals of all benchmarks.
var goals = []goal{
	{row: "Synthetic/Tokenize", unit: "×speed-of-JDK-SAX", atLeast: 4},
	{row: "Synthetic/Tokenize", unit: "×speed-of-xmllint", atLeast: 4},
	{row: "Synthetic/Load", unit: "×clock-of-xmllint", atMost: 1},
	{row: "Synthetic/Heap", unit: "heap-B/topic", atMost: 700},
	{row: "Synthetic/Heap", unit: "×heap-of-Ontopia", atMost: 1},
	{row: "Synthetic/CXTM", unit: "×time-of-Load", atMost: 1.5},
	{row: "Synthetic/Export", unit: "×speed-of-Load", atLeast: 2},
	{row: "Synthetic/Fragments", part: "XTM*", unit: "×time-of-Load", atMost: 0.7},
	{row: "Concept", unit: "×concept-of-1k", atMost: 1.5},
	{row: "GraphFragments", unit: "×speed-of-XTM-1.0.ttl", atLeast: 0.5},
	{row: "GraphFragments", unit: "×speed-of-XTM-1.0.nt", atLeast: 0.5},
	{row: "GraphFragments", unit: "×speed-of-XTM-1.0.rdf", atLeast: 0.5},
	{row: "PeakMemory", unit: "peak-B/topic", atMost: 3000},
	{row: "FirstPut", unit: "×clock-of-read", atMost: 4},
	{row: "FirstPut", unit: "×size-of-file-written", atMost: 3},
	{row: "FirstPut", unit: "×clock-of-read+write", atMost: 1.5},
	{row: "FirstPut", unit: "×cpu-of-read+write", atMost: 1.5},
	{row: "FirstPut", million: true, unit: "clock-s-to-put", atMost: 80},
	{row: "CleanStart", unit: "×read+write", atMost: 1},
	{row: "CleanStart", unit: "×cpu-of-read+write", atMost: 1.3},
	{row: "CleanStart", million: true, unit: "s/clean-start", atMost: 60},
	{row: "CleanStart", unit: "peak-MB", atMost: 200},
	{row: "CleanStart", million: true, unit: "peak-MB", atMost: 500},
	{row: "PutUnchanged", unit: "×clock-of-Load", atMost: 2},
	{row: "PutUnchanged", unit: "×time-of-Load", atMost: 2},
	{row: "Post", unit: "×time-of-1k-topics", atMost: 1.5},
	{row: "AddConcept", unit: "×time-of-100-concepts", atMost: 1.5},
	{row: "Writers", unit: "×changes/s-of-one-writer", atLeast: 1.5},
	{row: "Partitions", unit: "×time-of-its-own", atMost: 4},
	{row: "PostsBesideAPut", unit: "×p99-of-posts-alone", atMost: 2},
	{row: "PostBatches", unit: "×raw", atLeast: 0.5},
	{row: "Apply", unit: "×raw", atLeast: 0.35},
	{row: "PartialUpdate", unit: "ms/large", atMost: 100},
	{row: "PartialUpdate", unit: "peak-MB/large", atMost: 60},
	{row: "LongFeed", unit: "peak-MB/many", atMost: 200},
	{row: "Latency", unit: "×latency-of-requests", atMost: 1.2},
	{row: "Latency", unit: "requests", atMost: 150},
	{row: "Push", unit: "ms/p99", atMost: 100},
	{row: "Waiting", unit: "KiB/waiting", atMost: 32},
	{row: "Waiting", unit: "×p99-without", atMost: 1.5},
	{row: "Pages", unit: "ms/p99", atMost: 20},
	{row: "PageKinds", unit: "ms/p99", atMost: 20},
	{row: "FirstPages", unit: "ms/page", atMost: 100},
	{row: "PagesAfterAStart", unit: "ms/page", atMost: 100},
	{row: "LargeTopic", unit: "ms/page", atMost: 50},
	{row: "LargeTopic", unit: "kB/page", atMost: 64},
	{row: "HubFragment", unit: "×last-of-streamed-map", atMost: 4},
	{row: "HubFragment", unit: "×last-again-of-streamed-map", atMost: 0.2},
	{row: "Find", unit: "ms/p99", atMost: 50},
	{row: "Find", unit: "×bytes-of-records", atMost: 0.5},
	{row: "Export", unit: "×time-of-xtm.Write", atMost: 2},
	{row: "ExportAt", unit: "×time-of-export-now", atMost: 1.5},
	{row: "VerifyFull", unit: "×reading-both-sides", atMost: 1.5},
	{row: "VerifyFull", unit: "peak-MB", atMost: 200},
	{row: "Disk", unit: "×map-gzipped", atMost: 4},
	{row: "Archive", unit: "×cpu-of-changes/loaded", atMost: 1.2},
	{row: "Archive", unit: "×cpu-of-changes/changed", atMost: 1.2},
	{row: "Serving", part: "Archive", unit: "×requests/s-of-nginx", atLeast: 0.6},
	{row: "Serving", part: "Archive", unit: "×requests/cpu-s-of-nginx", atLeast: 0.6},
	{row: "Serving", part: "*/304", unit: "×requests/cpu-s-of-nginx", atLeast: 0.7},
	{row: "ResourceList", unit: "×requests/s-of-nginx", atLeast: 0.5},
	{row: "ResourceList", unit: "×requests/cpu-s-of-nginx", atLeast: 0.5},
	{row: "ServingMemory", unit: "RssAnon-MB", atMost: 500},
	{row: "ServingMemory", unit: "×RssAnon-of-a-tenth-of-the-changes", atMost: 1.2},
	{row: "ReplicaChain", unit: "×bytes-of-first-hop", atMost: 1.1},
	{row: "Derive", unit: "×name-of-1k-topics", atMost: 1.5},
	{row: "Derive", unit: "×reified-of-1k-topics", atMost: 1.5},
	{row: "Derive", unit: "×new-of-1k-topics", atMost: 1.5},
	{row: "Derive", unit: "peak-MB", atMost: 300},
	{row: "DeriveCatchUp", unit: "×speed-of-subscription", atLeast: 0.5},
	{row: "Target", unit: "×clock-of-curl", atMost: 1.5},
	{row: "Delta", unit: "×speed-of-Token", atLeast: 0.5},
	{row: "BaselineByDump", unit: "×speed-of-single-requests", atLeast: 5},
	{row: "RecordsPerChange", unit: "×post-of-1000", atMost: 1.5},
	{row: "RecordsPerChange", unit: "×get-of-1000", atMost: 1.5},
	{row: "Overview", unit: "×collection-of-100", atMost: 2},
	{row: "Overview", unit: "×304-of-100", atMost: 2},
	{row: "ManyCollections", unit: "s/start", atMost: 2},
	{row: "ManyCollections", unit: "ms/overview", atMost: 50},
	{row: "ManyCollections", unit: "%-idle", atMost: 1},
	{row: "ManyCollections", unit: "×304-of-100", atMost: 2},
	{row: "RDF", part: "NTriples", unit: "×speed-of-rapper", atLeast: 0.5},
	{row: "RDF", part: "Turtle", unit: "×speed-of-rapper", atLeast: 0.5},
	{row: "RDF", part: "RDFXML", unit: "×speed-of-rapper", atLeast: 0.3},
	{row: "RDFMap", unit: "×speed-of-loading-XTM", atLeast: 0.5},
	{row: "ConvertRDF", part: "NTriples", unit: "×speed-of-rapper", atLeast: 0.5},
	{row: "ConvertRDF", part: "Turtle", unit: "×speed-of-rapper", atLeast: 0.5},
	{row: "ConvertRDF", part: "*Map", unit: "×speed-of-rapper", atLeast: 0.4},
	{row: "ConvertRDF", unit: "×peak-of-a-quarter", atMost: 1.3},
	{row: "PartialUpdateOfRecords", unit: "×time-of-1000", atMost: 1.5},
	{row: "CleanStart", database: true, unit: "×clean-start-in-folder", atMost: 2.5},
	{row: "Post", database: true, unit: "×time-of-1k-topics", atMost: 1.5},
	{row: "Writers", database: true, unit: "×changes/s-of-one-writer", atLeast: 6},
	{row: "Nodes", database: true, unit: "×reads-of-one-server", atLeast: 0.9},
	{row: "Nodes", database: true, unit: "×changes-of-one-server", atLeast: 0.9},
	{row: "ManyCollections", database: true, unit: "s/start", atMost: 2},
	{row: "ManyCollections", database: true, unit: "ms/overview", atMost: 50},
	{row: "ManyCollections", database: true, unit: "%-idle", atMost: 1},
	{row: "PostBatches", database: true, unit: "×raw", atLeast: 0.5},
	{row: "PartialUpdate", database: true, unit: "×time-of-1k-topics", atMost: 1.5},
	{row: "ServingMemory", database: true, unit: "RssAnon-MB", atMost: 300},
	{row: "ServingMemory", database: true, unit: "long-RssAnon-MB", atMost: 300},
	{row: "RecentDocument", database: true, unit: "questions", atMost: 1},
}

// String describes the goal in words.
func (g *goal) String() string {
	var s strings.Builder
	if g.part != "" {
		s.WriteString("`" + g.part + "` ")
	}
	s.WriteString(g.bound() + " " + words(g.unit))
	if g.million {
		s.WriteString(" with a million topics")
	}
	if g.database {
		s.WriteString(" in a database")
	}
	return s.String()
}

// bound describes the limit.
func (g *goal) bound() string {
	if g.atLeast > 0 {
		return "≥ " + strconv.FormatFloat(g.atLeast, 'g', -1, 64)
	}
	return "≤ " + strconv.FormatFloat(g.atMost, 'g', -1, 64)
}

func (g *goal) met(figure float64) bool {
	return figure >= g.atLeast && (g.atMost == 0 || figure <= g.atMost)
}

// goalOf returns the goal of a figure of a row, or nil. A goal for a million topics has priority over one for any
// number.
func goalOf(row, unit string) (found *goal) {
	for i := range goals {
		if g := &goals[i]; g.holds(row, unit) && (found == nil || g.million) {
			found = g
		}
	}
	return found
}

func (g *goal) holds(row, unit string) bool {
	name, million := strings.CutSuffix(row, aMillion)
	name, database := strings.CutSuffix(name, inDatabase)
	if real, ok := strings.CutPrefix(name, "Mondial/"); ok { // the same flows
		name = "Synthetic/" + real
	}
	part, ok := strings.CutPrefix(name+"/", g.row+"/")
	if !ok || g.unit != unit || g.million && !million || g.database != database {
		return false
	}
	matches, err := path.Match(g.part, strings.TrimSuffix(part, "/"))
	return g.part == "" || err == nil && matches
}

// words describes a unit in words. Ratios are recognised by their first character.
func words(unit string) string {
	if reference, ok := strings.CutPrefix(unit, "×"); ok {
		return "× " + strings.NewReplacer("cpu-s-", "cpu-s ", "-", " ").Replace(reference)
	}
	return unit
}
