package records

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/tmshare/tmshare/internal/search"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/store/words"
)

// wordRules is the key of the row with the rules by which the indexes of words were made, see [search.Rules].
var wordRules = keys.Meta("words")

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

// indexRules name the rules of the indexes that are made again where they follow others.
const indexRules = search.Rules + ", reifiers 1"

// PutRules writes the format of the rows, and by which rules indexes of words are made.
func PutRules(t *txn.Tx) error {
	return errors.Join(t.Put(keys.Meta("format"), []byte(strconv.Itoa(keys.FormatVersion))), t.Put(wordRules, []byte(indexRules)))
}

// HasRules reports whether there are indexes of words, and whether they were made by the rules of this program.
func HasRules(t *txn.Tx) (there, current bool, err error) {
	rules, err := t.Get(wordRules)
	return rules != nil, string(rules) == indexRules, err
}

// Format returns the format of the rows, "" where there are none. It is an error where this
// program does not read it.
func Format(t *txn.Tx) (string, error) {
	format, err := t.Get(keys.Meta("format"))
	version := string(format)
	if err == nil && format != nil && version != strconv.Itoa(keys.FormatVersion) && !slices.Contains([]string{"1", "2", "3", "4"}, version) {
		err = fmt.Errorf("the data are in format %s, this program reads format %d: use the version of tmshare that wrote them, or a newer one", version, keys.FormatVersion)
	}
	return version, err
}

// Migrate makes the rows of sources that earlier formats did not have: format 1 had no table of what is reified, neither that
// nor format 2 had state digests, and none before format 5 had indexes of words, and of what topics reify. Those are also made again where they follow other rules.
// To do it again does no harm. Format 3 stored fragments in each form: entries say how theirs are.
func (o Loader) Migrate(t *txn.Tx, from string, ids []keys.Source) error {
	ctx := t.Context()
	if err := o.Engine.DeletePrefix(ctx, []byte{keys.TableWord}); err != nil {
		return err
	}
	for _, id := range ids {
		if err := o.Engine.DeletePrefix(ctx, id.ReifierPrefix()); err != nil {
			return err
		}
	}
	bulk, err := o.Engine.Bulk(ctx)
	if err != nil {
		return err
	}
	defer bulk.Cancel()
	if from == "1" {
		if err := MigrateReified(t, bulk.Put); err != nil {
			return err
		}
	}
	for _, id := range ids {
		if from == "1" || from == "2" {
			if err := o.MigrateDigest(t, id, bulk.Put); err != nil {
				return err
			}
		}
		if from != "1" {
			if err := Of(t, id).migrateReifiers(bulk.Put); err != nil {
				return err
			}
		}
		if err := o.migrateWords(t, id, bulk.Put); err != nil {
			return err
		}
	}
	return bulk.Commit()
}

// migrateWords calls put with the rows of the index of words of a source. Records that cannot be read are left out: whoever checks the data
// is told of them.
func (o Loader) migrateWords(t *txn.Tx, id keys.Source, put func(key, value []byte) error) (err error) {
	l := o.loading(id)
	defer func() { err = errors.Join(err, l.close()) }()
	prefix := id.Key(keys.TableTopic)
	for r, err := range t.ScanInPlace(prefix, nil) {
		if err == nil {
			err = t.Context().Err()
		}
		if err != nil {
			return err
		}
		if topic := readTopic(r.Key[len(prefix):], r.Value); topic != nil {
			if err := l.words.Topic(topic); err != nil {
				return err
			}
		}
	}
	if err := l.words.Close(); err != nil {
		return err
	}
	blocks := words.Blocks{ID: id, Put: put}
	for r, err := range l.sorter.Sorted() {
		if err == nil {
			err = blocks.Add(r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}
	return blocks.Close()
}
