package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
)

type serveFlags struct {
	app              *extension.App
	prefixes, titles []string
	strict           bool
	trustedProxies   []string
	config           server.Config
	run              runFlags
	verbose          bool
	interval         time.Duration
	confirmAfter     time.Duration
	hosts            []string
	checkFormats     formats.Check
}

func serveCommand(a *extension.App) *cobra.Command {
	f := serveFlags{app: a}
	f.config.Parts = extension.Parts(a.Extensions)
	cmd := &cobra.Command{
		Use:   "serve [--map NAME=FILE]... [flags]",
		Short: "Serve the topic maps of a data folder",
		Long: `Serve the topic maps of a data folder over HTTP.

--map imports a file (XTM 1.0, 2.0 or 2.1, gzipped or not) as the collection
NAME, once: a collection that is in the data folder already goes on with what it
has, and its file is not read again. Publish a new version with

    tmshare-server import NAME FILE

A mergeMap in it merges in files below its folder, or below --root. XTM that breaks
the rules where what is meant is plain, as Ontopia writes it, is read with a warning,
unless --strict refuses it.

With --watch the collections follow their files: each is published at the start,
and whenever it changes, if it says anything else than the collection. A file that
is broken or missing, or would lose more topics than --max-delete allows, is
reported, and the last good version stays.

The subscriptions of the data folder ("tmshare-client subscribe URL --data FOLDER") are
followed, a round of each every --interval, and at once after SIGHUP. "tmshare-client" shows what all sources
and collections of the folder say together.

Under systemd (Type=notify) it tells when it is ready, and that it is alive. A socket
that a socket unit has opened takes the place of --listen.

Identifiers of topics that have none are made of --base-url when a map is first published, and
stay. To go public with what was tried here, publish the map afresh, with the public
--base-url and another --data.

What is seldom set is left out below: "tmshare-server config show" lists all settings. They may be
in a file (--config).

Without --token-file only requests from this machine may write. In a browser, people
give their token to the page /sign-in.html, and edit topics by forms then.` + cli.ServiceExits(cli.BrokenInput),
		Example: `  tmshare-server serve --map egov=egov.xtm
  tmshare-server serve --map gcl=GCL-2-1.xtm --listen :8080 \
      --base-url https://maps.example.org --token-file /etc/tmshare/tokens`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := greaterThanZero(cmd.Flags()); err != nil {
				return err
			}
			signalled, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, end := context.WithCancel(cmd.Context())
			defer end()
			context.AfterFunc(signalled, func() { stop(); end() }) // a second signal ends the program at once
			if a.Store != "" && !cmd.Flags().Changed("data") {
				a.Data = "" // processes that share a store have different folders
			}
			a.Command, a.Serving = cmd, extension.Given(cmd.Flags())
			return f.serve(ctx)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// add adds the flags of serve, those of extensions included.
func (f *serveFlags) add(fl *pflag.FlagSet) {
	f.run.AddFiles(fl)
	fl.StringArrayVar(&f.prefixes, "sp", nil,
		"`NAME=IRI`: source locator prefix of a new collection; ends in / or #, is fixed for ever (default: base URL + "+
			"/topicmaps/NAME/, then a random part where the base URL is not public)")
	f.config.Formats, f.checkFormats = f.app.Formats(), f.app.FormatFlags(fl, formats.Use{Reads: true, Several: true})
	fl.StringArrayVar(&f.titles, "title", nil, "`NAME=TITLE` of a new collection (default: its name)")
	fl.StringVar(&f.app.Data, "data", cli.StateDir("server"),
		"data `folder`; with --store, the folder of this process for temporary files (default: a new one)")
	f.app.AddStoreFlag(fl)
	fl.StringVar(&f.config.Name, "name", "",
		"`text` that pages and the feed of all maps call this server (default: the host of its base URL)")
	f.run.Serving.AddFlags(fl)
	fl.StringSliceVar(&f.trustedProxies, "trusted-proxy", nil,
		"`address` or network, such as 10.0.0.0/8, of a proxy: the log has the client that it names in X-Forwarded-For "+
			"(repeatable; this machine is trusted anyway)")
	fl.DurationVar(&f.run.delay, "shutdown-delay", 0,
		"after SIGTERM, take requests for this `time` while /readyz already says no")
	fl.DurationVar(&f.run.grace, "shutdown-grace", 30*time.Second, "after that, finish what runs for at most this `time`")
	fl.IntVar(&f.config.MaxWaiting, "max-waiting", 10_000,
		"`number` of requests that wait for a change at a time (Prefer: wait=N); others are answered at once")
	fl.IntVar(&f.config.MaxUploads, "max-uploads", 2,
		"`number` of maps that are read from requests at a time; others must try again")
	fl.DurationVar(&f.config.SlowClientTimeout, "slow-client-timeout", 30*time.Second,
		"`time` in which a client must send, or take, 64 KiB")
	fl.DurationVar(&f.config.SlowRequest, "slow-request", 10*time.Second,
		"log a request that takes longer than this `time` as a warning; 0: none")
	fl.DurationVar(&f.config.SlowClientTimeout, "patience", 30*time.Second, "the same")
	_ = fl.MarkDeprecated("patience", "use --slow-client-timeout")
	fl.DurationVar(&f.interval, "interval", 5*time.Minute,
		"`time` between two rounds of a subscription of the data folder; 0: none, \"tmshare-client sync\" does them")
	fl.DurationVar(&f.confirmAfter, "confirm-after", 10*time.Minute,
		"`time` between the first and the last reading that confirm a loss of a subscription")
	fl.StringArrayVar(&f.hosts, "host", nil,
		"let subscriptions follow links to this `host` too, besides the one subscribed to (repeatable)")
	fl.BoolVar(&f.strict, "strict", false,
		"refuse XTM that breaks rules of its version, in place of reading it as it is meant")
	fl.Int64Var(&f.config.MaxBody, "max-body", 1<<30,
		"largest map that is taken, of a request or a file, unpacked, in `bytes`")
	fl.IntVar(&f.config.Limits.Roles, "max-roles", 1000,
		"largest `number` of roles of an association that is taken: each of its players has all of them in its fragment")
	fl.DurationVar(&f.config.PublishTimeout, "publish-timeout", 10*time.Minute,
		"`time` that a publication may take once its map is read; others wait meanwhile")
	fl.TextVar(&f.config.MaxDelete, "max-delete", losses.Limit{},
		"let a new version of a map lose at most this number of topics, unless its writer says otherwise: `N`, N% or all "+
			"(default: half, and any number of fewer than 20)")
	fl.IntVar(&f.config.SnapshotEvery, "snapshot-every", 1000, "take a new snapshot after this `number` of changes")
	fl.DurationVar(&f.config.SnapshotAfter, "snapshot-after", 24*time.Hour,
		"take a new snapshot when a change has waited for it for this `time`")
	fl.IntVar(&f.config.SnapshotsKept, "snapshots-kept", 3, "keep this `number` of snapshots")
	fl.Uint64Var(&f.config.KeepEntries, "keep-entries", 0,
		"give up changes before the last `number` of a map (0: keep all)")
	fl.DurationVar(&f.config.KeepFor, "keep-for", 0, "give up changes older than this `time` (0: keep all)")
	fl.IntVar(&f.config.DocumentSize, "document-size", 100,
		"`number` of entries in an archive document, for new collections")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
	cli.Seldom(fl, "confirm-after", "document-size", "max-body", "max-roles", "max-uploads", "max-waiting",
		"publish-timeout", "shutdown-delay", "shutdown-grace", "slow-client-timeout", "slow-request", "snapshot-after",
		"snapshot-every", "snapshots-kept")
	extension.AddFlags(f.app.Extensions, fl)
}

// maybeZero are the flags of numbers and times that may be 0.
var maybeZero = []string{"interval", "keep-entries", "keep-for", "shutdown-delay", "shutdown-grace", "slow-request"}

// greaterThanZero refuses 0 in flags of numbers and times, because it would mean the default.
func greaterThanZero(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		given := f.Value.String()
		number := slices.Contains([]string{"int", "int64", "duration"}, f.Value.Type()) && !slices.Contains(maybeZero, f.Name)
		if number && (given == "0" || given == "0s") {
			err = cli.UsageError(fmt.Errorf("--%s %s: give more than 0, or leave the flag out for %s", f.Name, given,
				f.DefValue))
		}
	})
	return err
}

