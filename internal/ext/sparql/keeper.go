package sparql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/seq"
	"github.com/tmshare/tmshare/internal/store"
)

// keeper brings one target in step. It is not safe for concurrent use.
type keeper struct {
	*Target
	db     *store.DB
	store  *endpoint
	log    *slog.Logger
	now    func() time.Time
	report func(string) // called with the progress of long work

	locks *locks.Locks

	perRange, mostRows int // of a comparison: see [runner]

	maxDelete int       // statements that a comparison may delete; -1: all
	checked   time.Time // time of the last query of the store's mark
	takes     bool      // it has taken an update
	begun     bool      // the graph was changed
}

// What one request has at most. What a store refuses is halved.
const (
	mostTogether = 1000    // lines that go with their mark
	mostLines    = 2000    // lines of a batch
	mostBytes    = 4 << 20 // of a request
)

// maxRefused is the number of statements that a store may refuse singly. After more, the cause must be something else.
const maxRefused = 100

// marks is the graph with the marks of all targets in a store, and markOf the property that one is.
const (
	marks  = "https://github.com/tmshare/tmshare/ns/1/targets"
	markOf = "https://github.com/tmshare/tmshare/ns/1/mark"
)

// errUnknown is the error for a graph with unknown content, which must be compared as a whole.
var errUnknown = errors.New("it is not known what the graph has")

// errRestored is the error for a store with a former mark, from which the target continues.
var errRestored = errors.New("the store has an older state, as if it was restored")

// alone calls f with exclusive use of the target, after reading its state.
func (k *keeper) alone(ctx context.Context, f func() error) error {
	unlock, err := k.locks.Lock(ctx, prefix+k.Name, func() {})
	if err != nil {
		return err
	}
	defer unlock()
	if err := k.load(ctx); err != nil {
		return err
	}
	return f()
}

// step brings a target in step with its source. It reports whether there was anything to do.
func (k *keeper) step(ctx context.Context) (worked bool, err error) {
	err = k.alone(ctx, func() error {
		worked, err = k.tryStep(ctx)
		if isUnknown(err) {
			if worked = true; k.Taken {
				k.log.Warn("the whole graph is compared", "target", k.Name, "reason", err)
				k.report("the whole graph is compared: " + err.Error())
			}
			_, err = k.compare(ctx, true)
		}
		return k.ended(ctx, worked, err)
	})
	return worked, err
}

// isUnknown reports whether an error requires the comparison of the graph.
func isUnknown(err error) bool { return errors.Is(err, errUnknown) || errors.Is(err, store.ErrGone) }

// ended keeps how a try has ended.
func (k *keeper) ended(ctx context.Context, worked bool, err error) error {
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrNotLoaded):
		return err
	case err != nil:
		k.Error, k.ErrorAt = err.Error(), k.now()
	case worked || k.Error != "" || k.now().Sub(k.InStep) > time.Hour:
		k.Error, k.ErrorAt, k.InStep = "", time.Time{}, k.now()
	default:
		return nil
	}
	return errors.Join(err, k.save(ctx))
}

// tryStep is step for a graph that need not be compared. It continues from a former mark if the store has one.
func (k *keeper) tryStep(ctx context.Context) (worked bool, err error) {
	worked, err = k.tryOnce(ctx)
	if errors.Is(err, errRestored) {
		k.log.Warn("the target goes on from a former mark", "target", k.Name, "reason", err)
		worked, err = k.tryOnce(ctx)
	}
	return worked, err
}

func (k *keeper) tryOnce(ctx context.Context) (worked bool, err error) {
	to, d, err := k.plan(ctx)
	switch {
	case err != nil:
		return true, err
	case d != nil:
		defer d.Close()
		return true, k.advance(ctx, d, to)
	case k.now().Sub(k.checked) < checkEvery:
		return false, nil
	}
	has, err := k.readMark(ctx)
	if err == nil && has != k.Mark.String() {
		err = k.another(has)
	}
	return false, err
}

// checkEvery is the time between two queries of the store's mark while the source is unchanged.
const checkEvery = 10 * time.Minute

