package client

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/internal/store"
)

// repairs is what was done so that a source is as its server says.
type repairs struct {
	// Repaired is how many topics differed before, and were fetched anew. See docs/digest.md.
	Repaired int `json:"repaired,omitempty"`
	// Mended is how many damaged rows were made again of the records, or removed.
	Mended int `json:"mended,omitempty"`
	// Replaced says why the whole source was replaced, "" if it was not.
	Replaced string `json:"replaced,omitempty"`
}

// note adds what a round has done.
func (d *repairs) note(r *Round) {
	d.Repaired += r.Repaired
	if r.CleanStart && r.Reason != "" {
		d.Replaced = r.Reason
	}
}

// maxMendings is how often the rows of a source are mended, one after the other.
const maxMendings = 4

// inStep brings a source in step. If sound is set, all rows of the source agree with each other before the round: so
// the tree of the state digest is that of the records, and the round finds and repairs what the server says otherwise.
// What it repairs may have stood on damaged rows, so they are looked at again after it. It returns what all rounds did.
func (c *Client) inStep(ctx context.Context, name string, sound bool, done *repairs) (*Round, error) {
	all := &Round{}
	for n := range maxMendings {
		if sound {
			mended, err := c.mend(ctx, name)
			if err != nil {
				return nil, err
			}
			if done.Mended += mended; mended == 0 && n > 0 {
				break
			}
		}
		r, err := c.Sync(ctx, name)
		if err != nil {
			return nil, err
		}
		done.note(r)
		r.Entries += all.Entries
		r.Repaired += all.Repaired
		r.CleanStart = r.CleanStart || all.CleanStart
		if all = r; r.Repaired == 0 {
			break
		}
		sound = true
	}
	return all, nil
}

// mend makes the rows of a source agree with each other. It returns how many did not.
func (c *Client) mend(ctx context.Context, name string) (int, error) {
	_, unlock, err := c.lock(ctx, name)
	if err != nil {
		return 0, err
	}
	defer unlock()
	m, err := c.Store.MendSource(ctx, name)
	if err != nil || m == (store.Mended{}) {
		return 0, err
	}
	c.Report(fmt.Sprintf("%s: damaged rows: %d are mended; %d records cannot be read, and are to be fetched anew", name,
		m.Rows, m.Records))
	c.Logger.Warn("damage", "subscription", name, "rows", m.Rows, "records", m.Records)
	return m.Rows + m.Records, nil
}
