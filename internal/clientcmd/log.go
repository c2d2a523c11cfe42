package clientcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/history"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

func (a *app) log() *cobra.Command {
	var topic, since, author string
	var commits bool
	var most int
	var from time.Time
	var languages titles.Languages
	cmd := &cobra.Command{
		Use:   "log [NAME]",
		Short: "Show what was done lately, the newest first",
		Long: `Show what was done lately with the subscription NAME, or with all, the newest first:
changes applied, sources replaced, what came into quarantine and out of it. With
--topic, only what concerns the topic with this subject identifier. --since takes a
time of RFC 3339, such as 2026-11-23T14:05:00Z, a date, yesterday, or so long ago as
2h or 3d. A topic that now has a name in a language of the reader is called by it; others
have the titles of the feeds.

With --commits, list the commits of the collection NAME of the data folder, as "tmshare-server log"
does: when each was published, by whom and why, and how many topics it has added, updated and
deleted. Local statements ("local") and replicas have some.`,
		Example: `  tmshare-client log egov -n 5
  tmshare-client log --since 2026-11-23 -n 0
  tmshare-client log --topic https://psi.egov.example.org/service/dog-licence
  tmshare-client log local --commits --since yesterday`,
		Args: cli.Args(cobra.MaximumNArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) error {
			var err error
			switch {
			case commits && len(args) == 0:
				return cli.UsageError(errors.New("--commits needs the NAME of a collection"))
			case author != "" && !commits:
				return cli.UsageError(errors.New("--author needs --commits"))
			}
			if since != "" {
				if from, err = history.ParseAgo(since, time.Now()); err != nil {
					return cli.UsageError(fmt.Errorf("--since: %w", err))
				}
			}
			return nil
		},
		RunE: a.runReading(func(ctx context.Context, args []string) error {
			if commits {
				list, err := a.commits(ctx, args[0], history.Query{Since: from, Author: author, Limit: most})
				if err != nil {
					return err
				}
				return a.Answer(list, func(w io.Writer) { WriteCommits(w, list) })
			}
			list, meant := []store.Activity{}, []tmdm.Locator(nil)
			var err error
			if topic != "" {
				if meant, err = tmdm.Named(topic); err != nil {
					return fmt.Errorf("--topic: %w", err)
				}
			}
			err = a.DB.Activity(ctx, func(act store.Activity) bool {
				if act.Time.Before(from) {
					return false
				}
				if len(args) > 0 && act.Source != args[0] {
					return true
				}
				if topic != "" {
					act.Entries = slices.DeleteFunc(act.Entries, func(e sources.ActivityEntry) bool {
						return !slices.Contains(meant, tmdm.Locator(e.TopicSI))
					})
					if len(act.Entries) == 0 {
						return true
					}
				}
				list = append(list, act)
				return len(list) != most
			})
			if err == nil && len(list) == 0 && len(args) > 0 {
				_, err = a.client.Subscription(ctx, args[0]) // misspelt, perhaps
			}
			if err == nil && len(languages) > 0 {
				err = a.Merged().Call(ctx, list, languages...)
			}
			if err != nil {
				return err
			}
			return a.Answer(list, func(w io.Writer) { writeLog(w, list) })
		}),
	}
	cmd.Flags().StringVar(&topic, "topic", "", "only what concerns the topic with this `SI`")
	cmd.Flags().StringVar(&since, "since", "", "only what was done from this `time` on")
	cmd.Flags().BoolVar(&commits, "commits", false, "list the commits of a collection of the data folder")
	cmd.Flags().StringVar(&author, "author", "", "with --commits, only those by this `name`")
	cmd.Flags().IntVarP(&most, "limit", "n", 20, "show this `number` of whole rounds or commits at most; 0: all")
	cmd.Flags().IntVar(&most, "number", 20, "")
	_ = cmd.Flags().MarkHidden("number") // the name up to 0.1
	extension.LanguageFlag(cmd.Flags(), &languages)
	return cmd
}

func writeLog(w io.Writer, list []store.Activity) {
	for _, act := range list {
		note := ""
		if act.Note != "" {
			note = ": " + act.Note
		}
		fmt.Fprintf(w, "%s %s %s%s\n", feeds.FormatTime(act.Time), act.Source, act.Kind, note)
		for _, e := range act.Entries {
			fmt.Fprintf(w, "  %s", words.Titled(e.TopicSI, e.Title))
			if e.State != "" {
				fmt.Fprintf(w, " %s", e.State)
			}
			fmt.Fprintf(w, ", of %s\n", feeds.FormatTime(e.Updated))
			if e.Error != "" {
				fmt.Fprintf(w, "    %s\n", e.Error)
			}
		}
	}
}
