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

// LimitQueue makes so few bytes of entries go to files, and so few entries come back at a time.
func (c *Client) LimitQueue(memory, chunk int) {
	c.limits = follow.Scratch{Memory: memory, Chunk: chunk}
}

// BelieveSoon has what a source shows from before believed after as many readings as need be, however long it is known
// to be out of date.
func (c *Client) BelieveSoon() { c.longest = time.Nanosecond }
