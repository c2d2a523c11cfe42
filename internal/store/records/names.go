package records

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// A name leads to a number only: the row with the name's data is in the keyspace of that number. So changes of the data
// write no row of the names.

// Named is the row with the data of a name: of a collection or a subscription, by the table. Row is nil if the name is
// not in use.
type Named struct {
	Name   string
	Number uint32
	Row    []byte
}

// Find returns the data of a name in a table.
func Find(t *txn.Tx, table byte, name string) (found Named, err error) {
	leads, err := t.Get(keys.Name(table, name))
	if leads != nil && err == nil {
		found, err = named(table, name, leads)
	}
	if leads != nil && err == nil {
		err = found.read(t, table)
	}
	return found, err
}

func named(table byte, name string, leads []byte) (Named, error) {
	if len(leads) != 4 {
		return Named{}, corrupt(name, keys.Name(table, name), fragment.ErrCorrupt)
	}
	return Named{Name: name, Number: binary.BigEndian.Uint32(leads)}, nil
}

func (n *Named) read(t *txn.Tx, table byte) (err error) {
	if n.Row, err = t.Get(keys.Own(n.Number).Key(table)); err == nil && n.Row == nil {
		err = corrupt(n.Name, keys.Name(table, n.Name), fmt.Errorf("%w: it leads to nothing", fragment.ErrCorrupt))
	}
	return err
}

func corrupt(name string, key []byte, err error) error {
	return txn.Corrupt(fmt.Sprintf("name %q,", name), key, err)
}

// List returns all names in a table, sorted. The error has a line for each unreadable one.
func List(t *txn.Tx, table byte) ([]Named, error) { return ListAgain(t, table, nil, nil) }

// ListAgain is List if rows have changed in some keyspaces alone since another list; nil: in any.
func ListAgain(t *txn.Tx, table byte, before []Named, spaces map[uint32]bool) (all []Named, err error) {
	names := before
	if spaces == nil || spaces[keys.Names] {
		names = nil
		for r, failed := range t.Scan(keys.Once(table), nil) {
			if failed != nil {
				return nil, failed
			}
			found, failed := named(table, string(keys.Rest(r.Key)), r.Value)
			if failed == nil {
				names = append(names, found)
			}
			err = errors.Join(err, failed)
			for len(before) > 0 && before[0].Name < found.Name {
				before = before[1:]
			}
			if len(before) > 0 && spaces != nil && before[0].Name == found.Name && before[0].Number == found.Number {
				names[len(names)-1].Row = before[0].Row
			}
		}
	}
	all = make([]Named, 0, len(names))
	for some := range slices.Chunk(names, txn.AtOnce) {
		unread := func(n *Named) bool { return n.Row == nil || spaces[n.Number] }
		var expected [][]byte
		for i := range some {
			if t.Distant() && unread(&some[i]) {
				expected = append(expected, keys.Own(some[i].Number).Key(table))
			}
		}
		if err := t.Expect(expected, nil); err != nil {
			return nil, err
		}
		for _, n := range some {
			if unread(&n) {
				if failed := n.read(t, table); failed != nil {
					err = errors.Join(err, failed)
					continue
				}
			}
			all = append(all, n)
		}
	}
	return all, err
}

// ListAs is List with the results of decode.
func ListAs[T any](t *txn.Tx, table byte, decode func(*Named) (*T, error)) (all []T, err error) {
	list, err := List(t, table)
	for i := range list {
		v, failed := decode(&list[i])
		if failed == nil {
			all = append(all, *v)
		}
		err = errors.Join(err, failed)
	}
	return all, err
}

// Decode decodes the row of a name into v. named returns the name that v then has.
func (n *Named) Decode(table byte, v any, named func() string) error {
	d := json.NewDecoder(bytes.NewReader(n.Row))
	d.DisallowUnknownFields() // the name of a field may be damaged
	err := d.Decode(v)
	if err == nil && d.InputOffset() != int64(len(n.Row)) {
		err = fmt.Errorf("%w: there is more behind it", fragment.ErrCorrupt)
	}
	if err == nil && named() != n.Name {
		err = fmt.Errorf("%w: it is %q, and %q leads to it", fragment.ErrCorrupt, named(), n.Name)
	}
	if err != nil {
		return corrupt(n.Name, keys.Own(n.Number).Key(table), err)
	}
	return nil
}

// PutNamed writes the row of a name with a number, and makes the name lead to it. Rows under the previous number are
// obsolete from the commit on.
func PutNamed(t *txn.Tx, table byte, name string, number uint32, v any) error {
	before, err := t.Get(keys.Name(table, name))
	if err == nil && len(before) == 4 && binary.BigEndian.Uint32(before) != number {
		err = Unname(t, table, name, binary.BigEndian.Uint32(before))
	}
	if err != nil {
		return err
	}
	return errors.Join(t.PutJSON(keys.Own(number).Key(table), v),
		t.Put(keys.Name(table, name), binary.BigEndian.AppendUint32(nil, number)))
}

// Unname makes a name lead nowhere, and removes its row: other rows under its number are obsolete from the commit on.
func Unname(t *txn.Tx, table byte, name string, number uint32) error {
	return errors.Join(t.Delete(keys.Name(table, name)), t.Delete(keys.Own(number).Key(table)))
}

// Nameless calls f with rows under a number, by table, whose name does not lead there, because that name is lost.
func Nameless(t *txn.Tx, number uint32, f func(table byte, name string) error) error {
	for _, table := range []byte{keys.TableCollection, keys.TableSubscription} {
		var is struct {
			Name string `json:"name"`
		}
		there, err := t.GetJSON(keys.Own(number).Key(table), &is)
		if err != nil && !errors.Is(err, kv.ErrDamaged) {
			return err
		}
		if !there && err == nil {
			continue
		}
		leads, err := t.Get(keys.Name(table, is.Name))
		if err == nil && (len(leads) != 4 || binary.BigEndian.Uint32(leads) != number) {
			err = f(table, is.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
