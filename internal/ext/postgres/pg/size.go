package pg

import (
	"context"
	"sync"
	"time"
)

// sizes is the size of the rows: the last result of the query, and the bytes that this process has written since.
type sizes struct {
	mu      sync.Mutex
	bytes   int64
	asked   time.Time
	written int64
}

// askSize is the time between two queries of the size.
const askSize = time.Minute

func (s *sizes) grow(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written += int64(bytes)
}

// Size implements [kv.Engine]. It is an estimate, which includes writes of other processes after a minute at most.
func (e *Engine) Size() (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if err := e.usable(ctx); err != nil {
		return 0, err
	}
	s := &e.size
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asked.IsZero() && time.Since(s.asked) < askSize {
		return s.bytes + s.written, nil
	}
	var bytes int64
	err := e.readers.QueryRow(ctx, "SELECT pg_total_relation_size('tm_rows')").Scan(&bytes)
	if err != nil && !away(err) { // a database that does not know that
		err = e.readers.QueryRow(ctx,
			"SELECT coalesce(sum(octet_length(head) + octet_length(tail) + octet_length(value)), 0) FROM tm_rows").Scan(&bytes)
	}
	if err != nil {
		return 0, e.explain(ctx, err)
	}
	s.bytes, s.asked, s.written = bytes, time.Now(), 0
	return bytes, nil
}
