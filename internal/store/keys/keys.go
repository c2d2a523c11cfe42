// Package keys has the layout of the rows of a store: the tables, and the keys in them.
package keys

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// FormatVersion is the version of the layout. A store refuses any other.
const FormatVersion = 6

// Revision counts the layouts that format 6 had before it was released. A store refuses the earlier ones, too.
const Revision = 6

// Format is the version of the layout that a store states.
var Format = fmt.Sprintf("%d.%d", FormatVersion, Revision)

// A key is the number of a keyspace, a generation, a table, and the sort key within the table:
//
//	number      4 bytes, big-endian: of a collection or a subscription, or one of those below
//	generation  4 bytes, big-endian; 0 for what is not of one generation
//	table       1 byte
//	the rest    what the table is sorted by; numbers in it are big-endian too
//
// All rows of a collection, or of a subscription and its replica, have one number. So one prefix deletes them; likewise
// for a generation.

// The numbers of the keyspaces that exist once.
const (
	Names      = 0 // rows found by name, and rows that exist once
	Processes  = 1 // of those that share the store; not part of its data
	Files      = 2 // package files
	Activities = 3

	FirstNumber = 16 // the least one of a collection or a subscription; the greatest number is that of the engine
)

// The tables.
const (
	TableMeta         = 'm' // name → value: format, next number
	TableCollection   = 'c' // nothing → Collection (JSON); in the names, name → number
	TableSubscription = 'b' // nothing → Subscription (JSON); in the names, name → number
	TableLog          = 'e' // collection, sequence → entry (JSON)
	TableFirst        = 'E' // collection, sequence → the entries from there on, of those with which the log begins
	TableFragment     = 'f' // replica, sequence → the fragment of an entry that the records do not show (XTM 2.1)
	TableKey          = 'k' // collection, hash of a TopicSI → last sequence
	TableLogHash      = 'o' // collection, index → hash of the tree of the log
	TableSnapshot     = 's' // collection, number → Snapshot (JSON)
	TableTopic        = 't' // source, TopicSI → topic record
	TableIdentifier   = 'i' // source, other subject identifier → TopicSI
	TableLocator      = 'l' // source, subject locator → TopicSI
	TableAssociation  = 'a' // source, player, 0, part, key → association record
	TableMentions     = 'n' // source, reference → count
	// source, 't' or 'a', the rest of the key of a record → nothing: the record has a reified item. And source, 'R',
	// reifier, 0, 't' or 'a', the rest of the key → nothing: the reifier of an item in it
	TableReified    = 'r'
	TableQuarantine = 'q' // source, TopicSI → Quarantined (JSON)
	TableOwed       = 'Q' // source, TopicSI → Quarantined (JSON): a covered entry that was passed over
	TableSpan       = 'D' // source → which entries of its feed were read last (package follow)
	TableHeld       = 'h' // source, record id → Held (JSON)
	TableDescribed  = 'd' // source, TopicSI → record id
	TableDigest     = 'p' // source, path → node of the tree of the state digest
	// source, table and rest of the key of a row, 0, commit → the row before the commit (package past)
	TableBefore  = 'P'
	TableChanged = 'X' // source, commit, part → the keys of the rows that the commit has changed (package past)
	TableVia     = 'V' // source, commit → topics that it has changed, each with the entry by which it has (lines)
	// source, name of an index, 0, and its sort key → data derived from the topics, opaque to the store (txn.Index)
	TableIndex     = 'W'
	TableRejection = 'x' // subscription, key of a claim → Rejection (JSON)
	TableDerived   = 'u' // collection, kind of row, and more → what a derived collection must still read of its inputs
	TableInput     = 'v' // name of a source → numbers of the collections that are derived from it (JSON)
	TableConsumer  = 'K' // name → position of a consumer outside of the store in a source (JSON, package consumers)
	TableStagedLog = 'w' // nothing → Collection (JSON): a replica whose log is being made
	TableActivity  = 'y' // number → Activity (JSON)
	TableSample    = 'z' // subscription, period of the day → Sample (JSON)
	TableFile      = 'F' // name of a file → where its chunks are (JSON)
	TableChunk     = 'C' // identifier, number → a piece of a file
	// time, identifier → nothing: the time when the chunks of a removed or unfinished file are to be removed
	TableGoingFile = 'G'
	TableLease     = 'A' // job → Lease (JSON): which of the processes that share the store does it
	TableBeat      = 'B' // job → number of the lease, count: its holder lives
	TableOpening   = 'O' // nothing → the newest ones (JSON); number → Opening (JSON)
	// collection, name of an extension, 0, and its sort key → the extension's data about the collection, opaque to the
	// store
	TableExtension = 'U'
	TableLoad      = 'L' // number → time of its renewal: a running load (package loads)
	TableFormer    = 'M' // former name of a collection → its fate (JSON)
)

// spaces are the keyspaces of the tables that exist once.
var spaces = map[byte]uint32{
	TableMeta: Names, TableCollection: Names, TableSubscription: Names, TableFormer: Names,
	TableInput: Names, TableOpening: Names, TableConsumer: Names,
	TableLease: Processes, TableBeat: Processes, TableLoad: Processes,
	TableFile: Files, TableChunk: Files, TableGoingFile: Files,
	TableActivity: Activities,
}

// Once returns the key prefix of a table that exists once.
func Once(table byte) []byte { return Source{Number: spaces[table]}.Key(table) }

