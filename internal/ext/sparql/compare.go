package sparql

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extsort"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/rdf/turtle"
	"github.com/tmshare/tmshare/internal/store"
)

// Comparison is the result of comparing a whole graph.
type Comparison struct {
	Target     string   `json:"target"`
	Statements int      `json:"statements"` // of the source
	Missing    int      `json:"missing"`    // in the store
	Extra      int      `json:"extra"`      // in the store, and not in the source
	Changed    int      `json:"changed"`    // values that the store keeps as others
	Examples   []string `json:"examples,omitempty"`
	Repaired   bool     `json:"repaired"`
}

// Equal reports whether the graph equals the source, as far as the store can represent it.
func (c *Comparison) Equal() bool { return c.Missing+c.Extra == 0 }

// Ranges of a comparison have about this many statements, and answers of a store that many at most: stores cut them at
// 10,000 rows without a word.
const (
	perRange = 4000
	mostRows = 9000
)

// mostShown is the number of differing statements that are listed.
const mostShown = 20

// compare compares the whole graph with the source, and repairs it where repair is true. The mark is away meanwhile.
func (k *keeper) compare(ctx context.Context, repair bool) (*Comparison, error) {
	result := &Comparison{Target: k.Name}
	var to *Mark
	var ours *extsort.Sorter
	err := k.consume(ctx, func(c *store.Consumed) (err error) {
		to = newMark(c)
		state, err := c.State(c.Head.Commit)
		if err == nil {
			ours, err = whole(ctx, k.db.Scratch(), c.SP, state)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	has, err := k.readMark(ctx)
	if err != nil {
		return nil, err
	}
	r := &comparing{keeper: k, d: &difference{rows: newSorter(k.db.Scratch(), "target-repair")}, result: result}
	defer r.d.Close()
	if err := r.all(ctx, ours.Sorted()); err != nil || !repair {
		return result, err
	}
	if err := r.mayRepair(has); err != nil {
		return result, err
	}
	if err := r.repair(ctx, has, ours.Sorted()); err != nil {
		return result, err
	}
	k.Statements, k.Changed, k.Verified = result.Statements, result.Changed, k.now()
	k.remember(to)
	if err := k.save(ctx); err != nil { // the store has no mark yet, which the next round notices
		return result, err
	}
	return result, k.setMark(ctx, []string{""}, to.String())
}

// mayRepair returns why a graph may not be repaired.
func (r *comparing) mayRepair(has string) error {
	k := r.keeper
	switch {
	case !k.Taken && (r.theirs > 0 || has != ""):
		return &cli.ExitError{Code: cli.Conflict, Err: fmt.Errorf(
			"the graph <%s> is not empty: it has %d statements, of which %d are not those of %s%s. \"target add --adopt\" "+
				"takes it over, and deletes these", k.Graph, r.theirs, r.result.Extra, k.Source, marked(has))}
	case k.maxDelete < 0:
		return nil
	}
	if most := max(k.maxDelete, r.theirs/10); r.result.Extra > most {
		k.HeldBack = r.result.Extra
		return &cli.ExitError{Code: cli.HeldBack, Err: fmt.Errorf(
			"%d of the %d statements of the graph <%s> are not those of %s, more than the %d that may be deleted at once: "+
				"\"target rebuild %s\" deletes them", r.result.Extra, r.theirs, k.Graph, k.Source, most, k.Name)}
	}
	return nil
}

func marked(has string) string {
	if has == "" {
		return ""
	}
	return ", and another node keeps it in step (" + has + ")"
}

// comparing compares a graph, range by range.
type comparing struct {
	*keeper
	d      *difference
	result *Comparison
	theirs int // statements of the store
	blanks int // of these, those with blank nodes

	cutShort bool // an answer has not all that is in its range
}

// all compares the graph with rows, as [whole] sorts them.
func (r *comparing) all(ctx context.Context, rows iter.Seq2[extsort.Row, error]) (err error) {
	if r.theirs, err = r.countWhere(ctx, ""); err != nil {
		return err
	}
	if r.theirs > 0 {
		if r.blanks, err = r.countWhere(ctx, "FILTER(isBlank(?s) || isBlank(?o))"); err != nil {
			return err
		}
		r.result.Extra += r.blanks
	}
	if r.theirs > 0 && r.blanks == 0 {
		if whole, err := r.bySubjects(ctx, rows); whole || err != nil {
			return err
		}
		*r.result = Comparison{Target: r.result.Target}
		if err := r.d.Close(); err != nil {
			return err
		}
		r.d.rows = newSorter(r.db.Scratch(), "target-repair")
	}
	return r.byRanges(ctx, rows)
}

// maxSubjects is the approximate number of subjects in a query.
const maxSubjects = 100

// bySubjects compares the statements about the subjects of the source, which stores find by index. It returns false if
// the graph has others, or if a store may have truncated an answer.
func (r *comparing) bySubjects(ctx context.Context, rows iter.Seq2[extsort.Row, error]) (whole bool, err error) {
	var some []ourLine
	asked, found, last := map[string]bool{}, 0, ""
	ask := func() error {
		theirs, err := r.store.construct(ctx, fmt.Sprintf(
			"CONSTRUCT { ?s ?p ?o } WHERE { VALUES ?s { <%s> } GRAPH <%s> { ?s ?p ?o } }",
			strings.Join(slices.Sorted(maps.Keys(asked)), "> <"), r.Graph))
		if err != nil {
			return err
		}
		for _, q := range theirs {
			if !asked[q.Subject.Value] {
				return errNotWhole
			}
		}
		if found += len(theirs); len(theirs) > r.mostRows {
			return errNotWhole
		}
		err = r.differ(some, theirs)
		clear(asked)
		some = nil
		return err
	}
	for row, err := range rows {
		if err != nil {
			return false, err
		}
		p, text, err := ofKey(row.Key)
		if err != nil {
			return false, err
		}
		if text == last {
			continue
		}
		last = text
		if !asked[p.subject] && (len(asked) == maxSubjects || len(some) >= r.perRange) {
			err = ask()
		} else if len(some) > r.mostRows {
			err = errNotWhole
		}
		if err != nil {
			return false, unless(err, errNotWhole)
		}
		r.result.Statements++
		some, asked[p.subject] = append(some, ourLine{p, text}), true
	}
	if len(some) > 0 {
		err = ask()
	}
	return err == nil && found == r.theirs, unless(err, errNotWhole)
}

// errNotWhole is the error for a graph that has statements beyond the answers about subjects.
var errNotWhole = errors.New("sparql: the answers are not all that the graph has")

// unless returns err, nil where it is another one.
func unless(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}

// byRanges compares the graph in ranges. Stores look at all of it for each.
func (r *comparing) byRanges(ctx context.Context, rows iter.Seq2[extsort.Row, error]) error {
	var from, last place
	var some []ourLine
	for row, err := range rows {
		if err != nil {
			return err
		}
		p, text, err := ofKey(row.Key)
		if err != nil {
			return err
		}
		if n := len(some); n > 0 && some[n-1].line == text {
			continue
		}
		r.result.Statements++
		if at, ok := p.cut(last); ok && len(some) >= r.perRange {
			if err := r.within(ctx, from, &at, some); err != nil {
				return err
			}
			from, some = at, nil
		}
		some, last = append(some, ourLine{p, text}), p
	}
	return r.within(ctx, from, nil, some)
}

// ourLine is a statement of the source, with its place.
type ourLine struct {
	place
	line string
}

// within compares one range: from a place on, before another one; nil: to the end.
func (r *comparing) within(ctx context.Context, from place, to *place, ours []ourLine) error {
	if r.theirs == 0 {
		for _, o := range ours {
			if err := r.missing(o.line); err != nil {
				return err
			}
		}
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	filter := filterOf(from, to)
	theirs, err := r.store.construct(ctx,
		fmt.Sprintf("CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <%s> { ?s ?p ?o %s } }", r.Graph, filter))
	if err != nil {
		return err
	}
	if len(theirs) != len(ours) { // it may be that the store has cut the answer
		n, err := r.countWhere(ctx, filter)
		if err != nil {
			return err
		}
		if n > r.mostRows {
			if at := middle(ours); at > 0 {
				cut, _ := ours[at].cut(ours[at-1].place)
				if err := r.within(ctx, from, &cut, ours[:at]); err != nil {
					return err
				}
				return r.within(ctx, cut, to, ours[at:])
			}
		}
		switch {
		case n > r.mostRows: // others added that many: delete those found, then query again
			r.cutShort = true
		case n != len(theirs):
			return fmt.Errorf("%s: the store counts %d statements where it answers %d", r.Query, n, len(theirs))
		}
	}
	for _, q := range theirs { // never delete because of a wrong answer
		if p := placeOf(q); p.compare(from) < 0 || to != nil && p.compare(*to) >= 0 {
			return fmt.Errorf("%s: the store answers a range with a statement outside of it: %s", r.Query,
				strings.TrimSpace(line(q)))
		}
	}
	return r.differ(ours, theirs)
}

// middle returns where a range can be cut into two, 0 if nowhere.
func middle(ours []ourLine) int {
	half := len(ours) / 2
	for away := range half {
		for _, i := range []int{half - away, half + away} {
			if i <= 0 || i >= len(ours) {
				continue
			}
			if _, ok := ours[i].cut(ours[i-1].place); ok {
				return i
			}
		}
	}
	return 0
}

// differ compares the statements of a range.
func (r *comparing) differ(ours []ourLine, theirs []rdf.Quad) error {
	missing, has := map[rdf.Quad][]string{}, map[rdf.Quad]bool{}
	for _, o := range ours {
		q, err := statementIn(o.line)
		if err != nil {
			return err
		}
		key := canonicalOf(q)
		missing[key], has[key] = append(missing[key], o.line), true
	}
	for _, q := range theirs {
		key := canonicalOf(q)
		if has[key] {
			delete(missing, key)
			continue
		}
		r.result.Extra++
		r.show("- ", line(q))
		if err := r.d.rows.Add([]byte(line(q)), goes); err != nil {
			return err
		}
	}
	for _, lines := range missing {
		for _, text := range lines {
			if err := r.missing(text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *comparing) missing(line string) error {
	r.result.Missing++
	r.show("+ ", line)
	return r.d.rows.Add([]byte(line), comes)
}

func (r *comparing) show(sign, line string) {
	if len(r.result.Examples) < mostShown && r.theirs > 0 {
		r.result.Examples = append(r.result.Examples, sign+strings.TrimSpace(line))
	}
}

// statementIn reads a line.
func statementIn(line string) (q rdf.Quad, err error) {
	err = turtle.Read(strings.NewReader(line), turtle.NTriples, turtle.Options{URI: "a statement"},
		func(one rdf.Quad) error { q = one; return nil })
	return q, err
}

// repair makes the graph equal to the source, and checks the result.
func (r *comparing) repair(ctx context.Context, has string, ours iter.Seq2[extsort.Row, error]) error {
	r.Taken, r.begun = true, true
	r.remember(nil)
	if err := r.save(ctx); err != nil { // before anything is sent: a comparison that ends halfway is begun again
		return err
	}
	if has != "" {
		if err := r.setMark(ctx, []string{has}, ""); err != nil {
			return err
		}
	}
	if r.blanks > 0 {
		if err := r.store.update(ctx, fmt.Sprintf("DELETE { GRAPH <%s> { ?s ?p ?o } }\nWHERE { GRAPH <%[1]s> { ?s ?p ?o "+
			"FILTER(isBlank(?s) || isBlank(?o)) } }", r.Graph)); err != nil {
			return err
		}
	}
	r.Refused = nil
	again := r
	for {
		if err := r.send(ctx, "DELETE", again.d.lines(goes)); err != nil {
			return err
		}
		if err := r.send(ctx, "INSERT", again.d.lines(comes)); err != nil {
			return err
		}
		n, err := r.countWhere(ctx, "")
		if err != nil || n == r.result.Statements {
			r.HeldBack, r.result.Repaired = 0, r.d.size() > 0 || r.blanks > 0
			return err
		}
		isMore := again.cutShort
		again = &comparing{keeper: r.keeper, d: &difference{rows: newSorter(r.db.Scratch(), "target-repair")},
			result: &Comparison{}}
		defer again.d.Close()
		if err := again.all(ctx, ours); err != nil {
			return err
		}
		if !isMore || again.result.Extra == 0 {
			break
		}
	}
	r.HeldBack, r.result.Repaired = 0, true
	r.result.Changed = max(0, min(again.result.Missing-len(r.Refused), again.result.Extra))
	if left := max(again.result.Missing-len(r.Refused), again.result.Extra) - r.result.Changed; left > 0 {
		first := "none that is known"
		if len(again.result.Examples) > 0 {
			first = again.result.Examples[0]
		}
		return fmt.Errorf("%d statements were sent. Then %d are missing in the graph <%s>, and %d are not of the source: "+
			"something else writes to it, or the store does not do what it answers; the first: %s", r.d.size(),
			again.result.Missing, r.Graph, again.result.Extra, first)
	}
	return nil
}

func (r *comparing) countWhere(ctx context.Context, filter string) (int, error) {
	return r.store.count(ctx, fmt.Sprintf("SELECT (COUNT(*) AS ?n) WHERE { GRAPH <%s> { ?s ?p ?o %s } }", r.Graph, filter))
}

// filterOf returns the filter for the statements of a range.
func filterOf(from place, to *place) string {
	var parts []string
	if from != (place{}) { // each condition by itself: Virtuoso answers wrongly where it may join them
		parts = append(parts, fmt.Sprintf("IF(%s, true, false)", from.begins()))
	}
	if to != nil {
		parts = append(parts, fmt.Sprintf("IF(%s, false, true)", to.begins()))
	}
	if len(parts) == 0 {
		return ""
	}
	return "FILTER(" + strings.Join(parts, " && ") + ")"
}

// begins returns the condition that a statement is at a place or after it.
func (p place) begins() string {
	subject, property := quoted(p.subject), quoted(p.property)
	switch {
	case p.property == "":
		return fmt.Sprintf("(STR(?s) >= %s)", subject)
	case p.object == "":
		return fmt.Sprintf("(STR(?s) > %s || STR(?s) = %[1]s && STR(?p) >= %s)", subject, property)
	}
	return fmt.Sprintf("(STR(?s) > %s || STR(?s) = %[1]s && (STR(?p) > %s || STR(?p) = %[2]s && isIRI(?o) && "+
		"STR(?o) >= %s))", subject, property, quoted(p.object))
}

// quoted returns an IRI as a string. IRIs have no quotes, backslashes or control characters.
func quoted(iri string) string { return `"` + iri + `"` }
