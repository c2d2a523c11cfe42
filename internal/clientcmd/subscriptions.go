package clientcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/checkpoint"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

func (a *app) subscribe() *cobra.Command {
	var o client.SubscribeOptions
	var filterOf func() (json.RawMessage, error)
	cmd := &cobra.Command{
		Use:   "subscribe URL [URL…]",
		Short: "Subscribe to a collection",
		Long: `Subscribe to the collection at URL: that of a server's overview (/topicmaps), of a
topic map feed or of a fragments feed. An overview with several collections is
answered with the list. The next sync loads the map.

Further URLs are those of replicas of the same collection ("replicate"). Each round
follows the address with the newest changes whose log goes on from what is held here.
The first URL is the authority: only by its word is a history given up for another.

What is said here of --host and --strict holds for each later round of the
subscription.

Other ways to follow a source:
  --protocol atom-pmh  a feed of records (Atom Feed Protocol for Metadata
                       Harvesting), of any producer whose records are topics in
                       XTM. It is recognised where the URL has the word records in
                       it; with the flag, the URL may also be one of those above.
  --protocol resourcesync
                       the lists of a ResourceSync Source (ANSI/NISO Z39.99) whose
                       resources are topics in XTM. It is recognised where the URL
                       has the word resourcesync in it; with the flag, URL is any
                       document of the Source, something that links to one, or the
                       server's address. Lengths and hashes are verified.
  --protocol ldes      an event stream (LDES, TREE) of any publisher. It is recognised
                       where the URL has the word ldes in it; with the flag, URL is
                       the root of a stream, or something that links to one.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client subscribe http://127.0.0.1:8080/topicmaps/egov
  tmshare-client subscribe --protocol resourcesync https://maps.example.org/
  tmshare-client subscribe --as members --token-file token https://maps.example.org/topicmaps/members`,
		Args: cli.Args(cobra.MinimumNArgs(1)),
		PreRunE: func(*cobra.Command, []string) error {
			if o.Protocol != "" && !slices.Contains(client.ProtocolNames(extension.Protocols(a.Extensions)), o.Protocol) {
				return cli.UsageError(fmt.Errorf("--protocol %s: there are %s", o.Protocol,
					strings.Join(client.ProtocolNames(extension.Protocols(a.Extensions)), ", ")))
			}
			if err := checkKey(o.Key); err != nil {
				return err
			}
			if err := fragment.ValidatePrefix(o.SP); o.SP != "" && err != nil {
				return cli.UsageError(fmt.Errorf("--sp: %w", err))
			}
			var err error
			if o.Filter, err = filterOf(); err != nil {
				return err
			}
			if o.Format != "" {
				if _, err := a.Formats().Served().Named(o.Format); err != nil {
					return cli.UsageError(fmt.Errorf("--format: %w", err))
				}
			}
			return nil
		},
		RunE: a.subscribing(&o, func(s *store.Subscription) {
			a.Printf("subscribed to %s as %q; its statements begin with %s\n", s.FragmentsFeed, s.Name, s.SP)
			if len(s.DerivedFrom) > 0 {
				a.Printf("the source is derived from %s\n", strings.Join(s.DerivedFrom, " "))
			}
			if len(s.Duplicates) > 0 && len(o.Replicas) == 0 {
				a.Printf("others serve it as well: %s (\"unsubscribe\", and \"subscribe\" with these after the first address, "+
					"to go on while it is away)\n", strings.Join(s.Duplicates, " "))
			}
			if s.Key != "" {
				a.Printf("the source is signed, and is followed only while it is, by the key %s\n", s.Key)
			}
		}),
	}
	fl := cmd.Flags()
	subscribeFlags(fl, &o, "subscription")
	filterOf = a.FilterFlags(fl)
	fl.StringVar(&o.SP, "sp", "",
		"source locator prefix, an `IRI`, for a feed that declares none (default: made of its URL)")
	fl.StringVar(&o.Protocol, "protocol", "", "`protocol` to follow the source by: "+
		strings.Join(client.ProtocolNames(extension.Protocols(a.Extensions)), ", ")+" (default: what the URL shows)")
	fl.StringVar(&o.Format, "format", "",
		"`format` to ask for alone: xtm2.1, xtm1, or in RDF turtle, ntriples or rdfxml (default: the best that the "+
			"server has)")
	cli.OneOf(cmd.Flags(), "protocol", client.ProtocolNames(extension.Protocols(a.Extensions))...)
	cli.OneOf(cmd.Flags(), "format", a.Formats().Served().Names()...)
	fl.BoolVar(&o.AllowSharedPrefix, "allow-shared-prefix", false,
		"take a source though its source locator prefix is that of another server's")
	fl.BoolVar(&o.Again, "again", false,
		"take a source that another subscription follows in the same way, under another name (--as)")
	return cmd
}

