// Package followtest tests all followers of sources: with random histories, false answers, temporary and permanent
// faults, restored servers, and killed processes. It is a table of sources × sinks. Each sink's package runs its
// column.
//
// A fragments feed and a folder are no pair: a fragment changes a map, and a folder has none.
package followtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/tmshare/tmshare/internal/testkit/faults"
	"github.com/tmshare/tmshare/internal/testkit/kill"
)

// Kind is the form in which a server publishes changes of its topics: the path of the form at a collection.
type Kind string

// The kinds that a server has.
const (
	Fragments Kind = "/fragments"
	Archived  Kind = "/records"
	Complete  Kind = "/records/complete"
	Lists     Kind = "/resourcesync/capabilitylist.xml"
)

// Source publishes records, and is a row of the table.
type Source interface {
	URL(Kind) string // where a sink finds it
	// Feed reports requests for documents with changes, Record the record of another request, or "".
	Feed(*http.Request) bool
	Record(*http.Request) string

	// Happen makes a random change, publishes and describes it. With during, a follower reads at the same time.
	Happen(during bool) string
	// Much changes so much that a round that brings it has several commits.
	Much()
	// Settle repairs faults that a reader could not repair.
	Settle()
	// Watch calls f after each publication.
	Watch(f func())
	// BreakWith makes faults from now on; nil ends them.
	BreakWith(faults.Fault)
	// Records returns the bytes of the records, by their ids.
	Records(Kind) map[string]string
	// Spare reports whether a reader cannot detect such a lie.
	Spare(r *http.Request, sign faults.Sign) bool
	// Whole reports whether no reader could make good a round that was interrupted.
	Whole() bool
}

// Row is a kind of a source.
type Row struct {
	Name string
	Kind Kind
	// Model states that the source is a model of other servers: it has many styles, and some of them cannot be read
	// correctly while it changes.
	Model bool
	Open  func(t testing.TB, seed uint64) Source
}

// Rows are those of a real server.
func Rows(kinds ...Kind) (rows []Row) {
	names := map[Kind]string{Fragments: "fragments", Archived: "archived records", Complete: "complete records",
		Lists: "lists"}
	for _, k := range kinds {
		rows = append(rows, Row{names[k], k, false, func(t testing.TB, seed uint64) Source { return NewPublisher(t, seed) }})
	}
	return rows
}

// Sink is a kind of place where records go, and a column of the table.
type Sink struct {
	Rows []Row // that it can follow
	Open func(t testing.TB) Place
	// Spare reports whether the sink cannot detect such a lie about a record.
	Spare func(k Kind, sign faults.Sign) bool
	// Left are the possible remains of a kill, see [Place.Left].
	Left []string
}

// Place has the records of some followers, by their names.
type Place interface {
	On(t testing.TB) // from now on t fails
	Follow(name string, s Source, k Kind)
	Leave(name string)
	// Round does a round as a new process would.
	Round(ctx context.Context, name string, how How) (Outcome, error)
	// Process starts a round in a process of its own.
	Process(name string, replace bool) *kill.Process
	// Held returns the records that are held of a source, in the form of Published.
	Held(name string) map[string]string
	// Others returns all other data.
	Others(name string) map[string]string
	// Published returns the records of a source, as a sink that is in step holds them.
	Published(s Source, k Kind) map[string]string
	// Waiting returns the records that were unavailable, and are tried again.
	Waiting(name string) []string
	// InStep checks other requirements of followers that are in step.
	InStep(followers map[string]Source)
	// Left returns what a killed process has left of a round.
	Left(name string) []string
	// Exact reports whether each record that is held of a kind of source is one that the source has published.
	Exact(k Kind) bool
}

// How is how to do a round.
type How struct {
	Replace  bool // all that is held
	Verify   bool // and compare with the source
	Hasty    bool // about a server that is silent
	Parallel int
	Tries    int // of each request; default 2
	Dies     int // if not 0: the number of the last commit, if the sink can simulate that
	Restart  bool
	Confirm  bool // a person confirms the doubt of the last round

	After time.Duration // the time between readings that confirm a loss; default ConfirmAfter
	Ahead time.Duration // by so much the clock of the follower is ahead
}

// Outcome is the result of a round.
type Outcome struct {
	Anew    bool   // all was read again
	Idle    bool   // there was nothing to do
	Did     string // the round in words, where it is not idle
	Waiting int
	// Repaired is the number of records that had to be repaired in the end, without a round.
	Repaired int
	Mark     time.Time
	Died     bool
}
