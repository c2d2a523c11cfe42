package main

import (
	"fmt"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
)

// chosenGraphs returns the graph that is read of each map in RDF for which the command names one.
func (f *serveFlags) chosenGraphs(maps map[string]string) (map[string]string, error) {
	if err := f.config.RDF.Validate(); err != nil {
		return nil, cli.UsageError(err)
	}
	graphs, err := pairs("graph", f.graphs)
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(graphs) {
		if maps[name] == "" {
			return nil, cli.UsageError(fmt.Errorf("--graph %s=%s: there is no --map %s; name a map of the command", name, graphs[name], name))
		}
		if err := (&formats.RDFOptions{Graph: graphs[name]}).Validate(); err != nil {
			return nil, cli.UsageError(fmt.Errorf("--graph %s: %w", name, err))
		}
	}
	return graphs, nil
}
