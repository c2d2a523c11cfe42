package rejections

import (
	"encoding/json"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Rejection hides a claim of a source in this node's merged view.
type Rejection struct {
	Claim
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"` // by this node's clock
}

func key(source uint32, c *Claim) []byte {
	return append(keys.Own(source).Key(keys.TableRejection), c.Key()...)
}

// Add writes a rejection of a claim of the subscription with a number. It replaces an earlier one of the same claim,
// whose reason is kept if there is no new one.
func Add(t *txn.Tx, source uint32, r Rejection) error {
	at := key(source, &r.Claim)
	if r.Reason == "" {
		var was Rejection
		if _, err := t.GetJSON(at, &was); err != nil {
			return err
		}
		r.Reason = was.Reason
	}
	return t.PutJSON(at, r)
}

// Remove removes the rejection of a claim, and reports whether there was one.
func Remove(t *txn.Tx, source uint32, c *Claim) (bool, error) {
	at := key(source, c)
	row, err := t.Get(at)
	if row == nil || err != nil {
		return false, err
	}
	return true, t.Delete(at)
}

// Read returns the rejections of claims of a source, by the keys of the claims.
func Read(t *txn.Tx, source uint32) (all []Rejection, err error) {
	for row, err := range t.Scan(keys.Own(source).Key(keys.TableRejection), nil) {
		if err != nil {
			return nil, err
		}
		var r Rejection
		if err := json.Unmarshal(row.Value, &r); err != nil {
			return nil, txn.Corrupt("rejection", row.Key, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Apply returns the source without its rejected claims; the source itself if there are none.
func Apply(t *txn.Tx, source uint32, from fragment.Source) (fragment.Source, error) {
	all, err := Read(t, source)
	if len(all) == 0 || err != nil {
		return from, err
	}
	return Without(from, all), nil
}
