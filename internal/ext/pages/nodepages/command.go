package nodepages

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/control"
	"github.com/tmshare/tmshare/internal/extension"
)

// Command returns the command "ui".
func Command(a *extension.App) *cobra.Command {
	var listen string
	var noOpen bool
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Look at the data folder in a browser",
		Long: `Serve pages about the data folder to a browser of this machine, print their address,
and open it: what the node publishes and follows, each subscription with plots of a
day and what is in quarantine; topics of the merged map with who says what. Buttons
retry and forget what is in quarantine, reject statements of sources and show them
again. It goes on until it is interrupted.

The folder stays free: each page does what commands do, whether "watch" or "serve"
holds the folder or nobody does.

The address has a key. Whoever knows it, and can reach this machine's loopback
address, can see and do all that. It ends with the program.` + cli.ServiceExits(),
		Example: `  tmshare-client ui
  tmshare-client ui --listen 127.0.0.1:8099 --no-open`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.Command = cmd
			return serveUI(cmd.Context(), a, listen, !noOpen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0",
		"loopback `address` to serve the pages at; port 0: any that is free")
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the address, and open no browser")
	return cmd
}

func serveUI(ctx context.Context, a *extension.App, listen string, open bool) error {
	ctx, stop := cli.UntilInterrupted(ctx)
	defer stop()
	onFolder := commandsOn(a)
	if _, err := onFolder(ctx, "status", "--json"); err != nil {
		return err // as of a folder that is not there
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--listen: %w", err))
	}
	defer listener.Close()
	pages, err := New(onFolder, listener.Addr(), a.Logger())
	if err != nil {
		return cli.UsageError(fmt.Errorf("--listen: %w", err))
	}
	fmt.Fprintln(a.Command.OutOrStdout(), pages.Address())
	if open {
		openBrowser(pages.AddressOnce())
	}
	return pages.Serve(ctx, listener)
}

// commandsOn returns a function that executes commands on the data folder of a command line, as if they were typed.
func commandsOn(a *extension.App) Run {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		r := *a.Request
		r.Args = append(folderFlags(a), args...)
		r.Env = map[string]string{}
		for name, value := range a.Request.Env {
			if name != "TMSHARE_JSON" && name != "TMSHARE_QUIET" && name != "TMSHARE_VERBOSE" {
				r.Env[name] = value
			}
		}
		return printed(ctx, &r, nil, a.Execute)
	}
}

// printed executes a command for a page and returns its output. held is the store that the command uses in this
// process; nil: it opens one.
func printed(ctx context.Context, r *control.Request, held *extension.Holding,
	execute extension.Execute) ([]byte, error) {
	outcome := r.Capture(func() int { return execute(ctx, r, held) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if slices.Contains([]int{cli.OK, cli.Quarantined, cli.Differs}, outcome.Code) {
		return []byte(outcome.Out), nil
	}
	const program = "tmshare-client"
	message := strings.TrimSpace(strings.ReplaceAll(outcome.Err, "\n"+program+": ", "\n"))
	return nil, &CommandError{Text: strings.TrimPrefix(message, program+": ")}
}

// folderFlags are those of this command line that others need, too.
func folderFlags(a *extension.App) []string {
	flags := []string{"--data=" + a.Request.Path(a.Data)}
	if a.Store != "" {
		flags = append(flags, "--store="+a.Store)
	}
	for _, host := range a.Hosts {
		flags = append(flags, "--host="+host)
	}
	return append(flags, fmt.Sprintf("--strict=%t", a.Strict), fmt.Sprintf("--max-entries=%d", a.MaxEntries))
}

// openBrowser opens an address in a browser, if there is one. It ignores failures because the address was also printed.
func openBrowser(address string) {
	var cmd *exec.Cmd
	switch runtime.GOOS {
	case "windows":
		cmd = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	case "darwin":
		cmd = exec.Command("open", address)
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return
		}
		cmd = exec.Command("xdg-open", address)
	}
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
