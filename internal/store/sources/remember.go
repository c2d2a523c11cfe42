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

// What the records of a source were is remembered where collections are derived from it, or consumers read it, until
// all of these have read what has changed. Its commits are counted: they have no log.

const (
	// mostBehind is of how many commits it is remembered what they have changed. A collection that is further behind
	// reads all that the source says.
	mostBehind = 10_000
	// forgotAtOnce is how many commits one commit forgets.
	forgotAtOnce = 10
)

// remember has remembered what the commit changes, if somebody wants that, and forgets what all have read.
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
		aside := txn.Over(a.tx.Context(), a.tx.Reader()) // the commit does not depend on it: it would forget less
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

// forget forgets what commits up to a number have changed.
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

// Via calls f with topics of a source that commits have changed, and the entries by which they have: those with a
// number behind after, up to upTo.
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
