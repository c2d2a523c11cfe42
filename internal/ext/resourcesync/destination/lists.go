package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
)

// snapshot holds all resources of a Source at one time.
type snapshot struct {
	stated *follow.Statements
	mark   follow.Mark // of the last round
	at     time.Time   // all changes until then are in it; zero where the Source does not state it

	// document is the URL of the list, and etag its ETag, if the ETag alone shows whether a resource has changed. Else
	// both are "".
	document, etag string

	// latest is the latest lastmod of the resources without hashes in the lists. untimed says that one of these has no
	// lastmod.
	latest  time.Time
	untimed bool

	indexes []*listing // of the lists, or the dumps of the packages
}

// add adds the statement of a list about a resource.
func (s *snapshot) add(l *look, r *follow.Record) error {
	last := r.Updated
	if !r.Before.IsZero() {
		last = r.Before
	}
	// Without a time, the hashes or the server show whether the resource has changed. A resource that was modified at the
	// mark may have changed again in the same second. If the list was made again, one modified on the day of the mark may
	// have changed again, too.
	r.Anew = r.Updated.IsZero() || !s.mark.Updated.IsZero() &&
		(!r.Updated.Before(s.mark.Updated) || last.After(s.mark.Updated) && !s.at.Equal(s.mark.Updated))
	if !statesHashes(r) {
		s.untimed = s.untimed || r.Updated.IsZero()
		if last.After(s.latest) {
			s.latest = last
		}
	}
	one, err := follow.StatementOf(r, follow.KindListed, uint64(s.stated.Count()))
	if err != nil {
		return err
	}
	return s.stated.Add(&one)
}

// snapshot reads the Resource List (Z39.99 §10, Describing Resources), or else the manifests of the Resource Dump. It
// returns nil if the list is that of the mark.
func (l *look) snapshot(ctx context.Context, c *capabilities, mark follow.Mark) (*snapshot, error) {
	if c.resources == "" && c.dump == "" {
		return nil, fmt.Errorf("%s: the Source has neither a Resource List nor a Resource Dump to begin with", c.URL)
	}
	etag := ""
	if c.changes == "" && mark.Document == c.resources && (!l.asked.Whole || l.asked.IfChanged) &&
		l.asked.Doubted() == nil {
		etag = mark.ETag
	}
	read := func(etag string) (*snapshot, error) {
		s := &snapshot{mark: mark, stated: follow.NewStatements(l.url, &l.Scratch)}
		unchanged, err := false, error(nil)
		if c.resources == "" {
			err = l.dumpedAt(ctx, c.dump, s, map[string]bool{})
		} else {
			unchanged, err = l.lists(ctx, c, s, etag)
		}
		if unchanged || err != nil {
			return nil, errors.Join(err, s.stated.Close())
		}
		return s, nil
	}
	s, err := read(etag)
	for tries := 1; err == nil && s != nil; tries++ {
		var moved bool
		if moved, err = l.madeAnew(ctx, s.indexes); !moved || err != nil {
			break
		}
		if tries == mostReadings {
			l.report(fmt.Sprintf(
				"%s: what the Source has is listed anew faster than that can be read: what was in none of the lists may be "+
					"missing until they are read again", cmp.Or(c.resources, c.dump)))
			break
		}
		if err = s.stated.Close(); err == nil {
			s, err = read("")
		}
	}
	if err != nil || s == nil {
		if s != nil {
			err = errors.Join(err, s.stated.Close())
		}
		return nil, err
	}
	if s.untimed || !s.latest.IsZero() && !s.latest.Before(s.at) {
		s.document, s.etag = "", "" // the list may be the same though a resource is not
	}
	return s, nil
}

// lists reads the Resource Lists. It reports whether the one list still has the ETag.
func (l *look) lists(ctx context.Context, c *capabilities, s *snapshot, etag string) (unchanged bool, err error) {
	seen := map[string]bool{}
	for lists := []string{c.resources}; len(lists) > 0; lists = lists[1:] {
		at := lists[0]
		if seen[at] {
			return false, fmt.Errorf("%s: the lists lead in a circle", at)
		}
		seen[at] = true
		p, err := l.read(ctx, at, etag)
		if err != nil {
			return false, err
		}
		l.note(p.Answer)
		if p.NotModified {
			return true, nil
		}
		s.begun(p.At)
		if p.Index {
			s.indexes = append(s.indexes, p)
			for i := range p.items {
				s.begun(p.items[i].At)
				lists = append(lists, p.items[i].Loc)
			}
			continue
		}
		if c.changes == "" {
			if at == c.resources {
				s.document, s.etag = at, p.ETag
			}
			if p.At.IsZero() { // a plain Sitemap has no time; that of the response serves
				served, _ := http.ParseTime(p.Header.Get("Date"))
				s.begun(served)
			}
		}
		for i := range p.items {
			r := l.record(&p.items[i])
			if err := s.add(l, &r); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// madeAnew reports whether lists were replaced at the same URIs since their index was read. Then their ages may differ,
// and a resource that has moved between lists may be in none of those read.
func (l *look) madeAnew(ctx context.Context, indexes []*listing) (bool, error) {
	for _, index := range indexes {
		if index.At.IsZero() { // a plain Sitemap index has no time
			continue
		}
		now, err := l.read(ctx, index.URL, index.ETag)
		switch {
		case err != nil:
			return false, err
		case now.NotModified || now.At.Equal(index.At):
			continue
		}
		before := map[string]bool{}
		for i := range index.items {
			before[index.items[i].Loc] = true
		}
		if slices.ContainsFunc(now.items, func(i resourcesync.Item) bool { return before[i.Loc] }) {
			return true, nil
		}
	}
	return false, nil
}

// begun records when the making of a list began. Together, the lists have all changes up to the earliest of these times
// (Z39.99 §7, at).
func (s *snapshot) begun(at time.Time) {
	if !at.IsZero() && (s.at.IsZero() || at.Before(s.at)) {
		s.at = at
	}
}

func statesHashes(r *follow.Record) bool {
	return len(r.Representations) > 0 && len(r.Representations[0].Fixity.Hashes) > 0
}