// Space returns the key prefix of a keyspace.
func Space(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number) }

// Table returns the table of the row with a key.
func Table(key []byte) byte { return key[SourceSize-1] }

// Rest returns the sort key of a key within its table.
func Rest(key []byte) []byte { return key[SourceSize:] }

// NumberIn returns the number that the rest of a key is.
func NumberIn(key []byte) uint64 { return binary.BigEndian.Uint64(Rest(key)) }

// Everywhere reports whether every store has rows of a key's table, even an empty one, or whether they are of processes
// that share it.
func Everywhere(key []byte) bool {
	switch SourceOf(key).Number {
	case Names:
		return Table(key) == TableMeta || Table(key) == TableOpening
	case Processes:
		return true
	}
	return false
}

// Moves reports whether the rows of a keyspace are copied to another store of the node.
func Moves(number uint32) bool { return number != Processes && number != Files }

// The tables of a generation: those of its records, and all that a source has.
const (
	RecordTables = "tilan"
	SourceTables = RecordTables + "rqQhdpWDPXV"
	// PastTables are the tables whose former rows are kept.
	PastTables = "tila"
)

// Source is one generation of one source; the generation 0 is for rows of all generations.
type Source struct {
	Number     uint32
	Generation uint32
}

// SourceSize is the number of bytes of a key for the source and the table.
const SourceSize = 9

// SourceOf returns the source of the record with a key.
func SourceOf(key []byte) Source {
	return Source{binary.BigEndian.Uint32(key), binary.BigEndian.Uint32(key[4:])}
}

// Own returns the source for rows of a number that belong to all generations.
func Own(number uint32) Source { return Source{Number: number} }

// Prefix returns the key prefix of the source. [SourceOf] is its inverse.
func (s Source) Prefix() []byte { return s.Key(0)[:SourceSize-1] }

// Key returns the key prefix of the source in a table.
func (s Source) Key(table byte) []byte {
	k := make([]byte, 0, 96)
	k = binary.BigEndian.AppendUint32(k, s.Number)
	k = binary.BigEndian.AppendUint32(k, s.Generation)
	return append(k, table)
}

// Numbered returns the key of a row with a sequence, or another number, in a table.
func (s Source) Numbered(table byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(s.Key(table), number)
}

// LocatorKey returns the key of the row of a locator.
func (s Source) LocatorKey(table byte, l tmdm.Locator) []byte { return append(s.Key(table), l...) }

// PlayingPrefix begins the keys of the associations that player takes part in.
// Locators have no control characters, so the zero byte ends the player.
func (s Source) PlayingPrefix(player fragment.Ref, part fragment.Part) []byte {
	return append(append(s.Key(TableAssociation), player...), 0, byte(part))
}

// AssociationKey returns the key of the row of an association with one of its players.
func (s Source) AssociationKey(player fragment.Ref, part fragment.Part, key fragment.AssociationKey) []byte {
	return append(s.PlayingPrefix(player, part), key[:]...)
}

// Extension begins the keys of the rows that an extension keeps of a collection.
func (s Source) Extension(name string) []byte {
	return append(append(s.Key(TableExtension), name...), 0)
}

// Index begins the keys of the rows of an index of the topics.
func (s Source) Index(name string) []byte { return append(append(s.Key(TableIndex), name...), 0) }

// ReifiedKey returns the key of the row that marks the record with a key as having a reified item: a topic, or an
// association with the least of its players.
func (s Source) ReifiedKey(record []byte) []byte {
	return append(s.ReifiedIn(Table(record)), Rest(record)...)
}

// ReifiedIn returns the key prefix of the marks of records of a table that have a reified item.
func (s Source) ReifiedIn(table byte) []byte { return append(s.Key(TableReified), table) }

// Record returns the key of a row of which the table and the rest of the key are given, as [IsReifier] and [Relative]
// return them.
func (s Source) Record(named []byte) []byte { return append(s.Key(named[0]), named[1:]...) }

// byReifier follows the source in the keys of [Source.ReifierKey].
const byReifier = 'R'

// ReifierPrefix returns the key prefix of the rows about the items that topics reify.
func (s Source) ReifierPrefix() []byte { return append(s.Key(TableReified), byReifier) }

// ReifiedByPrefix begins those of one topic.
func (s Source) ReifiedByPrefix(reifier fragment.Ref) []byte {
	return append(append(s.ReifierPrefix(), reifier...), 0)
}

// ReifierKey returns the key of the row that states that a topic reifies an item in the record with a key, as for
// [Source.ReifiedKey].
func (s Source) ReifierKey(reifier fragment.Ref, record []byte) []byte {
	return append(append(s.ReifiedByPrefix(reifier), Table(record)), Rest(record)...)
}

// IsReifier reports whether a key is one of [Source.ReifierKey], and returns the part after its reifier: the table of a
// record, and the rest of its key.
func IsReifier(key []byte) (record []byte, ok bool) {
	if len(key) <= SourceSize || Table(key) != TableReified || key[SourceSize] != byReifier {
		return nil, false
	}
	_, record, _ = bytes.Cut(key[SourceSize:], []byte{0})
	return record, true
}

// Meta returns the key of a row that exists once.
func Meta(name string) []byte { return Name(TableMeta, name) }

// Name returns the key of a row with a name.
func Name(table byte, name string) []byte { return append(Once(table), name...) }
