package store

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tmshare/tmshare/internal/store/agree"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/past"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/sources"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// Derived rows are derived again and compared with the stored ones, so that no rule about rows is implemented twice.

// fewDifferences is the number of rows that are reported singly.
const fewDifferences = 20

// derivation compares rows with those derived from others.
type derivation struct {
	where string

	// compare calls f with each stored row that differs from the derived one. Many rows go to a file.
	compare func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error

	// mend writes the derived rows in one commit, compared with the rows at that time. If it changes nothing, the error
	// is errHoldsNoMore.
	mend func(t *txn.Tx) error
}

// telling receives damage of rows that are not derived.
type telling struct {
	lost  func(remedy, what string, args ...any) // others follow from it
	wrong func(remedy, what string, args ...any) // nothing derives it
}

// compare reports the rows that differ from the derived ones, unless rows are lost that others are derived from,
// because the rest would derive wrong rows.
func (c *checker) compare(t *txn.Tx, d *derivation) (lost bool, err error) {
	count := 0
	var few []agree.Difference
	wrong := func(remedy, what string, args ...any) {
		c.findings = append(c.findings, Finding{Where: d.where, What: fmt.Sprintf(what, args...), Remedy: remedy})
	}
	err = d.compare(t, c.file("rows"), telling{wrong: wrong, lost: func(remedy, what string, args ...any) {
		lost = true
		wrong(remedy, what, args...)
	}}, func(d agree.Difference) error {
		if count++; count <= fewDifferences {
			few = append(few, d.Kept())
		}
		return nil
	})
	if err != nil || lost || count == 0 {
		return lost, err
	}
	first := len(c.findings)
	mended := errHoldsNoMore // until something was mended
	withFirst := func(*txn.Tx) error { return mended }
	for _, row := range few {
		what := "is missing"
		switch {
		case row.Want == nil:
			what = "follows from nothing"
		case row.Have != nil:
			what = "is another one than follows from the rest"
		}
		c.repairable(d.where, withFirst, nil, "a row of %s %s", rowName(row.Key), what)
	}
	if count > fewDifferences {
		c.repairable(d.where, withFirst, nil, "%d rows are not as they follow from others", count)
	}
	c.findings[first].mend = func(t *txn.Tx) error {
		mended = d.mend(t)
		return mended
	}
	return false, nil
}

func (c *checker) file(name string) string { return filepath.Join(c.folder, name) }

// write mends the rows of a derivation by writing each that differs.
func (c *checker) write(t *txn.Tx, d *derivation) error {
	var all []agree.Difference
	lost := false
	tell := telling{func(string, string, ...any) { lost = true }, func(string, string, ...any) {}}
	err := d.compare(t, c.file("mended"), tell, func(d agree.Difference) error {
		all = append(all, d.Kept())
		return nil
	})
	if err == nil && (lost || len(all) == 0) {
		return errHoldsNoMore
	}
	for i := range all {
		if err == nil {
			err = all[i].Mend(t)
		}
	}
	return err
}

// tableNames are the names of the tables of derived rows.
var tableNames = map[byte]string{
	keys.TableTopic: "the topics", keys.TableAssociation: "the associations",
	keys.TableIdentifier: "the subject identifiers", keys.TableLocator: "the subject locators",
	keys.TableMentions: "the counts of mentions", keys.TableReified: "the reifiers", keys.TableIndex: "the indexes",
	keys.TableDigest: "the state digest",
	keys.TableLog:    "the log", keys.TableFirst: "the first entries", keys.TableFragment: "the fragments that are kept",
	keys.TableKey: "the topic keys", keys.TableLogHash: "the tree of the log",
	keys.TableDescribed: "the topics that records describe",
	keys.TableBefore:    "what was before commits", keys.TableChanged: "what commits have changed",
}

// rowName describes a row by its key, for people.
func rowName(key []byte) string {
	table, rest := keys.Table(key), keys.Rest(key)
	name := fmt.Sprintf("%.80q", rest)
	switch numbered := len(rest) == 8 && strings.IndexByte(numberedTables, table) >= 0; {
	case numbered:
		name = fmt.Sprint(keys.NumberIn(key))
	case table == keys.TableKey:
		name = fmt.Sprintf("%x", rest)
	}
	return fmt.Sprintf("%s (table %q, %s)", tableNames[table], table, name)
}

const numberedTables = string(keys.TableLog) + string(keys.TableFirst) + string(keys.TableFragment) +
	string(keys.TableLogHash)

