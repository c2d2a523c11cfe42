package clientcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client/expand"
	"github.com/tmshare/tmshare/internal/control"
)

func (a *app) expand() *cobra.Command {
	return &cobra.Command{
		Use:   "expand NAME...",
		Short: "Subscribe to what derived sources are derived from",
		Long: `Subscribe to what the sources NAME... are derived from, unless the node has it
already, and print the names of what to use in their place. A NAME that is not derived
stands for itself. The derived sources stay subscribed to.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client expand all`,
		Args:    cli.Args(cobra.MinimumNArgs(1)),
		RunE: a.run(func(ctx context.Context, names []string) error {
			e, err := expand.Inputs(ctx, a.client, names)
			for _, s := range e.Added {
				a.Display.Line(fmt.Sprintf("subscribed to %s as %q", s.Feed, s.Name))
			}
			if err != nil {
				return err
			}
			return a.Tell(e, "%s", strings.Join(e.Names, ","))
		}),
	}
}

// Expand has the process that holds a data folder do "expand", and returns the names.
func Expand(ctx context.Context, program, data string, names []string) ([]string, error) {
	r := control.Local(program, append([]string{"expand", "--json", "--"}, names...))
	r.Env[cli.VariableOf(program, "data")] = data
	var err error
	outcome := r.Capture(func() (code int) { code, err = control.Call(ctx, data, r); return code })
	switch {
	case errors.Is(err, control.ErrNobody):
		return nil, fmt.Errorf(
			"no server holds the data folder %s: run it on the machine of the server, with its data folder (--data)", data)
	case err != nil:
		return nil, err
	case outcome.Code != cli.OK:
		return nil, errors.New(strings.TrimSpace(outcome.Err))
	}
	var e expand.Expanded
	if err := json.Unmarshal([]byte(outcome.Out), &e); err != nil {
		return nil, err
	}
	_, err = io.WriteString(os.Stderr, outcome.Err)
	return e.Names, err
}
