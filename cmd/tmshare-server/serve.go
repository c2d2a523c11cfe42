package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/clientcmd"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

type serveFlags struct {
	maps, prefixes, titles []string
	data, listen, baseURL  string
	tokenFile              string
	readTokenFiles         []string
	config                 server.Config
	run                    runFlags
	verbose, watch         bool
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

    tmshare-server import NAME FILE

With --watch the collections follow their files: each is published at the start,
and whenever it changes, if it says anything else than the collection. A file that
is broken or missing is reported, and the last good version stays.

Without --token-file only requests from this machine may write.`,
		Example: `  tmshare-server serve --map egov=egov.xtm
  tmshare-server serve --map gcl=GCL-2-1.xtm --lenient --listen :8080 \
      --base-url https://maps.example.org --token-file /etc/tmshare/tokens`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			told, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, end := context.WithCancel(cmd.Context())
			defer end()
			context.AfterFunc(told, func() { stop(); end() }) // from then on a second signal ends the program at once
			return f.serve(ctx)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.maps, "map", nil, "`NAME=FILE`: publish the file as collection NAME, if there is none yet (repeatable)")
	fl.BoolVar(&f.watch, "watch", false, "follow the files of --map: publish them whenever they change")
	fl.StringArrayVar(&f.prefixes, "sp", nil, "`NAME=IRI`: source locator prefix of a new collection; ends in / or #, is fixed for ever (default: base URL + /topicmaps/NAME/)")
	fl.StringArrayVar(&f.titles, "title", nil, "`NAME=TITLE` of a new collection (default: its name)")
	fl.StringVar(&f.data, "data", cli.StateDir("server"), "data `folder`")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` to listen on")
	fl.StringVar(&f.baseURL, "base-url", "", "public `URL` of the server (default: the address listened on)")
	fl.StringVar(&f.tokenFile, "token-file", "", "`file` with the tokens that may write, one on each line")
	fl.StringArrayVar(&f.readTokenFiles, "read-token-file", nil, "`NAME=FILE`: only who has one of the tokens in the file, or one that may write, may read collection NAME (repeatable)")
	fl.StringVar(&f.run.cert, "tls-cert", "", "`file` with the certificate and those that lead to its root, PEM; with --tls-key, serve HTTPS")
	fl.StringVar(&f.run.key, "tls-key", "", "`file` with the key of the certificate, PEM")
	fl.StringVar(&f.run.metrics, "metrics-listen", "", "`address` to serve /metrics at, instead of with all else")
	fl.DurationVar(&f.run.delay, "shutdown-delay", 0, "after SIGTERM, take requests for this `time` while /readyz already says no")
	fl.DurationVar(&f.run.grace, "shutdown-grace", 30*time.Second, "after that, finish what runs for at most this `time`")
	fl.IntVar(&f.config.MaxUploads, "max-uploads", 2, "`number` of maps that are read from requests at a time; others are told to try again")
	fl.DurationVar(&f.config.Patience, "patience", 30*time.Second, "`time` that a client may take to send or take 64 KiB")
	fl.BoolVar(&f.config.Lenient, "lenient", false, "read XTM 1.0 leniently: take baseName/instanceOf, an Ontopia extension, as the name's type")
	fl.Int64Var(&f.config.MaxBody, "max-body", 1<<30, "largest request body, unpacked, in `bytes`")
	fl.IntVar(&f.config.SnapshotEvery, "snapshot-every", 1000, "take a new snapshot after this `number` of changes")
	fl.DurationVar(&f.config.SnapshotAfter, "snapshot-after", 24*time.Hour, "take a new snapshot when a change has waited for it for this `time`")
	fl.IntVar(&f.config.SnapshotsKept, "snapshots-kept", 3, "keep this `number` of snapshots")
	fl.Uint64Var(&f.config.KeepEntries, "keep-entries", 0, "give up changes before the last `number` of a map (0: keep all)")
	fl.DurationVar(&f.config.KeepFor, "keep-for", 0, "give up changes older than this `time` (0: keep all)")
	fl.IntVar(&f.config.ChangesPerList, "changes-per-list", 1000, "close a change list of ResourceSync after this `number` of changes")
	fl.DurationVar(&f.config.ChangeListAfter, "change-list-after", 24*time.Hour, "close a change list of ResourceSync when its first change is this `time` old")
	fl.IntVar(&f.config.ResourceSizes.PackageItems, "package-resources", 10_000, "`number` of resources in a package of a resource dump")
	fl.Int64Var(&f.config.ResourceSizes.PackageBytes, "package-bytes", 100_000_000, "largest package of a resource dump, in `bytes`")
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
	if f.watch && len(maps) == 0 {
		return usage(errors.New("--watch: there is no --map to follow"))
	}
	if f.tokenFile != "" {
		if f.config.Tokens, err = readTokens(f.tokenFile); err != nil {
			return err
		}
	}
	readers, err := pairs("read-token-file", f.readTokenFiles)
	if err != nil {
		return err
	}
	f.config.ReadTokens = map[string][]string{}
	for _, name := range sortedKeys(readers) {
		if f.config.ReadTokens[name], err = readTokens(readers[name]); err != nil {
			return err
		}
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	f.config.Logger = log

	f.run.log = log
	if err := f.run.prepare(); err != nil {
		return err
	}
	defer f.run.close()
	f.config.MetricsElsewhere = f.run.metrics != ""
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
		f.config.BaseURL = f.run.scheme() + "://" + listener.Addr().String()
	}
	db, err := store.Open(store.Options{Dir: f.data, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	held, err := clientcmd.Hold(db, "tmshare-server serve")
	if err != nil {
		log.Warn("commands of tmshare-client do not work on the data folder while it is served", "error", err)
	}
	defer func() { held.Close(ctx) }()
	ctx, stopped := context.WithCancel(ctx) // also where serving fails
	defer stopped()
	f.config.Store = db
	s, err := server.New(f.config)
	if err != nil {
		return usage(err)
	}
	defer s.Close()
	var watched []server.Watched
	for _, name := range sortedKeys(maps) {
		c := store.Collection{Name: name, SP: cmp.Or(prefixes[name], server.DefaultPrefix(s.BaseURL, name)), Settings: store.Settings{Title: titles[name]}}
		read, err := importFile(ctx, s, c, prefixes[name], maps[name])
		if err != nil {
			return err
		}
		if read == nil && !f.watch {
			log.Info("collection exists; its file is not read (publish it with \"import\", or let --watch do so)", "collection", name, "file", maps[name])
		}
		watched = append(watched, server.Watched{Collection: name, File: maps[name], Published: read})
	}
	if err := s.Start(); err != nil {
		return err
	}
	if f.watch {
		s.Watch(watched)
	}
	return f.run.serve(ctx, s, listener)
}

// importFile creates a collection, unless it is there already. prefix is the
// source locator prefix asked for, "" where the default will do. read is the file
// as it was when it was read, nil if it was not.
func importFile(ctx context.Context, s *server.Server, c store.Collection, prefix, path string) (read fs.FileInfo, err error) {
	err = s.Store.View(c.Name, func(v *store.View) error {
		if c.SP != v.SP && prefix != "" {
			return usage(fmt.Errorf("--sp %s=%s: the collection is there already, and its prefix is %s for ever; publish the map under another name", c.Name, prefix, v.SP))
		}
		return nil
	})
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if read, err = f.Stat(); err != nil {
		return nil, err
	}
	start := time.Now()
	s.Logger.Info("importing", "collection", c.Name, "file", path)
	created, err := s.Import(ctx, c, f, path)
	if err != nil {
		return nil, err
	}
	s.Logger.Info("imported", "collection", c.Name, "topics", created.Topics, "sp", created.SP, "took", time.Since(start).Round(time.Millisecond))
	return read, nil
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
