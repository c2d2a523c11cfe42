package store

import (
	"bytes"
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
func (c *checker) records(t *txn.Tx, where, remedy string, id keys.Source) (topics int, err error) {
	folder, err := os.MkdirTemp("", "tmshare-check-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	lost := 0
	unreadable := func(what string, name []byte) {
		lost++
		c.findings = append(c.findings, Finding{Where: where, What: fmt.Sprintf("the record of %s %.80q cannot be read", what, name), Remedy: remedy})
	}
	first := len(c.findings)
	expected, err := records.Expect(t, id, filepath.Join(folder, "rows"), c.db.sortMemory, func(key []byte) { unreadable("the topic", key[keys.SourceSize:]) })
	if err != nil {
		return 0, err
	}
	defer expected.Close()
	count := 0
	var few []records.Difference
	err = expected.Differences(t, func(d records.Difference) error {
		if d.Lost {
			unreadable("an association of", d.Key[keys.SourceSize:])
		} else if count++; count <= fewDifferences {
			few = append(few, records.Difference{Key: bytes.Clone(d.Key), Want: d.Want, Have: d.Have})
		}
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case lost > 0:
		return -1, nil // what follows from the others would be no help
	case count == 0:
		return expected.Topics, nil
	}
	mended := errHoldsNoMore // until something was mended
	withFirst := func(*txn.Tx) error { return mended }
	for _, d := range few {
		what := "is missing"
		switch {
		case d.Want == nil:
			what = "belongs to no record"
		case d.Have != nil:
			what = "says something else than the records"
		}
		c.repairable(where, withFirst, nil, "a row of the table %q (%.80q) %s", keys.Table(d.Key), keys.Rest(d.Key), what)
	}
	if count > fewDifferences {
		c.repairable(where, withFirst, nil, "%d rows of indexes differ from the records", count)
	}
	c.findings[first].mend = func(t *txn.Tx) error { // all at once, compared with what is there then
		file := filepath.Join(c.db.Scratch(), fmt.Sprintf("%d-%d", id.Number, id.Generation))
		done, err := records.MendDerived(t, id, file, c.db.sortMemory)
		if err == nil && !done {
			err = errHoldsNoMore
		}
		mended = err
		return err
	}
	return expected.Topics, nil
}
