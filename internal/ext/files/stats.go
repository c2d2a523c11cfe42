package files

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/formats/mapdiff"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// statistics are the counts of the stats command by the data model (ISO 13250-2): topics that are only referred to
// count, duplicates do not.
type statistics struct {
	File    string       `json:"file"`
	Base    tmdm.Locator `json:"base"`
	Version xtm.Version  `json:"version"` // of XTM; "" for other formats
	Syntax  string       `json:"syntax"`  // in words

	Topics                   int `json:"topics"`
	WithoutSubjectIdentifier int `json:"topicsWithoutSubjectIdentifier"`
	WithoutName              int `json:"topicsWithoutName"`
	WithoutType              int `json:"topicsWithoutType"`
	Names                    int `json:"names"`
	Variants                 int `json:"variants"`
	Occurrences              int `json:"occurrences"`
	Associations             int `json:"associations"` // without type-instance relations
	Roles                    int `json:"roles"`        // of these
	TypeInstances            int `json:"typeInstances"`
	Scopes                   int `json:"scopes"` // different ones, the unconstrained one left out
	Themes                   int `json:"themes"` // different topics in them

	Reified reified `json:"reified"`

	Types            usage `json:"types"`
	AssociationTypes usage `json:"associationTypes"`
	OccurrenceTypes  usage `json:"occurrenceTypes"`
	NameTypes        usage `json:"nameTypes"`
}

// reified counts constructs that have a reifier.
type reified struct {
	TopicMap     int `json:"topicMap"`
	Names        int `json:"names"`
	Variants     int `json:"variants"`
	Occurrences  int `json:"occurrences"`
	Associations int `json:"associations"`
	Roles        int `json:"roles"`
}

// usage is the number of topics used in one way, with the most used ones.
type usage struct {
	Total int   `json:"total"`
	Top   []use `json:"top"`
}

type use struct {
	Topic string `json:"topic"`
	Title string `json:"title,omitempty"`
	Count int    `json:"count"`
}

func (c *commands) stats() *cobra.Command {
	var f fileFlags
	var top int
	cmd := &cobra.Command{
		Use:   "stats FILE",
		Short: "Count what is in a file",
		Long: `Count what is in the topic map in FILE, by the data model: topics that are only
referred to count, and what the file says twice counts once. That a topic has a type
is not counted as an association, but as a type-instance relation.

` + aboutFiles + `` + cli.Exits(cli.BrokenInput),
		Example: `  tmshare-client stats egov.xtm
  tmshare-client stats --top 0 GCL-2-1.xtm
  tmshare-client stats --json mondial.xtm.gz | jq .topics`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: c.Apart(func(_ context.Context, args []string) error {
			d, err := c.read(&f, args[0])
			if err != nil {
				return err
			}
			st := statisticsOf(d, top)
			return c.Answer(st, st.write)
		}),
	}
	f.add(c, cmd, formats.Use{Reads: true})
	cmd.Flags().IntVar(&top, "top", 10, "list this `number` of types of each kind, 0: all")
	return cmd
}

// counter counts the items of a map.
type counter struct {
	statistics
	scopes, themes                     map[any]bool
	types, assocs, occurrences, naming map[*tmdm.Topic]int
}

func statisticsOf(d *formats.Document, top int) *statistics {
	c := counter{
		statistics: statistics{File: d.Name, Base: d.Base, Version: d.Version, Syntax: d.Syntax()},
		scopes:     map[any]bool{}, themes: map[any]bool{},
		types: map[*tmdm.Topic]int{}, assocs: map[*tmdm.Topic]int{}, occurrences: map[*tmdm.Topic]int{},
		naming: map[*tmdm.Topic]int{},
	}
	c.reifies(d.Map, &c.Reified.TopicMap)
	for t := range d.Map.Topics() {
		c.topic(t)
	}
	for a := range d.Map.Associations() {
		c.association(a)
	}
	c.Scopes, c.Themes = len(c.scopes), len(c.themes)
	languages := mapdiff.Languages(nil, d.Map)
	c.Types = usageOf(c.types, d.Base, top, languages)
	c.AssociationTypes = usageOf(c.assocs, d.Base, top, languages)
	c.OccurrenceTypes = usageOf(c.occurrences, d.Base, top, languages)
	c.NameTypes = usageOf(c.naming, d.Base, top, languages)
	return &c.statistics
}

