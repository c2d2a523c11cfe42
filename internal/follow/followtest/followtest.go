// Package followtest is what holds of everything that follows a source: random histories, answers
// that are lies, faults that pass or last, servers that are restored, processes that are killed. It
// is a table of sources × sinks. Each sink's package runs its column.
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

// Kind is in what form a server says what has become of its topics: the path of the form at a
// collection.
type Kind string

// The kinds that a server has.
const (
	Fragments Kind = "/fragments"
	Archived  Kind = "/records"
	Complete  Kind = "/records/complete"
	Lists     Kind = "/resourcesync/capabilitylist.xml"
)

// Source is somebody who publishes records, and a row of the table.
type Source interface {
	URL(Kind) string // where a sink finds it
	// Feed tells the requests for what says what has become of records, Record of which record another
	// request is; "" is none.
	Feed(*http.Request) bool
	Record(*http.Request) string

	// Happen lets something happen, and publishes it. It says what. Where during is set, somebody
	// reads at this moment.
	Happen(during bool) string
	// Much changes so much that a round that brings it has several commits.
	Much()
	// Settle ends what a reader could not make good.
	Settle()
	// Watch has f called whenever something else is published.
	Watch(f func())
	// BreakWith makes faults from now on; nil ends them.
	BreakWith(faults.Fault)
	// Records returns the bytes of the records that there are, by their ids.
	Records(Kind) map[string]string
	// Spare reports whether no reader could tell such a lie from the truth.
	Spare(r *http.Request, sign faults.Sign) bool
	// Whole reports whether no reader could make good a round that was interrupted.
	Whole() bool
}

// Row is a kind of a source.
type Row struct {
	Name string
	Kind Kind
	// Model says that the source is a model of what others than our server may do: it has many styles,
	// and may be such that one cannot read it while it changes.
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
	// Spare reports whether the sink has no means to tell such a lie about a record from the truth.
	Spare func(k Kind, sign faults.Sign) bool
	// Left are what a kill may leave, see [Place.Left].
	Left []string
}

// Place holds what some followers hold, by their names.
type Place interface {
	On(t testing.TB) // from now on t fails
	Follow(name string, s Source, k Kind)
	Leave(name string)
	// Round does a round as a new process would.
	Round(ctx context.Context, name string, how How) (Outcome, error)
	// Process starts a round in a process of its own.
	Process(name string, replace bool) *kill.Process
	// Held returns what is held of a source, in the terms of Published.
	Held(name string) map[string]string
	// Others returns what is held of all else.
	Others(name string) map[string]string
	// Published returns the records of a source, as a sink that is in step holds them.
	Published(s Source, k Kind) map[string]string
	// Waiting returns what could not be had, and is tried again.
	Waiting(name string) []string
	// InStep requires whatever else holds of followers that are in step.
	InStep(followers map[string]Source)
	// Left says what a killed process has left of a round.
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
	Dies     int // if not 0: there is no other commit after so many, where the sink can do so
	Restart  bool
	Confirm  bool // a person confirms the doubt of the last round

	After time.Duration // the time between readings that confirm a loss; default ConfirmAfter
	Ahead time.Duration // by so much the clock of the follower is ahead
}

// Outcome is what a round says.
type Outcome struct {
	Anew    bool   // all was read again
	Idle    bool   // nothing was done
	Did     string // the round in words, where it is not idle
	Waiting int
	// Repaired is how much had to be repaired in the end, which no round has brought.
	Repaired int
	Mark     time.Time
	Died     bool
}
