package clientcmd

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/doctor"
	"github.com/tmshare/tmshare/internal/extension"
)

// DoctorCommand returns the command of tmshare-server that looks at a node as a whole.
func DoctorCommand(of *extension.App, long, example string, serving *doctor.Serving) *cobra.Command {
	a := &app{App: of}
	return a.OnFolder(a.doctor(long, example, serving))
}

func (a *app) doctor(long, example string, serving *doctor.Serving) *cobra.Command {
	n := doctor.Node{Program: a.Request.Program, Serving: serving, Now: time.Now}
	cmd := &cobra.Command{
		Use: "doctor", Short: "Say what is not as it should be, and what mends it", Example: example,
		Long: long + `

Each finding is printed with what is to be done. Nothing is changed.

Exit codes: 0 nothing is to be done, 4 there are findings, 1 error.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: a.Apart(func(ctx context.Context, _ []string) error {
			if a.Store != "" {
				return cli.UsageError(
					errors.New("doctor looks at a data folder, not at a database: leave --store out. To look at a store in a " +
						"database, run \"tmshare-server check --store URL\" and \"tmshare-client status --store URL\", and ask " +
						"/readyz of its servers"))
			}
			if a.Data == "" {
				return cli.ErrNoData
			}
			n.Data, n.Run = a.Data, a.captured
			ctx, stop := cli.UntilInterrupted(ctx)
			defer stop()
			r := doctor.Look(ctx, &n)
			err := ctx.Err()
			if err == nil && a.JSON {
				err = a.Print(r)
			} else if err == nil {
				err = r.Print(a.Command.OutOrStdout())
			}
			if err == nil && len(r.Findings) > 0 {
				err = cli.Exit(cli.Differs)
			}
			return err
		}),
	}
	fl := cmd.Flags()
	fl.DurationVar(&n.MaxLag, "max-lag", time.Hour, "a copy that may be older than this `time` is a finding")
	fl.BoolVar(&n.Thorough, "thorough", false, "read and compare all of the data folder, as \"check\" does")
	fl.BoolVar(&n.Offline, "offline", false, "ask no servers")
	return cmd
}

// captured executes a command of tmshare-client on the data folder.
func (a *app) captured(ctx context.Context, args ...string) control.Outcome {
	r := *a.Request
	r.Program, r.Args = program, append(args, "--data", a.Data)
	return r.Capture(func() int { return a.Execute(ctx, &r, nil) })
}

// subscriptionNames returns the names of the subscriptions, for shells that complete them.
func (a *app) subscriptionNames(ctx context.Context, _ *cobra.Command) (names []string) {
	var all []subscription
	_ = json.Unmarshal([]byte(a.captured(ctx, "subscriptions", "--json").Out), &all) // a shell shows no errors
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}

const (
	clientDoctor = `Look at the data folder and at what it follows: whether the folder is whole, of this
format, closed to others and on a disk with space; whether each subscription is in
step, proven, without quarantine, and not old; whether its server answers, and its
clock agrees with the one here.`

	clientDoctorExample = `  tmshare-client doctor
  tmshare-client doctor --json | jq -r '.findings[] | [.where, .remedy] | @tsv'`
)
