package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// fewDifferences is how many rows of a source are told one by one.
const fewDifferences = 20

// records checks that the indexes of a source agree with its records: all rows that follow from
// the records are there, and no others. It returns the number of topics, -1 where a record
// cannot be read. Memory does not grow with the number of records.
func (c *checker) records(t *txn.Tx, where string, id keys.Source) (topics int, err error) {
	folder, err := os.MkdirTemp("", "tmshare-check-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	unreadable := len(c.findings)
	expected, err := records.Expect(t, id, filepath.Join(folder, "rows"), c.db.sortMemory, func(what string) { c.lost(where, "%s", what) })
	if err != nil {
		return 0, err
	}
	defer expected.Close()
	topics = expected.Topics
	if len(c.findings) > unreadable {
		return -1, nil // what follows from the others would be no help
	}
	count, first := 0, len(c.findings)
	mended := errHoldsNoMore // until something was mended
	withFirst := func(*txn.Tx) error { return mended }
	err = expected.Differences(t, func(key, want, have []byte) {
		if count++; count > fewDifferences {
			return
		}
		what := "is missing"
		switch {
		case want == nil:
			what = "belongs to no record"
		case have != nil:
			what = "says something else than the records"
		}
		c.repairable(where, withFirst, nil, "a row of the table %q (%.80q) %s", key[0], key[9:], what)
	})
	if err != nil || count == 0 {
		return topics, err
	}
	if count > fewDifferences {
		c.repairable(where, withFirst, nil, "%d rows of indexes differ from the records", count)
	}
	c.findings[first].mend = func(t *txn.Tx) error { // all at once, compared with what is there then
		unreadable := false
		file := filepath.Join(c.db.Scratch(), fmt.Sprintf("%d-%d", id.Number, id.Generation))
		expected, err := records.Expect(t, id, file, c.db.sortMemory, func(string) { unreadable = true })
		if err != nil {
			return err
		}
		defer expected.Close()
		if unreadable { // what is to be there is not known any more
			return mended
		}
		differ := false
		mended = errHoldsNoMore
		var failed error
		err = expected.Differences(t, func(key, want, _ []byte) {
			differ = true
			if want == nil {
				failed = errors.Join(failed, t.Delete(bytes.Clone(key)))
			} else {
				failed = errors.Join(failed, t.Put(bytes.Clone(key), bytes.Clone(want)))
			}
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		if differ {
			mended = nil
		}
		return mended
	}
	return topics, nil
}
