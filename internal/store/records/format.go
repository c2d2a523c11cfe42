package records

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// indexesKey is the key of the row with the indexes that match the records of all sources, and the rules of each: name
// → rules (JSON).
var indexesKey = keys.Meta("indexes")

// formatKey is the key of the row with the format of the rows. formatBefore is that of formats of which the keys began
// with the table.
var formatKey = keys.Meta("format")

const formatBefore = "mformat"

// NodeKey is the key of the row with the node that the rows are of.
var NodeKey = keys.Meta("node")

// Node returns the node of the rows. An update assigns one if there is none.
func Node(t *txn.Tx) (node uuid.UUID, err error) {
	known, err := t.Get(NodeKey)
	switch {
	case known != nil:
		return uuid.FromBytes(known)
	case err != nil || !t.Changing():
		return uuid.Nil, err
	}
	node = uuid.New()
	return node, t.Put(NodeKey, node[:])
}

// PutFormat writes the format of the rows.
func PutFormat(t *txn.Tx) error { return t.Put(formatKey, []byte(keys.Format)) }

// Kept returns the indexes that agree with the records, and by which rules they were made.
func Kept(t *txn.Tx) (rules map[string]string, err error) {
	rules = map[string]string{}
	_, err = t.GetJSON(indexesKey, &rules)
	return rules, err
}

// Current returns the indexes of this program that agree with the records, and were made by its rules.
func Current(t *txn.Tx) ([]txn.Index, error) {
	kept, err := Kept(t)
	return slices.DeleteFunc(slices.Clone(t.Indexes), func(index txn.Index) bool {
		return kept[index.Name] != index.Rules
	}), err
}

// PutIndexes records that the indexes of this program match the records.
func PutIndexes(t *txn.Tx) error {
	kept, err := Kept(t)
	if err != nil || len(t.Indexes) == 0 {
		return err
	}
	for _, index := range t.Indexes {
		kept[index.Name] = index.Rules
	}
	return t.PutJSON(indexesKey, kept)
}

// DropIndexes marks the indexes that this program does not have as out of date, as it is going to change the records.
func DropIndexes(t *txn.Tx) error {
	kept, err := Kept(t)
	all := len(kept)
	maps.DeleteFunc(kept, func(name, _ string) bool {
		return !slices.ContainsFunc(t.Indexes, func(index txn.Index) bool { return index.Name == name })
	})
	if err != nil || len(kept) == all {
		return err
	}
	return t.PutJSON(indexesKey, kept)
}

// Format returns the format of the rows, "" if there are none. It returns an error if this program does not read it: a
// [kv.ErrOlder] for an earlier one.
func Format(t *txn.Tx) (string, error) {
	format, err := t.Get(formatKey)
	if err == nil && format == nil {
		format, err = t.Get([]byte(formatBefore))
	}
	if err != nil || format == nil {
		return "", err
	}
	version := string(format)
	number, err := strconv.Atoi(version)
	switch {
	case version == keys.Format:
		return version, nil
	case err == nil && number > 0 && number <= keys.FormatVersion: // it had no revisions at first
		return version, kv.Older("the data are in", "format", version, keys.Format)
	}
	return version,
		fmt.Errorf("the data are in format %s, this program reads format %s: use the version of tmshare that wrote them, "+
			"or a newer one", version, keys.Format)
}
