package harvest

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// snapshot is all that a Source has at a time.
type snapshot struct {
	records []Record
	at      time.Time // all changes until then are in it; zero where nobody says so

	// document is the one list, if it tells by itself whether a resource has changed, and
	// etag its ETag.
	document, etag string
}

// snapshot reads the Resource List (Z39.99 §10, Describing Resources), or where there is none
// the manifests of the Resource Dump. It is nil where the list is the one that the mark knows.
func (l *look) snapshot(ctx context.Context, c *capabilities, mark Mark) (*snapshot, error) {
	switch {
	case c.resources == "" && c.dump == "":
		return nil, fmt.Errorf("%s: the Source has neither a Resource List nor a Resource Dump to begin with", c.URL)
	case c.resources == "":
		return l.dumped(ctx, c.dump)
	}
	etag := ""
	if c.changes == "" && mark.Document == c.resources {
		etag = mark.ETag
	}
	s := &snapshot{}
	seen := map[string]bool{}
	for lists := []string{c.resources}; len(lists) > 0; lists = lists[1:] {
		at := lists[0]
		if seen[at] {
			return nil, fmt.Errorf("%s: the lists lead in a circle", at)
		}
		seen[at] = true
		p, err := l.read(ctx, at, etag)
		if err != nil {
			return nil, err
		}
		if p.NotModified {
			return nil, nil
		}
		s.begun(p.At)
		if p.Index {
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
			if p.At.IsZero() { // a plain Sitemap: when it was made is not known, nor needed
				served, _ := http.ParseTime(p.Header.Get("Date"))
				s.begun(served)
			}
		}
		s.records = append(s.records, l.records(p)...)
	}
	for i := range s.records {
		r := &s.records[i]
		if again := r.Updated.IsZero() || !r.Updated.Before(s.at); again && !statesHashes(r) {
			s.document, s.etag = "", "" // the list may be the same though this is not
		}
	}
	return s, nil
}

// begun notes when one of the lists was begun: only all changes until the first was are in all
// of them (Z39.99 §7, at).
func (s *snapshot) begun(at time.Time) {
	if !at.IsZero() && (s.at.IsZero() || at.Before(s.at)) {
		s.at = at
	}
}

func statesHashes(r *Record) bool {
	return len(r.Representations) > 0 && len(r.Representations[0].Fixity.Hashes) > 0
}
