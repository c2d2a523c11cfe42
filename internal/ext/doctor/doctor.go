// Package doctor checks a node as a whole and reports problems with their remedies: the data folder, subscriptions and
// collections, other servers, the settings of a server. It runs existing commands and changes nothing.
package doctor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
)

// Finding is something that is not as it should be.
type Finding struct {
	Where  string `json:"where"` // the data folder, a subscription, a collection, a setting
	What   string `json:"what"`
	Remedy string `json:"remedy"` // the command that mends it, or what else to do
}

// Fact is something that is as it may be.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Report is the result of the checks.
type Report struct {
	Data     string    `json:"data"`
	Facts    []Fact    `json:"facts"`
	Findings []Finding `json:"findings"`
}

// Node is a node that is looked at.
type Node struct {
	Program string // the program of the node, for the commands in remedies
	Data    string
	// Run executes a command of tmshare-client on the data folder, in the process that holds it if there is one.
	Run      func(ctx context.Context, args ...string) control.Outcome
	Serving  *extension.Serving // the settings of a server; nil: the node is none
	Flags    *pflag.FlagSet     // by which they are given; nil: what the server says of its own does not count
	Formats  formats.Registry   // of its files
	MaxLag   time.Duration
	Thorough bool         // look at all rows, as "check" does
	Offline  bool         // send no requests to servers
	HTTP     *http.Client // nil: the usual one
	Now      func() time.Time
}

// Look checks a node. It returns no error, because problems are in the report.
func Look(ctx context.Context, n *Node) *Report {
	r := &Report{Data: n.Data, Facts: []Fact{}, Findings: []Finding{}}
	node := r.folder(ctx, n)
	if n.Serving != nil {
		r.settings(n)
		r.watched(ctx, n)
	}
	if node == nil {
		return r
	}
	r.published(n, node)
	tokens := r.followed(n, node)
	if !n.Offline {
		r.reach(ctx, n, node, tokens)
	}
	if n.Thorough {
		r.check(ctx, n)
	}
	return r
}

// found adds a finding with its remedy.
func (r *Report) found(where, what, remedy string) {
	r.Findings = append(r.Findings, Finding{where, what, remedy})
}

func (r *Report) fact(name, format string, args ...any) {
	r.Facts = append(r.Facts, Fact{name, fmt.Sprintf(format, args...)})
}

// client returns a command of tmshare-client on the data folder.
func (n *Node) client(command string) string {
	return fmt.Sprintf("tmshare-client %s --data %s", command, quoted(n.Data))
}

// own returns a command that both programs have.
func (n *Node) own(command string) string {
	return fmt.Sprintf("%s %s --data %s", n.Program, command, quoted(n.Data))
}

// quoted returns a word as a shell takes it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Print prints a report for people; quiet: the findings alone.
func (r *Report) Print(to io.Writer, quiet bool) error {
	w := bufio.NewWriter(to)
	for i := 0; i < len(r.Facts) && !quiet; i++ {
		fmt.Fprintf(w, "%-14s %s\n", r.Facts[i].Name, r.Facts[i].Value)
	}
	for i, f := range r.Findings {
		if i > 0 || !quiet {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n  to do: %s\n", f.Where, f.What, f.Remedy)
	}
	if len(r.Findings) == 0 && !quiet {
		fmt.Fprintln(w, "nothing is to be done")
	}
	return w.Flush()
}
