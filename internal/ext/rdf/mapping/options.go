package mapping

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/titles"
)

// Options control the conversion between graphs and topic maps. Both directions are inverse to each other only with
// equal Labels.
type Options struct {
	// Graph names the graph of a document that is read: an IRI, _:label, or [DefaultGraph]. "": the only one.
	Graph string
	// MergeSameAs merges resources that owl:sameAs joins into one topic.
	MergeSameAs bool
	// Labels are the IRIs of properties whose texts are names, in addition to the built-in ones.
	Labels []string
	// Plain excludes statements in TMShare's own vocabulary from a graph. Items that need one are left out and counted.
	Plain bool
	// Fragment states that a document is about some resources only. In it, the type tmshare:Topic states that a topic
	// exists, also for topics that a whole graph would not mention.
	Fragment bool
}

// Validate returns an error for an invalid name of a graph or a property.
func (o *Options) Validate() error {
	if g := o.Graph; g != "" && g != DefaultGraph && !strings.HasPrefix(g, "_:") && !iri.IsAbsolute(g) {
		return fmt.Errorf("%q cannot name a graph: give an absolute IRI, _:label or %q", g, DefaultGraph)
	}
	for _, l := range o.Labels {
		if _, err := iri.Normalize(l); err != nil {
			return fmt.Errorf("%q cannot be a property: give an absolute IRI, such as %s", l, rdfsLabel)
		}
	}
	return nil
}

// DefaultGraph is the word for the graph without a name.
const DefaultGraph = "default"

// labels are the built-in properties whose texts are names.
var labels = func() map[string]bool {
	all := map[string]bool{}
	for _, property := range titles.Labels {
		all[property] = true
	}
	return all
}()

// labels returns all properties whose texts are names.
func (o *Options) labels() map[string]bool {
	if len(o.Labels) == 0 {
		return labels
	}
	all := maps.Clone(labels)
	for _, l := range o.Labels {
		all[l] = true
	}
	return all
}

// GraphsError is the error for a document with several graphs if none was chosen, or the chosen one is missing.
type GraphsError struct {
	Graph string   // the chosen one; "": none
	Names []string // some of the document's graphs
	More  int      // number of its other graphs
	Way   string   // the option that chooses a graph
}

func (e *GraphsError) Error() string {
	names := strings.Join(e.Names, ", ")
	if e.More > 0 {
		names += fmt.Sprintf(" and %d more", e.More)
	}
	if e.Graph != "" {
		return fmt.Sprintf("the document has no graph %s; it has %s. Choose one of these with %s", e.Graph, names, e.Way)
	}
	return fmt.Sprintf("the document has several graphs, and a topic map is one: %s. Choose one with %s", names, e.Way)
}

// Graphs are the names of the graphs of a document, of which one is read.
type Graphs struct {
	wanted string // "": the only one
	last   rdf.Term
	read   rdf.Term // the name of the one that is read
	seen   map[rdf.Term]bool
	more   int // beyond maxGraphs
}

// maxGraphs is the number of names of graphs that are remembered.
const maxGraphs = 1000

// NewGraphs returns the graphs of a document, of which [Options.Graph] names the one that is read.
func NewGraphs(wanted string) *Graphs { return &Graphs{wanted: wanted, seen: map[rdf.Term]bool{}} }

// Take records the graph of a statement, and reports whether the statement belongs to the chosen graph.
func (g *Graphs) Take(name rdf.Term) bool {
	if name != g.last || len(g.seen) == 0 {
		g.last = name
		switch {
		case g.seen[name]:
		case len(g.seen) < maxGraphs:
			g.seen[name] = true
		default:
			g.more++
		}
	}
	taken := g.wanted == "" && len(g.seen) == 1 || nameOf(name) == g.wanted
	if taken {
		g.read = name
	}
	return taken
}

func nameOf(g rdf.Term) string {
	switch g.Kind {
	case rdf.None:
		return DefaultGraph
	case rdf.IRI:
		return g.Value
	}
	return "_:" + g.Value
}

// Name returns the name of the graph that was read, "" for the default graph.
func (g *Graphs) Name() string {
	if g.read.Kind == rdf.None {
		return ""
	}
	return nameOf(g.read)
}

// Check returns a *[GraphsError] if there is no graph to read. A document without statements has the default graph.
func (g *Graphs) Check() error {
	names := []string{}
	for name := range g.seen {
		names = append(names, nameOf(name))
	}
	if len(names) == 0 {
		names = append(names, DefaultGraph)
	}
	if g.wanted == "" && len(names) == 1 || slices.Contains(names, g.wanted) || g.wanted != "" && g.more > 0 {
		return nil
	}
	slices.Sort(names)
	shown := min(len(names), 20)
	return &GraphsError{Graph: g.wanted, Names: names[:shown], More: len(names) - shown + g.more}
}
