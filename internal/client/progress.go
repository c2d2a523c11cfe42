package client

// Progress says how far long work has come. It is given to [Config.Progress],
// which shows it or not: whoever does the work tells it whenever that is easy
// (after each read, record, commit), without thinking of how often.
//
// The work of a round is told one phase after the other; a new Phase, or the end
// of the round, ends the one before. Several goroutines may tell at a time, and
// those of several sources do. What must be said whatever the listener does is a
// line for [Config.Report] instead.
type Progress struct {
	Source string // the subscription
	Phase  string // what is done, as in "reading the snapshot"; starts in lower case
	Done   int64
	Total  int64 // 0: not known
	Unit   Unit
}

// Unit is what Progress counts.
type Unit string

// Units.
const (
	Bytes     Unit = "bytes"
	Records   Unit = "records"
	Fragments Unit = "fragments"
	Documents Unit = "documents"
	Rows      Unit = "rows" // of the database
)