// records returns the comparison of the rows derived from the records of a source. It sets topics to the number of
// topics. remedy is the advice for lost records. stated is the known state digest of the records; "" if unknown. If the
// records have another digest, they are damaged, and nothing is derived from them.
func (c *checker) records(where, remedy string, id keys.Source, stated string, topics *int) *derivation {
	return &derivation{
		where: where,
		compare: func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error {
			unreadable := func(what string, key []byte) {
				tell.lost(remedy, "the record of %s %.80q cannot be read", what, keys.Rest(key))
			}
			var err error
			if t.Indexes, err = records.Current(t); err != nil { // opening for writing makes the others again
				return err
			}
			expected, err := records.Expect(t, id, file, c.db.sortMemory, func(key []byte) { unreadable("the topic", key) })
			if err != nil {
				return err
			}
			defer expected.Close()
			*topics = expected.Topics
			digest := records.StoredDigest(t, id)
			err = expected.Differences(t, func(d records.Difference) error {
				if d.Lost {
					unreadable("an association of", d.Key)
					return nil
				}
				digest.Follows(&d.Difference)
				return f(d.Difference)
			})
			if err != nil || stated == "" {
				return err
			}
			is, err := digest.Read()
			if err == nil && is != stated {
				tell.lost(remedy,
					"records are lost, or are others than were published: their state digest is %s, and the last entry states %s", is,
					stated)
			}
			return err
		},
		mend: func(t *txn.Tx) error {
			done, err := records.MendDerived(t, id, c.file("mended"), c.db.sortMemory)
			if err == nil && !done {
				err = errHoldsNoMore
			}
			return err
		},
	}
}

// described returns the comparison of the rows that assign topics to records with the records of a subscription.
func (c *checker) described(where, remedy string, id keys.Source) *derivation {
	d := &derivation{where: where}
	d.compare = func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error {
		rows := agree.New(file, c.db.sortMemory, nil)
		defer rows.Close()
		for r, err := range t.Scan(id.Key(keys.TableHeld), nil) {
			var h Held
			if err == nil && txn.Decode(r, &h) != nil {
				tell.lost(remedy, "what is known of the record %.80q cannot be read", keys.Rest(r.Key))
			} else if err == nil && h.TopicSI != "" {
				err = rows.Add(id.LocatorKey(keys.TableDescribed, h.TopicSI), bytes.Clone(keys.Rest(r.Key)))
			}
			if err != nil {
				return err
			}
		}
		return rows.Compare(t.ScanInPlace(id.Key(keys.TableDescribed), nil), f)
	}
	d.mend = func(t *txn.Tx) error { return c.write(t, d) }
	return d
}

// past returns the comparison of the stored past of a collection. Former records cannot be derived.
func (c *checker) past(v *View) *derivation {
	d := &derivation{where: "collection " + v.Name}
	d.compare = func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error {
		mark := v.SourceKey().Changed(v.Remembered, 0)
		if there, err := t.Get(mark); err != nil {
			return err
		} else if there == nil && v.Remembered > 0 && v.Remembered >= v.Horizon {
			if err := f(agree.Difference{Key: mark, Want: []byte{}}); err != nil {
				return err
			}
		}
		from := max(v.Remembered+1, v.Horizon)
		var commits []uint64
		for e, err := range v.Kept(from) {
			if err != nil {
				return err
			}
			if e.Digest != "" && v.Replica == nil {
				commits = append(commits, e.Seq)
			}
		}
		if at, err := past.CommitOf(t.Reader(), v.SourceKey(), v.Horizon); err != nil {
			return err
		} else if at == v.Horizon && at >= from { // its entry may be pruned
			commits = append(commits, at)
		}
		return c.comparePast(t, v.SourceKey(), from, commits, v.Replica == nil, restoreRemedy, file, tell, f)
	}
	d.mend = v.again(func(now *View) error { return c.write(now.tx, c.past(now)) })
	return d
}

// pastOf is past for the records of a subscription, which remembers as many commits as are counted.
func (c *checker) pastOf(where, remedy string, s *Subscription) *derivation {
	d := &derivation{where: where}
	d.compare = func(t *txn.Tx, file string, tell telling, f func(agree.Difference) error) error {
		var commits []uint64
		for n := s.State.Forgotten; n < s.State.Commits; n++ {
			commits = append(commits, n+1)
		}
		return c.comparePast(t, s.Source(s.State), s.State.Forgotten+1, commits, true, remedy, file, tell, f)
	}
	d.mend = func(t *txn.Tx) error {
		now, err := sources.Get(t, s.Name)
		if err == nil && (now.State == nil || now.Number != s.Number) {
			err = errHoldsNoMore
		}
		if err != nil {
			return err
		}
		return c.write(t, c.pastOf(where, remedy, now))
	}
	return d
}

func (c *checker) comparePast(t *txn.Tx, id keys.Source, from uint64, commits []uint64, once bool, remedy, file string,
	tell telling, f func(agree.Difference) error) error {
	return records.ComparePast(t, id, from, commits, once, file, c.db.sortMemory, func(key []byte, commit uint64) {
		tell.lost(remedy, "it is lost what the row of %s (%.80q) was before commit %d", tableNames[keys.Table(key)],
			keys.Rest(key), commit)
	}, f)
}