// subscribeFlags adds the flags that "subscribe" and "replicate" share.
func subscribeFlags(fl *pflag.FlagSet, o *client.SubscribeOptions, what string) {
	fl.StringVar(&o.Name, "as", "", "`name` of the "+what+" (default: from the URL)")
	fl.StringVar(&o.Key, "key", "",
		"public `key` that has to sign the checkpoints of the source (default: the one that has signed the first)")
	fl.StringVar(&o.TokenFile, "token-file", "",
		"`file` with the token that the server wants of readers; it is read in each round")
	fl.StringVar(&o.CACert, "ca-cert", "", caCertUsage)
	fl.BoolVar(&o.AcceptMoves, "accept-moves", false, acceptMovesUsage)
}

const (
	caCertUsage = "`file` with certificates, in PEM, of authorities that may sign that of the server, besides those " +
		"that this machine trusts; it is read in each round"
	acceptMovesUsage = "follow the source where it moves for good (301, 308), if its log there goes on; " +
		"a token is shown to no other server for it"
)

// subscribing makes the body of a command that subscribes. say prints the message about the subscription.
func (a *app) subscribing(o *client.SubscribeOptions,
	say func(*store.Subscription)) func(*cobra.Command, []string) error {
	return a.runWith(store.Create, func(ctx context.Context, args []string) error {
		o.CACert = a.Request.Path(o.CACert)
		o.Key, o.TokenFile, o.Hosts, o.Strict, o.Replicas = strings.TrimSpace(o.Key), a.Request.Path(o.TokenFile), a.Hosts,
			a.strictly(), args[1:]
		s, err := a.client.Subscribe(ctx, args[0], *o)
		choice, is := errors.AsType[*follow.ChoiceError](err)
		switch {
		case is && a.JSON:
			return errors.Join(a.Print(choice.Collections), cli.Exit(cli.Usage))
		case err != nil:
			return err
		case a.JSON:
			return a.Print(status.Describe(s, nil, a.client.Now()))
		}
		say(s)
		return nil
	})
}

// strictly returns the flag for strict reading of XTM, or nil if it is not on the command line.
func (a *app) strictly() *bool {
	if cli.OnCommandLine(a.Command.Flags(), "strict") {
		return &a.Strict
	}
	return nil
}

func (a *app) unsubscribe() *cobra.Command {
	return &cobra.Command{
		Use:   "unsubscribe NAME",
		Short: "End a subscription, and forget what its source says",
		Long: `End the subscription NAME. What its source says goes from the merged map; other
sources and local edits keep what is theirs. What you have rejected of it is
forgotten too. A round that another command does is
waited for, one of "watch" is ended.`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			s, err := a.client.Subscription(ctx, args[0])
			if err != nil {
				return err
			}
			if w := a.Held.Watcher.Load(); w != nil {
				w.Yield(args[0]) // a round of a dead source may take minutes
			}
			kept, err := a.DB.Dependents(ctx, args[0])
			if err == nil {
				err = a.client.Unsubscribe(ctx, args[0])
			}
			if err != nil {
				return err
			}
			for _, d := range kept {
				a.Display.Line(d.Orphaned())
			}
			return a.Tell(map[string]string{"name": s.Name, "feed": s.FragmentsFeed}, "%s: unsubscribed from %s", s.Name,
				s.FragmentsFeed)
		}),
	}
}