// plan returns the next state for the graph, and the difference to it; a nil difference if the graph is in step.
func (k *keeper) plan(ctx context.Context) (to *Mark, d *difference, err error) {
	if k.Next != nil {
		has, err := k.readMark(ctx)
		if err != nil {
			return nil, nil, err
		}
		if has == k.Next.String() { // the answer was lost, or the process was
			k.remember(k.Next)
		}
	}
	err = k.consume(ctx, func(c *store.Consumed) error {
		if to = k.Next; to == nil { // otherwise it was begun: parts may have been sent
			to = newMark(c)
		}
		switch {
		case k.Mark == nil:
			return errUnknown
		case k.Mark.History != c.History || to.History != c.History || max(k.Mark.Commit, to.Commit) > c.Head.Commit:
			return fmt.Errorf("%w: the source has another history than the graph", errUnknown)
		case k.Next == nil && k.Mark.Commit == to.Commit:
			return nil
		}
		d, err = differ(ctx, k.db.Scratch(), c, k.Mark.Commit, to.Commit)
		return err
	})
	return to, d, err
}

// consume calls f with the source of the target. What the source changes from that state on is remembered.
func (k *keeper) consume(ctx context.Context, f func(*store.Consumed) error) error {
	for {
		bound := uint32(0)
		err := k.db.Consume(ctx, prefix+k.Name, func(c *store.Consumed) error {
			if c.Number != c.Bound { // the name now belongs to another source, whose changes were not stored yet
				bound = c.Bound
				return nil
			}
			return f(c)
		})
		if err != nil || bound == 0 {
			return err
		}
		k.remember(nil)
		if err := k.save(ctx); err != nil {
			return err
		}
	}
}

func newMark(c *store.Consumed) *Mark {
	return &Mark{History: c.History, Commit: c.Head.Commit, Nonce: rand.Text()[:12], Source: c.Bound,
		Generation: c.Head.Generation}
}

// remember records the mark of the store; nil: it has none. Previous and possible marks become former ones.
func (k *keeper) remember(m *Mark) {
	for _, was := range []*Mark{k.Mark, k.Next} {
		if was != nil && was != m {
			k.Past = append(k.Past, *was)
		}
	}
	k.Past = k.Past[max(0, len(k.Past)-mostPast):]
	k.Mark, k.Next = m, nil
}

// mostPast is the number of former marks that are kept. If a store was restored to one of them, the changes since then
// suffice.
const mostPast = 50

// towards returns the mark of a graph during the change from one mark to another.
func (m *Mark) towards(from *Mark) string { return from.String() + way + m.String() }

const way = " -> "

// advance sends the changes from the present mark to another one.
func (k *keeper) advance(ctx context.Context, d *difference, to *Mark) error {
	if err := k.lead(ctx, d, to); err != nil || len(k.Refused) == 0 {
		return err
	}
	return seq.Each(d.lines(goes), func(line string) error {
		k.Refused = slices.DeleteFunc(k.Refused, func(refused string) bool { return refused == line })
		return nil
	})
}

func (k *keeper) lead(ctx context.Context, d *difference, to *Mark) error {
	if k.Next == nil {
		k.Next = to
		if err := k.save(ctx); err != nil { // before sending, so that a crash leaves a record
			return err
		}
		if d.size() <= mostTogether {
			done, err := k.together(ctx, d, to)
			if done || err != nil {
				return err
			}
		}
	}
	halfway := to.towards(k.Mark)
	if err := k.setMark(ctx, []string{k.Mark.String(), halfway}, halfway); err != nil {
		return err
	}
	if err := k.send(ctx, "DELETE", d.lines(goes)); err != nil {
		return err
	}
	if err := k.send(ctx, "INSERT", d.lines(comes)); err != nil {
		return err
	}
	if err := k.setMark(ctx, []string{halfway}, to.String()); err != nil {
		return err
	}
	k.remember(to)
	return nil
}

