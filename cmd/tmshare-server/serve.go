package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

type serveFlags struct {
	maps, prefixes, titles []string
	data, listen, baseURL  string
	tokenFile              string
	config                 server.Config
	verbose                bool
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve [--map NAME=FILE]... [flags]",
		Short: "Serve the topic maps of a data folder",
		Long: `Serve the topic maps of a data folder over HTTP.

--map imports a file (XTM 1.0, 2.0 or 2.1, gzipped or not) as the collection
NAME, once: a collection that is in the data folder already goes on with what it
has, and its file is not read again. Publish a new version with

    curl -X PUT --data-binary @new.xtm http://127.0.0.1:8080/topicmaps/NAME

Without --token-file only requests from this machine may write.`,
		Example: `  tmshare-server serve --map egov=egov.xtm
  tmshare-server serve --map gcl=GCL-2-1.xtm --lenient --listen :8080 \
      --base-url https://maps.example.org --token-file /etc/tmshare/tokens`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the program at once
			return f.serve(ctx)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.maps, "map", nil, "`NAME=FILE`: publish the file as collection NAME, if there is none yet (repeatable)")
	fl.StringArrayVar(&f.prefixes, "sp", nil, "`NAME=IRI`: source locator prefix of a new collection; ends in / or #, is fixed for ever (default: base URL + /topicmaps/NAME/)")
	fl.StringArrayVar(&f.titles, "title", nil, "`NAME=TITLE` of a new collection (default: its name)")
	fl.StringVar(&f.data, "data", cli.StateDir("server"), "data `folder`")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` to listen on")
	fl.StringVar(&f.baseURL, "base-url", "", "public `URL` of the server (default: http:// and the address listened on)")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the tokens that may write, one on each line")
	fl.BoolVar(&f.config.Lenient, "lenient", false, "read XTM 1.0 leniently: take baseName/instanceOf, an Ontopia extension, as the name's type")
	fl.Int64Var(&f.config.MaxBody, "max-body", 1<<30, "largest request body, unpacked, in `bytes`")
	fl.IntVar(&f.config.SnapshotEvery, "snapshot-every", 1000, "take a new snapshot after this `number` of changes")
	fl.IntVar(&f.config.SnapshotsKept, "snapshots-kept", 3, "keep this `number` of snapshots")
	fl.IntVar(&f.config.DocumentSize, "document-size", 100, "`number` of entries in an archive document, for new collections")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	return cmd
}

func (f *serveFlags) serve(ctx context.Context) (err error) {
	maps, err := pairs("map", f.maps)
	if err != nil {
		return err
	}
	prefixes, err := pairs("sp", f.prefixes)
	if err != nil {
		return err
	}
	titles, err := pairs("title", f.titles)
	if err != nil {
		return err
	}
	for name := range maps {
		if err := server.ValidateName(name); err != nil {
			return usage(fmt.Errorf("--map: %w", err))
		}
	}
	for _, name := range sortedKeys(prefixes) {
		if maps[name] == "" {
			return usage(fmt.Errorf("--sp %s=%s: there is no --map %s", name, prefixes[name], name))
		}
		if err := fragment.ValidatePrefix(prefixes[name]); err != nil {
			return usage(fmt.Errorf("--sp %s: %w", name, err))
		}
	}
	for _, name := range sortedKeys(titles) {
		if maps[name] == "" {
			return usage(fmt.Errorf("--title %s=%s: there is no --map %s", name, titles[name], name))
		}
	}
	if f.tokenFile != "" {
		if f.config.Tokens, err = readTokens(f.tokenFile); err != nil {
			return err
		}
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	f.config.Logger = log

	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	ip := listener.Addr().(*net.TCPAddr).IP
	f.config.OnLoopback = ip.IsLoopback()
	if f.config.BaseURL = f.baseURL; f.baseURL == "" {
		if ip.IsUnspecified() {
			return usage(fmt.Errorf("--listen %s: this is on all addresses of the machine; give the one that others know with --base-url", f.listen))
		}
		f.config.BaseURL = "http://" + listener.Addr().String()
	}
	db, err := store.Open(store.Options{Dir: f.data, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f.config.Store = db
	s, err := server.New(f.config)
	if err != nil {
		return usage(err)
	}
	defer s.Close()
	for _, name := range sortedKeys(maps) {
		c := store.Collection{Name: name, SP: cmp.Or(prefixes[name], server.DefaultPrefix(s.BaseURL, name)), Settings: store.Settings{Title: titles[name]}}
		if err := importFile(ctx, s, c, prefixes[name], maps[name]); err != nil {
			return err
		}
	}
	if err := s.TakeMissingSnapshots(); err != nil {
		return err
	}
	return run(ctx, s, listener)
}

// importFile creates a collection, unless it is there already. prefix is the
// source locator prefix asked for, "" where the default will do.
func importFile(ctx context.Context, s *server.Server, c store.Collection, prefix, path string) error {
	err := s.Store.View(c.Name, func(v *store.View) error {
		if c.SP != v.SP && prefix != "" {
			return usage(fmt.Errorf("--sp %s=%s: the collection is there already, and its prefix is %s for ever; publish the map under another name", c.Name, prefix, v.SP))
		}
		s.Logger.Info("collection exists; its file is not read (PUT a new version to publish it)", "collection", c.Name, "topics", v.Topics, "file", path)
		return nil
	})
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	start := time.Now()
	s.Logger.Info("importing", "collection", c.Name, "file", path)
	created, err := s.Import(ctx, c, f, path)
	if err != nil {
		return err
	}
	s.Logger.Info("imported", "collection", c.Name, "topics", created.Topics, "sp", created.SP, "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// run serves until ctx ends, then finishes what runs.
func run(ctx context.Context, s *server.Server, listener net.Listener) error {
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listener) }()
	s.Logger.Info("serving", "url", s.BaseURL+"/topicmaps")
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.Logger.Info("stopping")
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := h.Shutdown(grace); err != nil {
		return h.Close()
	}
	return nil
}

func usage(err error) error { return &cli.ExitError{Code: cli.Usage, Err: err} }

// pairs reads the values of a repeatable flag NAME=VALUE.
func pairs(flag string, values []string) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" || value == "" {
			return nil, usage(fmt.Errorf("--%s %s: write NAME=VALUE", flag, v))
		}
		if _, twice := out[name]; twice {
			return nil, usage(fmt.Errorf("--%s %s: %s is given twice", flag, v, name))
		}
		out[name] = value
	}
	return out, nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func readTokens(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tokens, err := server.ReadTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokens, nil
}