func (a *app) source() *cobra.Command {
	var accept bool
	set := &cobra.Command{
		Use:   "set-url NAME URL [URL…]",
		Short: "Follow a source at another address",
		Long: `Follow the source of the subscription NAME at URL from now on: it has moved. The copy, what is rejected or in
quarantine, and what is proven stay. Further URLs are those of replicas, in place of those that there
were; "add-url" and "remove-url" change single ones.

The log at URL must go on from what is held here. If it does not, nothing is changed; --accept follows it
all the same, as a source that was put back: then it is in doubt until it is confirmed. The source locator
prefix must be the same in any case.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client source set-url egov https://maps.example.org/topicmaps/egov`,
		Args:    cli.Args(cobra.MinimumNArgs(2)),
		RunE: a.run(func(ctx context.Context, args []string) error {
			s, err := a.client.SetURL(ctx, args[0], args[1:], accept)
			if err != nil {
				return err
			}
			return a.Tell(status.Describe(s, nil, a.client.Now()), "%s: follows %s from now on", s.Name, s.FragmentsFeed)
		}),
	}
	set.Flags().BoolVar(&accept, "accept", false, "follow it though its log does not go on from what is held here")
	cmd := &cobra.Command{
		Use: "source", Short: "Say where the source of a subscription is",
		Args: cli.Args(cobra.NoArgs), RunE: oneOf("what to do", "set-url, add-url, remove-url or set"),
	}
	cmd.AddCommand(set, a.changeURL("add-url", "Also follow a source at the address of a replica"),
		a.changeURL("remove-url", "Stop following a source at the address of a replica"), a.setSource())
	return cmd
}

// changeURL makes the command that adds addresses of replicas, or removes them.
func (a *app) changeURL(name, short string) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME URL...", Short: short, Args: cli.Args(cobra.MinimumNArgs(2)),
		Long: short + `. The addresses are those of feeds, as "status -v" shows them, or of
collections that have one.` + cli.Exits(cli.Unreachable),
		RunE: a.run(func(ctx context.Context, args []string) error {
			add, remove := args[1:], args[1:]
			if name == "add-url" {
				remove = nil
			} else {
				add = nil
			}
			s, err := a.client.ChangeAddresses(ctx, args[0], add, remove)
			if err != nil {
				return err
			}
			return a.Tell(status.Describe(s, nil, a.client.Now()), "%s: has %d addresses from now on", s.Name,
				max(len(s.Addresses), 1))
		}),
	}
}

func (a *app) setSource() *cobra.Command {
	var acceptMoves, whole bool
	var caCert string
	cmd := &cobra.Command{
		Use: "set NAME [flags]", Short: "Change settings of a subscription", Args: cli.Args(cobra.ExactArgs(1)),
		Example: `  tmshare-client source set egov --accept-moves
  tmshare-client source set animals --within http://example.org/pets/dog`,
	}
	fl := cmd.Flags()
	fl.StringVar(&caCert, "ca-cert", "", caCertUsage+`; "" for none`)
	fl.BoolVar(&acceptMoves, "accept-moves", false, acceptMovesUsage)
	fl.BoolVar(&whole, "whole", false, "show all of the source again in the merged view")
	filterOf := a.FilterFlags(fl)
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		var file *string
		filter, err := filterOf()
		moves := a.Command.Flags().Changed("accept-moves")
		if err != nil {
			return err
		}
		if whole && filter != nil {
			return cli.UsageError(errors.New("--whole ends the filter of the subscription: leave out the flags of another one"))
		}
		if a.Command.Flags().Changed("ca-cert") {
			caCert = a.Request.Path(caCert)
			file = &caCert
		}
		if !moves && !whole && file == nil && filter == nil {
			return cli.UsageError(errors.New("give at least one setting"))
		}
		if _, err := a.client.Subscription(ctx, args[0]); err != nil {
			return err
		}
		if filter != nil {
			if err := a.Merged().Check(ctx, args[0], filter); err != nil {
				return err
			}
		}
		s, err := a.client.Set(ctx, args[0], file, func(s *store.Subscription) {
			if moves {
				s.AcceptMoves = acceptMoves
			}
			if whole || filter != nil {
				s.Filter = filter
			}
		})
		if err != nil {
			return err
		}
		return a.Tell(status.Describe(s, nil, a.client.Now()), "%s: set", s.Name)
	})
	return cmd
}

