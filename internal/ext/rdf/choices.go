package rdf

import (
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/formats"
)

// choices are what users say about documents in RDF, for one command.
type choices struct {
	mapping.Options
	given  []string          // NAME=IRI of graphs
	graphs map[string]string // by the name of the collection

	outputs map[*formats.Format]output
}

// reading returns how a document is read that is a file of a collection, or of none.
func (c *choices) reading(collection string) mapping.Options {
	o := c.Options
	if graph := c.graphs[collection]; graph != "" {
		o.Graph = graph
	}
	return o
}

// flags implements [formats.Flags].
func (c *choices) flags(fl *pflag.FlagSet, use formats.Use) func(map[string]string) (bool, error) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	if use.Reads {
		if use.Several {
			own.StringArrayVar(&c.given, "graph", nil,
				"`NAME=IRI` of the graph that is read of a --map in RDF with several, or NAME=default for the one without a name")
		} else {
			own.StringVar(&c.Graph, "graph", "",
				"`IRI` of the graph that is read of a document in RDF with several, or \"default\" for the one without a name")
		}
		own.BoolVar(&c.MergeSameAs, "merge-same-as", false, "make one topic of the resources of RDF that owl:sameAs joins")
	}
	if use.Writes {
		own.BoolVar(&c.Plain, "plain", false,
			"write RDF without statements of the vocabulary of tmshare; what needs them is left out")
	}
	own.StringArrayVar(&c.Labels, "label", nil, "`IRI` of a further property of RDF whose texts are names (repeatable)")
	fl.AddFlagSet(own)
	return func(files map[string]string) (given bool, err error) {
		own.VisitAll(func(f *pflag.Flag) { given = given || f.Changed })
		if err = c.Validate(); err == nil && use.Several {
			c.graphs, err = cli.PairsOf("graph", c.given, files, func(graph string) error {
				return (&mapping.Options{Graph: graph}).Validate()
			})
		}
		return given, err
	}
}
