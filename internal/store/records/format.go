package records

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	search "github.com/tmshare/tmshare/internal/ext/search/text"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// wordRules is the key of the row with the rules by which the indexes of words were made, see [search.Rules].
var wordRules = keys.Meta("words")

// formatKey is the key of the row with the format of the rows. formatBefore is that of formats of which the keys began
// with the table.
var formatKey = keys.Meta("format")

const formatBefore = "mformat"

// NodeKey is the key of the row with the node that the rows are of.
var NodeKey = keys.Meta("node")

// Node returns the node that the rows are of. An update names one where there is none.
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

// PutFormat writes the format of the rows, and by which rules indexes of words are made.
func PutFormat(t *txn.Tx) error {
	return errors.Join(t.Put(formatKey, []byte(keys.Format)), t.Put(wordRules, []byte(search.Rules)))
}

// HasRules reports whether the indexes of words were made by the rules of this program: those of another version of
// Unicode are others.
func HasRules(t *txn.Tx) (bool, error) {
	rules, err := t.Get(wordRules)
	return string(rules) == search.Rules, err
}

// Format returns the format of the rows, "" where there are none. It is an error where this
// program does not read it: a [kv.ErrOlder] where that is an earlier one.
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
	return version, fmt.Errorf("the data are in format %s, this program reads format %s: use the version of tmshare that wrote them, or a newer one", version, keys.Format)
}

// ReindexWords makes the indexes of words of sources anew. To do it again does no harm. Records that cannot be read are
// left out: whoever checks the data is told of them.
func (o Loader) ReindexWords(t *txn.Tx, ids []keys.Source) error {
	ctx := t.Context()
	for _, id := range ids {
		if err := o.Engine.DeletePrefix(ctx, id.Key(keys.TableWord)); err != nil {
			return err
		}
	}
	bulk, err := o.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	for _, id := range ids {
		e, err := Expect(t, id, o.file(id), o.Memory, func([]byte) {})
		if err != nil {
			return err
		}
		if err := errors.Join(e.rows.write(e.words(), bulk.Put), e.Close()); err != nil {
			return err
		}
	}
	return bulk.Commit()
}
