// Package partitions is an extension: collections are in several stores, each served by a server of its own, and one
// server in front of them has all of them under its address. It has one overview, and passes requests about a
// collection on to the server that has it. A server that is away takes its collections along, and no others.
package partitions

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

// Extension returns it, with the flag --partition.
func Extension() extension.Extension {
	var given []string
	return extension.Extension{
		Name: "partitions",
		Flags: func(fl *pflag.FlagSet) {
			fl.StringArrayVar(&given, "partition", nil,
				"`NAME=URL` of a server with other collections and the same --base-url: they are in the overview here, and "+
					"requests for them are passed on (repeatable)")
			cli.Seldom(fl, "partition")
		},
		Serve: func(s *server.Server) (*server.Part, error) {
			named, err := cli.Pairs("partition", given)
			if err != nil {
				return nil, err
			}
			return Serve(s, named)
		},
		Dependents: unfinished,
	}
}

// unfinished returns the moves under way, from here and to here. They depend on the node, as a collection may be moved
// again while it moves. Whether a command still completes them is not known here.
func unfinished(ctx context.Context, db *store.DB) (all []store.Dependent, err error) {
	listing, err := db.Listing(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range listing.Collections {
		if c.Leaving == nil {
			continue
		}
		move := fmt.Sprintf(`"tmshare-server collections move %s`, c.Name)
		all = append(all, store.Dependent{
			Name: "move of " + c.Name + " to " + c.Leaving.To, State: "under way",
			Wrong: "not complete, and the collection is not written since " + c.Leaving.At.Format(time.RFC3339),
			Advice: fmt.Sprintf(`if the command runs no more, %s --to %s" completes it, %s --cancel" ends it`, move,
				c.Leaving.To, move),
		})
	}
	arrived, err := db.Arrivals(ctx)
	for i := range arrived {
		name := arrived[i].Collection.Name
		all = append(all, store.Dependent{
			Name: "move of " + name + " to this server", State: "arrived",
			Wrong: "not complete: its rows are here, and nobody sees them",
			Advice: fmt.Sprintf(`if the command runs no more, run it again, or remove the rows with "tmshare-server `+
				`collections move %s --cancel" here: the other server still has the collection`, name),
		})
	}
	return all, err
}

// Serve returns the part of a server in front of partitions, which have names and URLs; which may be none. Without
// any it moves collections alone.
func Serve(s *server.Server, named map[string]string) (*server.Part, error) {
	if len(named) == 0 {
		return &server.Part{Forms: moveRoutes(s)}, nil
	}
	f := &front{Server: s, up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tmshare_partition_up", Help: "Whether the server of a partition answers.",
	}, []string{"partition"})}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		u, err := url.Parse(strings.TrimSuffix(named[name], "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("--partition %s=%s: this is no http or https URL of a server: write it as in "+
				"http://10.0.0.2:8080", name, named[name])
		}
		if u.String() == s.BaseURL {
			return nil, fmt.Errorf("--partition %s=%s: this is the address of this server itself: give that of the other one",
				name, named[name])
		}
		kept := filepath.Join(s.Store.Dir(), "partitions", name+".atom")
		f.partitions = append(f.partitions, newPartition(f, name, u, kept))
	}
	for _, p := range f.partitions { // each looks at all
		p.restore()
		s.Run(p.follow)
	}
	return &server.Part{Elsewhere: f.elsewhere, Entries: f.entries, Forms: moveRoutes(s),
		Metrics: []prometheus.Collector{f.up}}, nil
}

// transport passes bodies on as they come.
func transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression, t.MaxIdleConnsPerHost, t.Proxy = true, 256, nil
	return t
}
