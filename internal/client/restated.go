package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/store"
)

// restatement is the present content of a changed entry in quarantine, which was wrong before.
type restatement struct {
	at     int // its place among those in quarantine
	change *follow.Record
}

// retryRestated reads the entries of failed changes again in their documents, takes over their present content, and
// retries their fragments. It returns the changes to remove from quarantine, because their entry is about another
// topic.
func (u *fragments) retryRestated(ctx context.Context, all []store.Quarantined,
	failed []error) ([]store.Quarantined, error) {
	restated, err := u.lookForRestated(ctx, all, failed)
	if err != nil {
		return nil, err
	}
	var left []store.Quarantined
	for _, r := range restated {
		before := all[r.at]
		all[r.at] = quarantined(r.change, failed[r.at])
		all[r.at].Looked = before.Looked
		if before.TopicSI != all[r.at].TopicSI {
			left = append(left, before)
		}
	}
	for i, err := range u.tryAll(ctx, len(restated), func(i int) *follow.Record { return restated[i].change }) {
		failed[restated[i].at] = err
	}
	return left, ctx.Err()
}

// maxLookedAt is the number of documents that are read for an entry, from its former one on, because entries move from
// the recent document to older ones.
const maxLookedAt = 5

// maxLooks is the number of documents that are read for all entries in one round.
const maxLooks = 100

// lookForRestated reads the former documents of failed entries: those first that were not read for the longest time, up
// to the limit of a round. The entries of an unreadable one are unchanged.
func (u *fragments) lookForRestated(ctx context.Context, all []store.Quarantined,
	failed []error) (restated []restatement, err error) {
	byDocument := map[string]map[string]int{} // by URL: the entries that have stood there, by key
	for i := range all {
		q := &all[i]
		if failed[i] == nil || q.Document == "" || follow.IsServerFault(failed[i]) || follow.WantsPause(failed[i]) {
			continue
		}
		if byDocument[q.Document] == nil {
			byDocument[q.Document] = map[string]int{}
		}
		byDocument[q.Document][follow.Key(q.Entry, q.Updated)] = i
	}
	looks, size := 0, int64(0)
	for _, at := range longestNotRead(all, byDocument) {
		if looks+maxLookedAt > maxLooks || size > u.MaxFeed {
			break
		}
		wanted := byDocument[at]
		for _, i := range wanted {
			all[i].Looked = u.Now().UTC()
		}
		looks++ // whether it can be read or not
		err := u.source.Search(ctx, at, maxLookedAt, u.mark, func(d *follow.Document, changes []*follow.Record) bool {
			if size += d.Body.Size(); d.Count > 1 {
				looks++
			}
			for _, change := range changes {
				key := follow.Key(change.ID, change.Updated)
				i, ok := wanted[key]
				if !ok {
					continue
				}
				delete(wanted, key)
				q := &all[i]
				q.Document = d.From
				if now := quarantined(change, failed[i]); now.TopicSI != q.TopicSI || now.Link != q.Link || now.State != q.State {
					restated = append(restated, restatement{i, change})
				}
			}
			return len(wanted) > 0
		})
		if err != nil {
			return nil, err
		}
	}
	return restated, nil
}

// longestNotRead returns the documents sorted by the time for which one of their entries has waited, the longest first.
func longestNotRead(all []store.Quarantined, byDocument map[string]map[string]int) []string {
	last := map[string]time.Time{}
	for at, wanted := range byDocument {
		for _, i := range wanted {
			if before, ok := last[at]; !ok || all[i].Looked.Before(before) {
				last[at] = all[i].Looked
			}
		}
	}
	return slices.SortedFunc(maps.Keys(last), func(a, b string) int {
		return cmp.Or(last[a].Compare(last[b]), cmp.Compare(a, b))
	})
}
