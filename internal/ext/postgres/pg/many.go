package pg

import (
	"bytes"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/tmshare/tmshare/internal/kv"
)

// The limits of one query: the number of keys and prefixes, and their bytes. It leaves out values longer than
// longValue, and all beyond maxAnswer.
const (
	maxAsked      = 2000
	maxAskedBytes = 1 << 20
	longValue     = 16 << 10
	maxAnswer     = 16 << 20
)

// The index finds a key by its head and its hash, and the rows of a prefix that is not longer than a head by bounds of
// their heads. Rows come in the order of heads; the code below sorts those with the same head.
const (
	manyValues = `SELECT k.n, octet_length(r.value), CASE WHEN octet_length(r.value) <= $3 THEN r.value END
		FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS k (head, hash, n)
			JOIN tm_rows r ON r.head = k.head AND r.hash = coalesce(k.hash, '')`
	manyRanges = `SELECT k.n, r.size, r.value, r.head, r.tail
		FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS k (low, high, n)
		CROSS JOIN LATERAL (
			SELECT head, tail, octet_length(value) AS size, CASE WHEN octet_length(value) <= $3 THEN value END AS value
				FROM tm_rows
			WHERE head >= k.low AND head < k.high ORDER BY head LIMIT $4) r`
)

// ReadMany implements [kv.ManyReader].
func (r *reader) ReadMany(keys, prefixes [][]byte, most int, value func(key, value []byte),
	rows func(prefix []byte, rows []kv.Row, more bool)) error {
	prefixes = slices.DeleteFunc(slices.Clone(prefixes), func(prefix []byte) bool {
		return len(prefix) > maxHead || kv.After(prefix) == nil
	})
	for len(keys)+len(prefixes) > 0 {
		var some, ranges [][]byte
		some, keys = few(keys)
		ranges, prefixes = few(prefixes)
		a := answer{values: make([]found, len(some)), ranges: make([][]found, len(ranges))}
		err := r.ask(func(ctx context.Context, conn *pgx.Conn) error {
			var batch pgx.Batch
			if len(some) > 0 {
				batch.Queue(manyValues, append(asColumns(some), longValue)...).Query(a.readValues)
			}
			if len(ranges) > 0 {
				batch.Queue(manyRanges, append(asBounds(ranges), longValue, most+1)...).Query(a.readRanges)
			}
			return conn.SendBatch(ctx, &batch).Close()
		})
		if err != nil {
			return err
		}
		for i, f := range a.values {
			if !f.leftOut {
				value(some[i], f.Value)
			}
		}
		for i, all := range a.ranges {
			first, more := beginning(all, most)
			rows(ranges[i], first, more)
		}
	}
	return nil
}

// few returns as many keys as one question may have, and the others.
func few(all [][]byte) (some, others [][]byte) {
	size, n := 0, 0
	for n < len(all) && n < maxAsked && size < maxAskedBytes {
		size += len(all[n])
		n++
	}
	return all[:n], all[n:]
}

// asColumns returns the heads and the hashes of keys.
func asColumns(keys [][]byte) []any {
	var c columns
	for _, key := range keys {
		c.add(string(key), nil)
	}
	return []any{byteas(c.heads), withoutEmpty(c.hashes)}
}

// asBounds returns the bounds of the heads of rows with prefixes.
func asBounds(prefixes [][]byte) []any {
	var highs byteas
	for _, prefix := range prefixes {
		highs = append(highs, kv.After(prefix))
	}
	return []any{byteas(prefixes), highs}
}

// answer is the answer of the database to one query.
type answer struct {
	values []found   // by the number of the key
	ranges [][]found // by the number of the prefix
	size   int       // in bytes
}

// found is a row, or its absence.
type found struct {
	kv.Row
	leftOut bool // its value is
}

func (a *answer) readValues(rows pgx.Rows) error {
	var n, size int
	var value []byte
	_, err := pgx.ForEachRow(rows, []any{&n, &size, &value}, func() error {
		a.values[n-1] = a.row(nil, value, size)
		return nil
	})
	return err
}

func (a *answer) readRanges(rows pgx.Rows) error {
	var n, size int
	var value, head, tail []byte
	_, err := pgx.ForEachRow(rows, []any{&n, &size, &value, &head, &tail}, func() error {
		a.ranges[n-1] = append(a.ranges[n-1], a.row(slices.Concat(head, tail), value, size))
		return nil
	})
	return err
}

// row returns a row of the answer, without its value where that is too much.
func (a *answer) row(key, value []byte, size int) found {
	a.size += len(key) + size
	if size > longValue || a.size > maxAnswer {
		return found{Row: kv.Row{Key: key}, leftOut: true}
	}
	if value == nil {
		value = empty
	}
	return found{Row: kv.Row{Key: key, Value: value}}
}

// beginning returns the first rows of a range, sorted, up to the first whose value was left out. If all has one row
// more than most, rows with the same head as the last one may be missing.
func beginning(all []found, most int) (rows []kv.Row, more bool) {
	slices.SortFunc(all, func(a, b found) int { return bytes.Compare(a.Key, b.Key) })
	if len(all) > most {
		last, _ := split(all[most].Key)
		all, more = slices.DeleteFunc(all, func(f found) bool {
			head, _ := split(f.Key)
			return bytes.Equal(head, last)
		}), true
	}
	for i := range all {
		if all[i].leftOut {
			return rows, true
		}
		rows = append(rows, all[i].Row)
	}
	return rows, more
}
