package rdf

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/ext/rdf/mapping"
	"github.com/tmshare/tmshare/internal/formats"
)

// choices are the user's options for documents in RDF, for one command.
type choices struct {
	mapping.Options
	given  []string          // NAME=IRI of graphs
	graphs map[string]string // by the name of the collection

	outputs map[*formats.Format]output
}

// The parameters of requests, which have the names of the flags.
const (
	graphFlag = "graph"
	mergeFlag = "merge-same-as"
	labelFlag = "label"
)

var asks = []string{graphFlag, labelFlag, mergeFlag}

// reading returns the options to read a document: those of the command and of the request.
func (c *choices) reading(r *formats.ReadOptions) (mapping.Options, error) {
	o := c.Options
	o.Graph = cmp.Or(r.Asked.Get(graphFlag), c.graphs[r.Collection], o.Graph)
	o.Labels = slices.Concat(o.Labels, r.Asked[labelFlag])
	o.MergeSameAs = o.MergeSameAs || r.Asked.Has(mergeFlag)
	return o, o.Validate()
}

// wayOf returns the name of the option that chooses a graph.
func wayOf(r *formats.ReadOptions) string {
	switch {
	case r.Asked != nil:
		return formats.ChooseGraph
	case r.Collection != "":
		return "--" + graphFlag + " " + r.Collection + "=IRI"
	}
	return "--" + graphFlag + " IRI"
}

// flags implements [formats.Flags].
func (c *choices) flags(fl *pflag.FlagSet, use formats.Use) formats.Check {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	if use.Reads {
		if use.Several {
			own.StringArrayVar(&c.given, graphFlag, nil,
				"`NAME=IRI` of the graph that is read of a --map in RDF with several, or NAME=default for the one without a name")
		} else {
			own.StringVar(&c.Graph, graphFlag, "",
				"`IRI` of the graph that is read of a document in RDF with several, or \"default\" for the one without a name")
		}
		own.BoolVar(&c.MergeSameAs, mergeFlag, false, "make one topic of the resources of RDF that owl:sameAs joins")
	}
	if use.Writes {
		own.BoolVar(&c.Plain, "plain", false,
			"write RDF without statements of the vocabulary of tmshare; what needs them is left out")
	}
	own.StringArrayVar(&c.Labels, labelFlag, nil, "`IRI` of a further property of RDF whose texts are names (repeatable)")
	fl.AddFlagSet(own)
	return func(files map[string]string) (asked url.Values, err error) {
		asked = url.Values{}
		for name, values := range map[string][]string{graphFlag: {c.Graph}, labelFlag: c.Labels, mergeFlag: {""}} {
			if f := own.Lookup(name); f != nil && f.Changed && !use.Several {
				asked[name] = values
			}
		}
		if err = c.Validate(); err == nil && use.Several {
			c.graphs, err = cli.PairsOf(graphFlag, c.given, files, func(graph string) error {
				return (&mapping.Options{Graph: graph}).Validate()
			})
		}
		return asked, err
	}
}