func (a *app) trust() *cobra.Command {
	var key string
	var accept bool
	cmd := &cobra.Command{
		Use:   "trust NAME [--accept | --key KEY]",
		Short: "Show the signed checkpoints of a source, or accept what it states now",
		Long: `Show the checkpoint of the subscription NAME that was accepted last, and the one that
its source states now. A checkpoint says how many changes the source has published,
and is signed by its owner. A source that has stated one is followed only while its
later checkpoints prove that nothing published before was altered.

Where a checkpoint is refused, ask the owner of the source what has happened: it may
have been restored from a backup, or sign with a new key. Do not ask by way of the
server itself.
  --accept    go on from what the source states now, also if it is not signed
  --key KEY   go on from what it states now, if KEY has signed it

With exit code 0 what is stated is accepted; with 1 it is refused.` + cli.Exits(cli.Unreachable),
		Example: `  tmshare-client trust egov
  tmshare-client trust egov --key maps.example.org+1c8f34d5+AcE…`,
		Args: cli.Args(cobra.ExactArgs(1)),
		PreRunE: func(*cobra.Command, []string) error {
			if accept && key != "" {
				return cli.UsageError(errors.New("give --accept or --key, not both"))
			}
			return checkKey(key)
		},
		RunE: a.run(func(ctx context.Context, args []string) error {
			t, err := a.client.Trust(ctx, args[0], strings.TrimSpace(key), accept)
			if err != nil {
				return err
			}
			if w := a.Held.Watcher.Load(); w != nil && t.Accepted {
				w.StartRound()
			}
			if a.JSON {
				err = a.Print(t)
			} else {
				a.printTrust(t)
			}
			if err == nil && t.Refused != "" && !t.Accepted {
				err = &cli.ExitError{Code: cli.Failed}
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&accept, "accept", false, "go on from what the source states now")
	cmd.Flags().StringVar(&key, "key", "", "go on from what the source states now, if this public `key` has signed it")
	return cmd
}

// checkKey checks the value of a flag --key.
func checkKey(key string) error {
	if key == "" {
		return nil
	}
	if err := checkpoint.CheckPublic(strings.TrimSpace(key)); err != nil {
		return cli.UsageError(fmt.Errorf("--key: %w", err))
	}
	return nil
}

func (a *app) printTrust(t *client.Trust) {
	show := func(what, key, signed string) {
		if signed == "" {
			a.Printf("  %s: none\n", what)
			return
		}
		a.Printf("  %s, by the key %s\n    %s\n", what, key, strings.ReplaceAll(strings.TrimSpace(signed), "\n", "\n    "))
	}
	a.Printf("%s\n", t.Name)
	show("accepted last", t.Key, t.Checkpoint)
	show("stated now", t.StatedKey, t.StatedCheckpoint)
	switch {
	case t.Accepted:
		a.Printf("  what is stated now is accepted\n")
	case t.Refused != "":
		a.Printf("  what is stated now is refused: %s\n", t.Refused)
	case t.StatedCheckpoint == "":
		a.Printf("  the source is not signed\n")
	default:
		a.Printf("  what is stated now goes on from what was accepted\n")
	}
}