// leastPublication is the memory in bytes that any publication may take until it is committed, however small the limit
// of documents: a deletion changes all related topics.
const leastPublication = 256 << 20

// configure checks the flags and sets the configuration of the server. It returns the files, prefixes and titles of
// collections, by name.
func (f *serveFlags) configure() (maps, prefixes, titles map[string]string, err error) {
	fail := func(err error) (_, _, _ map[string]string, _ error) { return nil, nil, nil, err }
	maps, err = cli.Pairs("map", f.run.Maps)
	if err != nil {
		return fail(err)
	}
	for name := range maps {
		if err := store.ValidateName(name); err != nil {
			return fail(cli.UsageError(fmt.Errorf("--map: %w", err)))
		}
	}
	prefixes, err = cli.PairsOf("sp", f.prefixes, maps, fragment.ValidatePrefix)
	if err != nil {
		return fail(err)
	}
	titles, err = cli.PairsOf("title", f.titles, maps, func(string) error { return nil })
	if err != nil {
		return fail(err)
	}
	if _, err := f.checkFormats(maps); err != nil {
		return fail(cli.UsageError(err))
	}
	if f.run.Watch && len(maps) == 0 {
		return fail(cli.UsageError(errors.New("--watch: there is no --map to follow")))
	}
	if f.run.TokenFile != "" {
		if f.config.Tokens, f.config.TokenNames, err = readTokens(f.run.TokenFile); err != nil {
			return fail(err)
		}
	}
	if f.config.TrustedProxies, err = networks(f.trustedProxies); err != nil {
		return fail(cli.UsageError(fmt.Errorf("--trusted-proxy: %w", err)))
	}
	readers, err := cli.Pairs("read-token-file", f.run.ReadTokenFiles)
	if err != nil {
		return fail(err)
	}
	f.config.Lenient = !f.strict
	f.config.ReadTokens = map[string][]string{}
	for _, name := range sortedKeys(readers) {
		if f.config.ReadTokens[name], _, err = readTokens(readers[name]); err != nil {
			return fail(err)
		}
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	f.run.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	f.config.Logger = f.run.log
	return maps, prefixes, titles, nil
}

func (f *serveFlags) serve(ctx context.Context) (err error) {
	if _, err := f.app.Place(); err != nil {
		return err
	}
	maps, prefixes, titles, err := f.configure()
	if err != nil {
		return err
	}
	log := f.run.log
	if err := f.run.prepare(); err != nil {
		return err
	}
	defer f.run.close()
	f.config.MetricsElsewhere = f.run.Metrics != ""
	listener, err := f.listener()
	if err != nil {
		return err
	}
	defer listener.Close()
	ip := listener.Addr().(*net.TCPAddr).IP
	f.config.OnLoopback = ip.IsLoopback()
	if f.config.BaseURL = f.run.BaseURL; f.run.BaseURL == "" {
		if ip.IsUnspecified() {
			return cli.UsageError(
				fmt.Errorf("--listen %s: this is on all addresses of the machine; give the one that others know with --base-url",
					f.run.Listen))
		}
		f.config.BaseURL = f.run.scheme() + "://" + listener.Addr().String()
	}
	var made atomic.Pointer[server.Server]
	err = f.app.OpenAlone(ctx, store.Options{
		Dir: f.app.Data, Logger: log, MaxPublication: max(f.config.MaxBody, leastPublication),
		Dependents: []func(context.Context, *store.DB) ([]store.Dependent, error){
			func(context.Context, *store.DB) (files []store.Dependent, _ error) {
				if s := made.Load(); s != nil {
					files = s.Unpublished()
				}
				return files, nil
			},
		},
	})
	if err != nil {
		return err
	}
	held, serving := f.app.Held, false
	defer func() { err = errors.Join(err, held.End(ctx, !serving)) }()
	ctx, stopped := context.WithCancel(ctx) // also where serving fails
	defer stopped()
	follow, following, err := f.follow(ctx, held, log)
	if err != nil {
		return err
	}
	f.config.Store = held.DB
	s, err := server.New(f.config)
	if err != nil {
		return cli.UsageError(err)
	}
	defer s.Close()
	made.Store(s)
	var watched []publish.Watched
	for _, name := range sortedKeys(maps) {
		c := store.Collection{Name: name, Settings: store.Settings{Title: titles[name]}}
		w := publish.Watched{Collection: name, File: maps[name], Root: f.run.Root}
		imported, err := importFile(ctx, s, c, prefixes[name], &w)
		if err != nil {
			return err // serve nothing, because the user would think that this map is served
		}
		if !imported && !f.run.Watch {
			log.Info("collection exists; its file is not read (publish it with \"import\", or let --watch do so)", "collection",
				name, "file", maps[name])
		}
		watched = append(watched, w)
	}
	if err := s.Start(); err != nil {
		return err
	}
	if f.run.Watch {
		s.Watch(watched)
	}
	serving = true
	follow()
	defer func() {
		stopped()
		following()
	}()
	return f.run.serve(ctx, s, listener)
}

// importFile creates a collection, unless it exists. prefix is the source locator prefix of --sp, "" for the default.
// It reports whether it has imported the file.
func importFile(ctx context.Context, s *server.Server, c store.Collection, prefix string,
	w *publish.Watched) (imported bool, err error) {
	err = s.Store.View(ctx, c.Name, func(v *store.View) error {
		if prefix != "" && prefix != v.SP {
			return cli.UsageError(
				fmt.Errorf("--sp %s=%s: the collection is there already, and its prefix is %s for ever; publish the map under "+
					"another name", c.Name, prefix, v.SP))
		}
		return nil
	})
	if former, is := errors.AsType[*store.FormerError](err); is && former.Leads() {
		what := "the collection of --map was renamed: give --map with its name"
		if former.To == "" {
			what = "the collection of --map was moved to another server: give --map there"
		}
		s.Logger.Warn(what, "collection", former.To, "from", c.Name)
		w.Collection = cmp.Or(former.To, c.Name)
		return false, nil
	}
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	var given *string
	if prefix != "" {
		given = &prefix
	}
	if c.SP, err = s.PrefixFor(ctx, c.Name, given); err != nil {
		return false, err
	}
	start := time.Now()
	s.Logger.Info("importing", "collection", c.Name, "file", w.File)
	created, err := s.ImportFile(ctx, c, w)
	if errors.Is(err, store.ErrExists) { // another process has created it meanwhile
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("--map %s=%s: %w", c.Name, w.File, err)
	}
	s.Logger.Info("imported", "collection", c.Name, "topics", created.Topics, "sp", created.SP, "took",
		time.Since(start).Round(time.Millisecond))
	return true, nil
}
