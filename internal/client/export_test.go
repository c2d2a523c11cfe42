package client

import (
	"context"
	"time"

	"github.com/tmshare/tmshare/internal/follow"
)

// SyncUntil is Sync but for entries later than a time, which it leaves for later.
func (c *Client) SyncUntil(ctx context.Context, name string, until time.Time) (*Round, error) {
	return c.syncUntil(ctx, name, until)
}

// LimitQueue limits the bytes of entries in memory, and the number of entries read back from files at a time.
func (c *Client) LimitQueue(memory, chunk int) {
	c.limits = follow.Scratch{Memory: memory, Chunk: chunk}
}

// BelieveSoon makes the client accept an earlier state of a source after enough readings, without the longest time of a
// doubt.
func (c *Client) BelieveSoon() { c.longest = time.Nanosecond }
