package sparql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/locks"
	"github.com/tmshare/tmshare/internal/store"
)

// runner keeps all targets of a node in step.
type runner struct {
	db    *store.DB
	locks *locks.Locks
	log   *slog.Logger

	every, retry time.Duration // between looks for changes; before the second try after an error, growing
}

// mostDelete is the number of statements that a comparison may delete, unless a tenth of the graph is more.
const mostDelete = 1000

// mostRetry is the longest time between two tries; heldRetry is that while a large deletion awaits confirmation.
const (
	mostRetry = 5 * time.Minute
	heldRetry = time.Hour
)

// keeper returns the keeper of a target.
func (r *runner) keeper(t *Target, report func(string)) (*keeper, error) {
	f := fetch.Fetcher{Logger: r.log}.WithDefaults()
	e, err := newEndpoint(t, f)
	if err != nil {
		return nil, err
	}
	return &keeper{Target: t, db: r.db, store: e, log: r.log, now: time.Now, report: report, locks: r.locks,
		perRange: perRange, mostRows: mostRows, maxDelete: mostDelete}, nil
}

// Run keeps all targets in step until ctx ends. Each has its own goroutine, so that a slow or unreachable store delays
// no other.
func (r *runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	running := map[string]context.CancelFunc{}
	var version store.Version
	for ctx.Err() == nil {
		found, err := targets(ctx, r.db)
		if err != nil && ctx.Err() == nil {
			r.log.Error("the targets are not known", "error", err)
		}
		there := map[string]bool{}
		for _, t := range found {
			if there[t.Name] = true; running[t.Name] == nil {
				own, stop := context.WithCancel(ctx)
				running[t.Name] = stop
				all.Go(func() { r.follow(own, t) })
			}
		}
		for name, stop := range running {
			if err == nil && !there[name] {
				stop()
				delete(running, name)
			}
		}
		if version, err = r.db.Await(ctx, version, r.every); err != nil && !r.pause(ctx, r.retry) {
			return
		}
		r.pause(ctx, r.every) // collect changes that come close together
	}
}

func (r *runner) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// follow keeps one target in step.
func (r *runner) follow(ctx context.Context, t *Target) {
	wait := r.retry
	var version store.Version
	for ctx.Err() == nil {
		k, err := r.keeper(t, func(string) {}) // files with passwords may have changed
		if err == nil {
			was := false
			if version, was, err = r.inStep(ctx, k, version); was {
				wait = r.retry
			}
		}
		switch {
		case ctx.Err() != nil || errors.Is(err, store.ErrNotFound):
			return
		case errors.Is(err, store.ErrNotLoaded):
			r.pause(ctx, r.retry)
			continue
		}
		if failed, ok := errors.AsType[*fetch.Error](err); ok {
			wait = max(wait, failed.RetryAfter)
		}
		if waits, ok := errors.AsType[*cli.ExitError](err); ok && waits.Code == cli.HeldBack {
			wait = heldRetry // an operator has to decide, and each try compares the whole graph
		}
		r.log.Warn("a target is not in step", "target", t.Name, "error", err, "again", wait)
		r.pause(ctx, wait)
		wait = min(2*wait, mostRetry)
	}
}

// inStep keeps a target in step until the first error. was reports whether it was in step before.
func (r *runner) inStep(ctx context.Context, k *keeper, version store.Version) (_ store.Version, was bool, err error) {
	for {
		worked, err := k.step(ctx)
		if err != nil {
			return version, was, err
		}
		if was = true; worked {
			r.log.Info("in step", "target", k.Name)
		}
		within, stop := context.WithTimeout(ctx, checkEvery)
		next, err := r.db.Await(within, version, r.every)
		ended := within.Err() != nil
		stop()
		switch {
		case err == nil:
			version = next
		case ctx.Err() != nil || !ended:
			return version, was, err
		}
		r.pause(ctx, r.every)
	}
}

// followed brings the targets of some sources in step, after a command has done rounds of them.
func followed(ctx context.Context, a *extension.App, sources map[string]bool) error {
	all, err := targets(ctx, a.DB)
	if err != nil {
		return err
	}
	return inStepAll(ctx, a, slices.DeleteFunc(all, func(t *Target) bool { return !sources[t.Source] }))
}

// inStepAll brings targets in step concurrently, so that none delays another. Then it reports the state of each.
func inStepAll(ctx context.Context, a *extension.App, all []*Target) error {
	r := commandRunner(a)
	results := make([]func() error, len(all))
	var running sync.WaitGroup
	for i, t := range all {
		running.Go(func() { results[i] = r.once(ctx, a, t) })
	}
	running.Wait()
	var failed []error
	for _, say := range results {
		failed = append(failed, say())
	}
	return errors.Join(failed...)
}

// once brings a target in step, and returns a function that reports the result.
func (r *runner) once(ctx context.Context, a *extension.App, t *Target) (say func() error) {
	var lines []string
	k, err := r.keeper(t, func(line string) { lines = append(lines, line) })
	worked := false
	if err == nil {
		worked, err = k.step(ctx)
	}
	if errors.Is(err, store.ErrNotLoaded) {
		lines, err = append(lines, err.Error()), nil
	}
	return func() error {
		for _, line := range lines {
			aside(a, t)(line)
		}
		if err != nil {
			return fmt.Errorf("target %s: %w", t.Name, err)
		}
		if worked && !a.JSON {
			a.Printf("target %s: in step with %s\n", t.Name, t.Source)
		}
		return nil
	}
}

// aside returns a function that prints lines about a target next to the output of a command.
func aside(a *extension.App, t *Target) func(line string) {
	return func(line string) {
		if !a.Quiet {
			a.Display.Clear()
			fmt.Fprintf(a.Command.ErrOrStderr(), "target %s: %s\n", t.Name, line)
		}
	}
}

func commandRunner(a *extension.App) *runner { return newRunner(a.Held, a.Logger()) }

func newRunner(h *extension.Holding, log *slog.Logger) *runner {
	return &runner{db: h.DB, locks: &h.Locks, log: log, every: time.Second, retry: 2 * time.Second}
}
