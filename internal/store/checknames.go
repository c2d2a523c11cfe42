package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/internal/store/derived"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// names checks that a name leads to each collection and each subscription.
func (c *checker) names(t *txn.Tx) error {
	for prefix, err := range t.Prefixes(len(keys.Space(0)), keys.Space(keys.FirstNumber)) {
		if err != nil {
			return err
		}
		number := binary.BigEndian.Uint32(prefix)
		err := records.Nameless(t, number, func(table byte, name string) error { return c.nameless(t, number, table, name) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) nameless(t *txn.Tx, number uint32, table byte, name string) error {
	where, key := "collection "+name, keys.Name(table, name)
	if table == keys.TableSubscription {
		where = "subscription " + name
	}
	other, err := t.Get(key)
	switch {
	case err != nil:
		return err
	case name == "":
		c.lost(fmt.Sprint("number ", number), "it has rows, and no name: its own row cannot be read")
		return nil
	case len(other) == 4:
		c.lost(where, "it has rows under the number %d, and its name leads to %d", number, binary.BigEndian.Uint32(other))
		return nil
	}
	c.repairable(where, func(t *txn.Tx) error {
		now, err := t.Get(key)
		if err != nil {
			return err
		}
		if len(now) == 4 {
			return errHoldsNoMore
		}
		return t.Put(key, binary.BigEndian.AppendUint32(nil, number))
	}, nil, "its name leads nowhere, so it cannot be found")
	return nil
}

// inputs checks that the inputs of a derived collection know it; otherwise they do not keep their changes for it.
func (c *checker) inputs(t *txn.Tx, col *Collection) error {
	for _, in := range col.Inputs {
		numbers, err := derived.DerivedFrom(t, in.Name)
		if err == nil && slices.Contains(numbers, col.Number) || !slices.Contains(col.DerivedFrom, in.Name) {
			continue
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		number, source := col.Number, keys.Source{Number: in.Number}
		c.repairable("collection "+col.Name, func(t *txn.Tx) error {
			if err != nil {
				if err := t.Delete(keys.Name(keys.TableInput, in.Name)); err != nil {
					return err
				}
			}
			return derived.Begin(t, number, []string{in.Name}, []keys.Source{source})
		}, nil, "its input %s does not know of it", in.Name)
	}
	return nil
}
