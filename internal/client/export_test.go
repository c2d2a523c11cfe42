package client

import (
	"context"
	"time"
)

// SyncUntil is Sync but for entries later than a time, which it leaves for later.
func (c *Client) SyncUntil(ctx context.Context, name string, until time.Time) (*Round, error) {
	return c.syncUntil(ctx, name, until)
}