// together sends a small difference with its mark in one request. A repeated or partial execution has the same effect
// on the data, and the mark shows whether it was executed. done is false if the store refuses it.
func (k *keeper) together(ctx context.Context, d *difference, to *Mark) (done bool, err error) {
	has, err := k.readMark(ctx)
	if err == nil && has != k.Mark.String() {
		err = k.another(has)
	}
	if err != nil {
		return false, err
	}
	var text strings.Builder
	for _, part := range []struct {
		verb  string
		value []byte
	}{{"DELETE", goes}, {"INSERT", comes}} {
		var lines strings.Builder
		err := seq.Each(d.lines(part.value), func(line string) error { _, err := lines.WriteString(line); return err })
		if err != nil {
			return false, err
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&text, "%s DATA {\n%s} ;\n", part.verb, k.inGraph(lines.String()))
		}
	}
	if text.WriteString(k.replacingMark(k.Mark.String(), to.String())); text.Len() > mostBytes {
		return false, nil
	}
	if err = k.store.update(ctx, text.String()); isRefusal(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch has, err := k.readMark(ctx); {
	case err != nil:
		return false, err
	case has == to.String():
		k.remember(to)
		return true, nil
	case has == k.Mark.String():
		return false, nil // the store answered without executing it
	default:
		return false, k.another(has)
	}
}

// replacingMark is the operation that replaces a mark by another one, where the store has that.
func (k *keeper) replacingMark(from, to string) string {
	statement := func(mark string) string {
		return fmt.Sprintf("GRAPH <%s> { <%s> <%s> %s }", marks, k.Graph, markOf, literal(mark))
	}
	return fmt.Sprintf("DELETE { %s }\nINSERT { %s }\nWHERE { %s }", statement(from), statement(to), statement(from))
}

func (k *keeper) inGraph(lines string) string {
	return fmt.Sprintf("GRAPH <%s> {\n%s}\n", k.Graph, lines)
}

// literal returns a text as a SPARQL literal. Marks have no characters to escape.
func literal(text string) string { return `"` + text + `"` }

// readMark returns the mark of the store; "" if it has none.
func (k *keeper) readMark(ctx context.Context) (string, error) {
	all, err := k.store.values(ctx, fmt.Sprintf("SELECT ?m WHERE { GRAPH <%s> { <%s> <%s> ?m } }", marks, k.Graph, markOf),
		"m")
	if err == nil {
		k.checked = k.now()
	}
	switch {
	case err != nil || len(all) == 0:
		return "", err
	case len(all) > 1:
		return strings.Join(all, "; "), nil // which is none that is known
	}
	return all[0], nil
}

// setMark replaces one of some marks by another one, and verifies that at the store. "" stands for no mark.
func (k *keeper) setMark(ctx context.Context, from []string, to string) error {
	has, err := k.readMark(ctx)
	if err != nil || has == to {
		return err
	}
	if !slices.Contains(from, has) {
		return k.another(has)
	}
	var text string
	switch {
	case has == "":
		text = fmt.Sprintf("INSERT DATA { GRAPH <%s> { <%s> <%s> %s } }", marks, k.Graph, markOf, literal(to))
	case to == "":
		text = fmt.Sprintf("DELETE WHERE { GRAPH <%s> { <%s> <%s> ?m } }", marks, k.Graph, markOf)
	default:
		text = k.replacingMark(has, to)
	}
	if err := k.store.update(ctx, text); err != nil {
		return err
	}
	was := has
	switch has, err = k.readMark(ctx); {
	case err == nil && has == was:
		return fmt.Errorf("%s: the store answers an update, and does not do it: does the address take updates, and may the "+
			"user write?", k.Update)
	case err == nil && has != to:
		return k.another(has)
	}
	return err
}

// another returns the error for a store with an unexpected mark. If it is a former one, the store was restored, and the
// target continues from it.
func (k *keeper) another(has string) error {
	for _, m := range k.Past {
		if m.String() == has {
			k.remember(&m)
			return fmt.Errorf("%w: that of commit %d", errRestored, m.Commit)
		}
	}
	from, _, onTheWay := strings.Cut(has, way)
	switch isFrom := func(m Mark) bool { return m.String() == from }; {
	case has == "":
		k.remember(nil)
		return fmt.Errorf("%w: the store has lost the mark", errUnknown)
	case onTheWay && (k.Mark != nil && isFrom(*k.Mark) || slices.ContainsFunc(k.Past, isFrom)):
		k.remember(nil)
		return fmt.Errorf("%w: the store has an older state, as if it was restored", errUnknown)
	}
	return &cli.ExitError{Code: cli.Conflict, Err: fmt.Errorf("the graph <%s> has a mark that this node has not written "+
		"(%s): something else writes to it, or this node or the store was restored. \"target rebuild %s\" makes it that of "+
		"this node", k.Graph, has, k.Name)}
}

