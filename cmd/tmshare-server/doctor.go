package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/doctor"
	"github.com/tmshare/tmshare/internal/extension"
)

func doctorCommand(a *extension.App) *cobra.Command {
	var s doctor.Serving
	cmd := clientcmd.DoctorCommand(a, `Look at a server: whether its data folder is whole, of this format, closed to others
and on a disk with space; whether it runs, and answers under its own address; whether
its settings let others read tokens or write; whether collections lack inputs; how
what it follows is, as "tmshare-client doctor" says.

Give it the flags and the environment that "serve" has.`, `  tmshare-server doctor --listen :8080 \
    --base-url https://maps.example.org --token-file /etc/tmshare/tokens
  (set -a; . /etc/default/tmshare-server; tmshare-server doctor --data /var/lib/tmshare/server)`, &s)
	servingFlags(cmd.Flags(), &s)
	return cmd
}

// servingFlags adds the flags that say how a server is reached.
func servingFlags(fl *pflag.FlagSet, s *doctor.Serving) {
	fl.StringVar(&s.Listen, "listen", "127.0.0.1:8080", "`address` that the server listens on")
	fl.StringVar(&s.BaseURL, "base-url", "", "public `URL` of the server (default: the address listened on)")
	fl.StringVar(&s.TokenFile, "token-file", "", "`file` with the tokens that may write, one on each line, or NAME: TOKEN")
	fl.StringArrayVar(&s.ReadTokenFiles, "read-token-file", nil,
		"`NAME=FILE`: only who has one of the tokens in the file, or one that may write, may read collection NAME "+
			"(repeatable)")
	fl.StringVar(&s.Cert, "tls-cert", "",
		"`file` with the certificate and those that lead to its root, PEM; with --tls-key, serve HTTPS")
	fl.StringVar(&s.Key, "tls-key", "", "`file` with the key of the certificate, PEM")
	fl.StringVar(&s.Metrics, "metrics-listen", "",
		"`address` to serve /metrics and /status at, for all (default: /metrics with all else, for this machine and write "+
			"tokens only; no /status)")
}