func (c *counter) topic(t *tmdm.Topic) {
	c.Topics++
	if len(t.SubjectIdentifiers()) == 0 {
		c.WithoutSubjectIdentifier++
	}
	if len(t.Names()) == 0 {
		c.WithoutName++
	}
	typed := false
	for range t.Types() {
		typed = true
	}
	if !typed {
		c.WithoutType++
	}
	for _, n := range t.Names() {
		c.Names++
		c.naming[n.Type()]++
		c.scope(n)
		c.reifies(n, &c.Reified.Names)
		for _, v := range n.Variants() {
			c.Variants++
			c.scope(v)
			c.reifies(v, &c.Reified.Variants)
		}
	}
	for _, o := range t.Occurrences() {
		c.Occurrences++
		c.occurrences[o.Type()]++
		c.scope(o)
		c.reifies(o, &c.Reified.Occurrences)
	}
}

func (c *counter) association(a *tmdm.Association) {
	for _, r := range a.Roles() {
		c.reifies(r, &c.Reified.Roles)
	}
	if class, _, ok := a.TypeInstance(); ok {
		c.TypeInstances++
		c.types[class]++
		return
	}
	c.Associations++
	c.Roles += len(a.Roles())
	c.assocs[a.Type()]++
	c.scope(a)
	c.reifies(a, &c.Reified.Associations)
}

func (c *counter) scope(s tmdm.Scoped) {
	if themes := s.Scope().Themes(); len(themes) > 0 && !c.scopes[s.Scope()] {
		c.scopes[s.Scope()] = true
		for _, t := range themes {
			c.themes[t] = true
		}
	}
}

func (c *counter) reifies(r tmdm.Reifiable, n *int) {
	if r.Reifier() != nil {
		*n++
	}
}

func usageOf(counts map[*tmdm.Topic]int, base tmdm.Locator, top int, languages []string) usage {
	u := usage{Total: len(counts), Top: []use{}}
	for t, n := range counts {
		u.Top = append(u.Top, use{mapdiff.Label(base, t), mapdiff.Title(t, languages...), n})
	}
	slices.SortFunc(u.Top, func(a, b use) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Topic, b.Topic)) })
	if top > 0 && len(u.Top) > top {
		u.Top = u.Top[:top]
	}
	return u
}

func (s *statistics) write(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n", s.File, s.Syntax)
	r := s.Reified
	for _, row := range []struct {
		what string
		n    int
	}{
		{"topics", s.Topics},
		{"  without subject identifier", s.WithoutSubjectIdentifier},
		{"  without name", s.WithoutName},
		{"  without type", s.WithoutType},
		{"names", s.Names},
		{"variants", s.Variants},
		{"occurrences", s.Occurrences},
		{"associations", s.Associations},
		{"  roles in them", s.Roles},
		{"type-instance relations", s.TypeInstances},
		{"scopes", s.Scopes},
		{"  themes in them", s.Themes},
		{"reified constructs", r.TopicMap + r.Names + r.Variants + r.Occurrences + r.Associations + r.Roles},
	} {
		fmt.Fprintf(w, "  %-30s %9d\n", row.what, row.n)
	}
	s.Types.write(w, "topic types, by instances")
	s.AssociationTypes.write(w, "association types")
	s.OccurrenceTypes.write(w, "occurrence types")
	s.NameTypes.write(w, "name types")
}

func (u usage) write(w io.Writer, what string) {
	if u.Total == 0 {
		return
	}
	more := ""
	if len(u.Top) < u.Total {
		more = fmt.Sprintf(", the first %d", len(u.Top))
	}
	fmt.Fprintf(w, "%s: %d%s\n", what, u.Total, more)
	for _, t := range u.Top {
		if t.Title == "" {
			fmt.Fprintf(w, "  %9d  %s\n", t.Count, t.Topic)
		} else {
			fmt.Fprintf(w, "  %9d  %s %q\n", t.Count, t.Topic, t.Title)
		}
	}
}
