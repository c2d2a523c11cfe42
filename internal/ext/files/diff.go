package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/nodes"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/words"
	"github.com/tmshare/tmshare/tmdm"
)

// maxDifferences is the default number of listed topics.
const maxDifferences = 50

// comparison is the result of diff as JSON.
type comparison struct {
	Equal       bool                 `json:"equal"`
	A           compared             `json:"a"`
	B           compared             `json:"b"`
	Differences []mapdiff.Difference `json:"differences"`
}

type compared struct {
	File         string `json:"file"`
	Topics       int    `json:"topics"`
	Associations int    `json:"associations"`
}

func (c *commands) diff() *cobra.Command {
	var f fileFlags
	var limit int
	var languages titles.Languages
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two files, topic by topic",
		Long: `Compare the topic maps in the files A and B and say what differs, topic by topic:
identifiers, types, names and their variants, occurrences, associations, and who
reifies them. A changed association is listed with each of its players.

A topic of A is the one of B that shares a subject identifier or a subject locator
with it. Those without are found by what is said of them and by their ids in the
files, which otherwise do not matter: item identifiers are not compared. Nor are the
subject identifiers that servers have made of such ids, in copies from them. Within
copies from one server, they count.

Both files are read as if they stood in the place of A, or on --base. Of the two,
one may be "-".

` + aboutFiles + `` + cli.Exits(cli.Differs, cli.BrokenInput),
		Example: `  tmshare-client diff egov.xtm egov-new.xtm
  tmshare-client diff --json old.xtm.gz new.xtm.gz | jq '.differences[].topic'
  curl -s http://127.0.0.1:8080/topicmaps/egov/snapshots/current.xtm21 | tmshare-client diff egov.xtm -`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: c.Apart(func(_ context.Context, args []string) error {
			return c.diffFiles(&f, args[0], args[1], limit, languages)
		}),
	}
	extension.LanguageFlag(cmd.Flags(), &languages)
	f.add(c, cmd, formats.Use{Reads: true})
	cmd.Flags().IntVarP(&limit, "limit", "n", maxDifferences,
		"list this `number` of topics at most, 0: all; --json lists all anyway")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if args[0] == "-" && args[1] == "-" {
			return cli.UsageError(errors.New("only one of the two files can be standard input"))
		}
		return c.check(&f)
	}
	return cmd
}

func (c *commands) diffFiles(f *fileFlags, pathA, pathB string, limit int, languages titles.Languages) error {
	inA, err := c.read(f, pathA)
	if err != nil {
		return err
	}
	s, err := c.source(f, pathB)
	if err != nil {
		return err
	}
	s.Base = inA.Base
	inB, err := c.readSource(s)
	if err != nil {
		return err
	}
	mapdiff.ForgetAssigned(inA.Map, inB.Map, inA.Base)
	languages = mapdiff.Languages(languages, inA.Map, inB.Map)
	differences, err := mapdiff.Compare(inA.Map, inB.Map, inA.Base, languages...)
	if err != nil {
		return err
	}
	a, b, inWords := comparedOf(inA), comparedOf(inB), call(differences, languages, inA, inB)
	err = c.Answer(comparison{len(differences) == 0, a, b, append([]mapdiff.Difference{}, differences...)},
		func(w io.Writer) { writeDifferences(w, a, b, inWords(), limit) })
	if err != nil || len(differences) == 0 {
		return err
	}
	exit := &cli.ExitError{Code: cli.Differs}
	if c.Quiet && !c.JSON { // nothing was printed yet
		exit.Err = fmt.Errorf("%s and %s differ", inA.Name, inB.Name)
	}
	return exit
}

// call titles the topics of the differences, also those without names, by their labels or statements. It returns a
// function that puts statements into words: terms without names in the maps, and topics without a name by their
// statements. Nothing fails in memory.
func call(all []mapdiff.Difference, languages []string, documents ...*formats.Document) func() []mapdiff.Difference {
	var maps []fragment.Lookup
	for _, d := range documents {
		// One with topics that have no subject identifier was no graph. It has no such nodes.
		if m, err := fragment.NewMap(d.Map, string(d.Base)); err == nil {
			maps = append(maps, m)
		}
	}
	r := nodes.NewReader(nodes.SourceOf(languages, maps...))
	for i := range all {
		if title, _ := r.Title(tmdm.Locator(all[i].Topic)); title != words.Short(all[i].Topic) {
			all[i].Title = title
		}
	}
	word := func(l tmdm.Locator) (string, error) {
		if words.IsOpaque(string(l)) {
			return r.Title(l)
		}
		for _, d := range documents {
			if t := d.Map.TopicBySubjectIdentifier(l); t != nil && mapdiff.Title(t) != "" {
				return "", nil
			}
		}
		return words.Word(string(l)), nil
	}
	return func() []mapdiff.Difference {
		for i := range all {
			all[i].A, _ = mapdiff.Call(all[i].A, word)
			all[i].B, _ = mapdiff.Call(all[i].B, word)
		}
		return all
	}
}

func comparedOf(d *formats.Document) compared {
	topics, associations := count(d.Map)
	return compared{d.Name, topics, associations}
}

func writeDifferences(w io.Writer, a, b compared, list []mapdiff.Difference, limit int) {
	if len(list) == 0 {
		fmt.Fprintf(w, "%s and %s are equal: %d topics, %d associations\n", a.File, b.File, a.Topics, a.Associations)
		return
	}
	topics := "1 topic"
	if len(list) != 1 {
		topics = fmt.Sprintf("%d topics", len(list))
	}
	fmt.Fprintf(w, "%s and %s differ in %s (- only in %s, + only in %s)\n", a.File, b.File, topics, a.File, b.File)
	for i, d := range list {
		if i == limit && limit > 0 {
			fmt.Fprintf(w, "… and %d more topics; --limit 0 lists them all\n", len(list)-i)
			return
		}
		where := map[mapdiff.Where]string{mapdiff.OnlyA: ", only in " + a.File, mapdiff.OnlyB: ", only in " + b.File}[d.In]
		if d.Topic == "" {
			fmt.Fprintf(w, "the topic map\n")
		} else {
			fmt.Fprintf(w, "%s%s\n", words.Titled(d.Topic, d.Title), where)
		}
		for _, s := range d.A {
			fmt.Fprintf(w, "  - %s\n", s.Text)
		}
		for _, s := range d.B {
			fmt.Fprintf(w, "  + %s\n", s.Text)
		}
	}
}
