package sources

import (
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/consumers"
	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The former records of a source are kept if collections are derived from it, or consumers read it, until all of these
// have read its changes. Its commits are counted, because they have no log.

const (
	// mostBehind is the number of commits whose changes are kept. A collection that is further behind reads the whole
	// source.
	mostBehind = 10_000
	// forgotAtOnce is the number of commits whose changes one commit removes.
	forgotAtOnce = 10
)

// remember stores the changes of the commit, if they are needed, and removes those that all have read.
func (a *Applying) remember() error {
	p, id := a.Progress, a.subscription.Source(a.Progress)
	numbers, err := derived.DerivedFrom(a.tx, a.subscription.Name)
	if err != nil {
		return err
	}
	upTo, wanted, err := consumers.Oldest(a.tx, id, p.Commits)
	wanted = wanted || len(numbers) > 0
	if err != nil || !wanted && p.Forgotten == p.Commits {
		return err
	}
	if len(numbers) > 0 {
		aside := txn.Over(a.tx.Context(), a.tx.Reader()) // the commit must not depend on it: it would only remove less
		oldest, err := derived.Oldest(aside, numbers, id)
		if err != nil {
			return err
		}
		upTo = min(upTo, oldest)
	}
	if wanted {
		upTo = max(upTo, p.Commits-min(p.Commits, mostBehind))
	}
	if err := forget(a.tx, id, p, min(upTo, p.Forgotten+forgotAtOnce)); err != nil || !wanted {
		return err
	}
	p.Commits++
	commit := p.Commits
	past.Record(a.tx, id, commit-1, func() (uint64, error) { return commit, nil })
	a.remembered = true
	return nil
}

// forget removes the stored changes of commits up to a number.
func forget(t *txn.Tx, id keys.Source, p *Progress, upTo uint64) error {
	if upTo <= p.Forgotten {
		return nil
	}
	for from, more := p.Forgotten, true; more; {
		var err error
		if from, more, err = past.ForgetSome(t, id, from, upTo); err != nil {
			return err
		}
	}
	for commit := p.Forgotten + 1; commit <= upTo; commit++ {
		if err := t.Delete(id.Numbered(keys.TableVia, commit)); err != nil {
			return err
		}
	}
	p.Forgotten = upTo
	return nil
}

// putVia keeps by which entries topics are changed.
func (a *Applying) putVia() error {
	if len(a.via) == 0 {
		return nil
	}
	return a.tx.Put(a.subscription.Source(a.Progress).Numbered(keys.TableVia, a.Commits),
		[]byte(strings.Join(a.via, "\n")))
}

// Via calls f with topics of a source changed by commits after one, up to another, and the entries of the changes.
func Via(t *txn.Tx, id keys.Source, after, upTo uint64, f func(topic fragment.Ref, via string)) error {
	for row, err := range t.Scan(id.Key(keys.TableVia), id.Numbered(keys.TableVia, after+1)) {
		if err != nil || keys.NumberIn(row.Key) > upTo {
			return err
		}
		all := strings.Split(string(row.Value), "\n")
		for i := 0; i+1 < len(all); i += 2 {
			f(fragment.Ref(all[i]), all[i+1])
		}
	}
	return nil
}
