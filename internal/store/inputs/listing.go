package inputs

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/collections"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Listing is all that a node publishes and follows, by name. It is shared and must not be changed.
type Listing struct {
	Collections   []collections.Collection
	Subscriptions []sources.Subscription
	Known

	own, followed []records.Named // in which they are: one that is as before is the same
}

// Except returns all collections but those with some names, which are in their order.
func (l *Listing) Except(names []string) []collections.Collection {
	if len(names) == 0 {
		return l.Collections
	}
	return slices.DeleteFunc(slices.Clone(l.Collections), func(c collections.Collection) bool {
		_, is := slices.BinarySearch(names, c.Name)
		return is
	})
}

// Followed returns the subscription with a name; nil if there is none.
func (l *Listing) Followed(name string) *sources.Subscription {
	byName := func(s sources.Subscription, name string) int { return strings.Compare(s.Name, name) }
	if i, found := slices.BinarySearchFunc(l.Subscriptions, name, byName); found {
		return &l.Subscriptions[i]
	}
	return nil
}

// Since returns the names of the collections that are not as in an earlier listing, or are not there any more, and
// whether the subscriptions are others. Since nil, all may be another.
func (l *Listing) Since(before *Listing) (names []string, others bool) {
	if before == nil {
		return nil, true
	}
	differing := func(was, now []records.Named) (names []string) {
		for _, n := range now {
			for ; len(was) > 0 && was[0].Name < n.Name; was = was[1:] {
				names = append(names, was[0].Name)
			}
			if len(was) == 0 || was[0].Name > n.Name || &was[0].Row[0] != &n.Row[0] {
				names = append(names, n.Name)
			}
			if len(was) > 0 && was[0].Name == n.Name {
				was = was[1:]
			}
		}
		for _, gone := range was {
			names = append(names, gone.Name)
		}
		return names
	}
	return differing(before.own, l.own), len(differing(before.followed, l.followed)) > 0
}

// Lister reads listings. A row that is as it was the last time is not decoded again. It is safe for concurrent use.
type Lister struct {
	mu      sync.Mutex
	version kv.Version
	last    *Listing

	own      tableRows[collections.Collection]
	followed tableRows[sources.Subscription]
}

// Listing returns the present listing. It caches the result until the next commit, and returns the same pointer while
// the content is the same.
func (l *Lister) Listing(ctx context.Context, db *txn.DB) (*Listing, error) {
	version, err := db.Version(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.version.Same(version) {
		return l.last, nil
	}
	err = db.View(ctx, func(t *txn.Tx) error {
		spaces := db.Engine.Changed(l.version, t.Version())
		if l.last == nil {
			spaces = nil // no list is known
		}
		own, err := l.own.read(t, keys.TableCollection, spaces, collections.Decode)
		if err != nil {
			return err
		}
		followed, err := l.followed.read(t, keys.TableSubscription, spaces, sources.Decode)
		if err != nil {
			return err
		}
		if own || followed || l.last == nil {
			l.last = &Listing{l.own.all, l.followed.all, Among(l.own.all, l.followed.all), l.own.rows, l.followed.rows}
		}
		l.version = t.Version()
		return nil
	})
	if err != nil {
		l.last = nil // one table may be read, and the other not
		return nil, err
	}
	return l.last, nil
}

// tableRows are the rows of a table by name, sorted by name, which is their key, with their content.
type tableRows[T any] struct {
	rows []records.Named
	all  []T
}

// read reads the table again, or its rows in some keyspaces, and reports whether it is another than it was.
func (l *tableRows[T]) read(t *txn.Tx, table byte, spaces map[uint32]bool,
	decode func(*records.Named) (*T, error)) (changed bool, err error) {
	list, err := records.ListAgain(t, table, l.rows, spaces)
	if err != nil {
		return false, err
	}
	now := tableRows[T]{make([]records.Named, 0, len(list)), make([]T, 0, len(list))}
	byName := func(r records.Named, name string) int { return strings.Compare(r.Name, name) }
	for i := range list {
		was, is := slices.BinarySearchFunc(l.rows, list[i].Name, byName)
		if is && bytes.Equal(l.rows[was].Row, list[i].Row) {
			now.rows, now.all = append(now.rows, l.rows[was]), append(now.all, l.all[was])
			continue
		}
		changed = true
		one, err := decode(&list[i])
		if err != nil {
			return false, err
		}
		now.rows, now.all = append(now.rows, list[i]), append(now.all, *one)
	}
	if changed = changed || len(now.rows) != len(l.rows); changed {
		*l = now
	}
	return changed, nil
}
