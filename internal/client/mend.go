package client

import (
	"context"
	"fmt"

	"github.com/tmshare/tmshare/internal/store/sources"
)

// repairs is the work to make a source equal to its server.
type repairs struct {
	// Repaired is the number of topics that differed, and were fetched again. See docs/digest.md.
	Repaired int `json:"repaired,omitempty"`
	// Mended is the number of damaged rows that were derived again from the records, or removed.
	Mended int `json:"mended,omitempty"`
	// Replaced is the reason why the whole source was replaced, "" if it was not.
	Replaced string `json:"replaced,omitempty"`
}

// note adds the work of a round.
func (d *repairs) note(r *Round) {
	d.Repaired += r.Repaired
	if r.CleanStart && r.Reason != "" {
		d.Replaced = r.Reason
	}
}

// maxMendings is the maximum number of times that the rows of a source are mended.
const maxMendings = 4

// inStep brings a source in step. If sound is set, the rows of the source are consistent before the round, so the state
// digest is that of the records, and the round finds and repairs differences from the server. Because repaired records
// may have had damaged rows, it checks the rows again afterwards. It returns the work of all rounds.
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

// mend makes the rows of a source consistent. It returns the number of inconsistent ones.
func (c *Client) mend(ctx context.Context, name string) (int, error) {
	_, unlock, err := c.lock(ctx, name)
	if err != nil {
		return 0, err
	}
	defer unlock()
	m, err := c.Store.MendSource(ctx, name)
	if err != nil || m == (sources.Mended{}) {
		return 0, err
	}
	c.Report(fmt.Sprintf("%s: damaged rows: %d are mended; %d records cannot be read, and are to be fetched anew", name,
		m.Rows, m.Records))
	c.Logger.Warn("damage", "subscription", name, "rows", m.Rows, "records", m.Records)
	return m.Rows + m.Records, nil
}