// send sends lines in batches.
func (k *keeper) send(ctx context.Context, verb string, lines iter.Seq2[string, error]) error {
	var batch []string
	size, sent, reported := 0, 0, k.now()
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := k.batch(ctx, verb, batch); err != nil {
			return err
		}
		sent += len(batch)
		if k.now().Sub(reported) > reportEvery {
			reported = k.now()
			k.report(fmt.Sprintf("%d statements sent (%s)", sent, strings.ToLower(verb)))
		}
		batch, size = batch[:0], 0
		return nil
	}
	err := seq.Each(lines, func(line string) (err error) {
		if len(batch) == mostLines || size+len(line) > mostBytes {
			err = flush()
		}
		batch, size = append(batch, line), size+len(line)
		return err
	})
	if err != nil {
		return err
	}
	return flush()
}

// reportEvery is the time between two progress reports of long work.
const reportEvery = 5 * time.Second

// batch sends one batch. What the store refuses is halved; a statement that it refuses by itself is listed, and passed
// over.
func (k *keeper) batch(ctx context.Context, verb string, lines []string) error {
	err := k.store.update(ctx, fmt.Sprintf("%s DATA {\n%s}\n", verb, k.inGraph(strings.Join(lines, ""))))
	if !isRefusal(err) {
		return err
	}
	if probe := k.probe(ctx); isRefusal(probe) { // it refuses anything, as where the user may not write
		return probe
	}
	if len(lines) > 1 {
		half := len(lines) / 2
		if err := k.batch(ctx, verb, lines[:half]); err != nil {
			return err
		}
		return k.batch(ctx, verb, lines[half:])
	}
	if slices.Contains(k.Refused, lines[0]) {
		return nil // nor can it be deleted
	}
	if verb == "DELETE" {
		return fmt.Errorf("the store does not delete %s: %w", strings.TrimSpace(lines[0]), err)
	}
	if len(k.Refused) == maxRefused {
		return fmt.Errorf("the store refuses more than %d statements, such as %s: %w", maxRefused,
			strings.TrimSpace(lines[0]), err)
	}
	k.log.Warn("the store refuses a statement", "target", k.Name, "statement", strings.TrimSpace(lines[0]), "error", err)
	k.Refused = append(k.Refused, lines[0])
	return nil
}

// probe sends an update that changes nothing.
func (k *keeper) probe(ctx context.Context) error {
	if k.takes {
		return nil
	}
	err := k.store.update(ctx, fmt.Sprintf("DELETE DATA {\n%s}\n", k.inGraph(fmt.Sprintf("<%s> <%s> <%[1]s> .\n", marks,
		markOf))))
	k.takes = err == nil
	return err
}

// isRefusal reports whether a store refuses the content of a request: it is too long, or has an unacceptable statement.
// The status is then 400, 413 or 500.
func isRefusal(err error) bool {
	failed, ok := errors.AsType[*fetch.Error](err)
	return ok && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity, http.StatusInternalServerError}, failed.Status)
}

// compareNow compares the whole graph, for a command.
func (k *keeper) compareNow(ctx context.Context, repair bool) (result *Comparison, err error) {
	err = k.alone(ctx, func() error {
		if k.maxDelete < 0 {
			k.Taken = true
		} else if k.Taken { // changes of the source meanwhile are no difference
			k.checked = time.Time{}
			if _, err := k.tryStep(ctx); err != nil && !isUnknown(err) {
				return k.ended(ctx, true, err)
			}
		}
		result, err = k.compare(ctx, repair)
		if !repair {
			return err
		}
		return k.ended(ctx, true, err)
	})
	return result, err
}

// clear removes the graph and its mark from the store.
func (k *keeper) clear(ctx context.Context) error {
	return k.alone(ctx, func() error {
		has, err := k.readMark(ctx)
		if err == nil && has != "" && has != k.Mark.String() {
			if err = k.another(has); errors.Is(err, errRestored) || errors.Is(err, errUnknown) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		return k.store.update(ctx, fmt.Sprintf("CLEAR SILENT GRAPH <%s> ;\n"+
			"DELETE WHERE { GRAPH <%s> { <%[1]s> <%[3]s> ?m } }", k.Graph, marks, markOf))
	})
}
