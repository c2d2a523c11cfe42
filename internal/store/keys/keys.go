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

// Format is what a store states of its layout.
var Format = fmt.Sprintf("%d.%d", FormatVersion, Revision)

// A key is the number of a keyspace, a generation, a table, and what the table is sorted by:
//
//	number      4 bytes, big-endian: of a collection or a subscription, or one of those below
//	generation  4 bytes, big-endian; 0 for what is not of one generation
//	table       1 byte
//	the rest    what the table is sorted by; numbers in it are big-endian too
//
// All that belongs to a collection, or to a subscription and its replica, has one number. So it goes with one
// prefix, and so does a generation.

// The numbers of the keyspaces that there are once.
const (
	Names      = 0 // what is found by name, and what there is once
	Processes  = 1 // of those that share the store: no part of what it keeps
	Files      = 2 // package files
	Activities = 3

	FirstNumber = 16 // the least one of a collection or a subscription; the greatest number is that of the engine
)

// The tables.
const (
	TableMeta         = 'm' // name → value: format, next number
	TableCollection   = 'c' // nothing → Collection (JSON). And in the names, name → number
	TableSubscription = 'b' // nothing → Subscription (JSON). And in the names, name → number
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
	// source, 't' or 'a', the rest of the key of a record → nothing: something in it is reified. And source, 'R', reifier,
	// 0, 't' or 'a', the rest of the key → nothing: the reifier of something in it
	TableReified    = 'r'
	TableQuarantine = 'q' // source, TopicSI → Quarantined (JSON)
	TableOwed       = 'Q' // source, TopicSI → Quarantined (JSON): a covered entry that was passed over
	TableSpan       = 'D' // source → which entries of its feed were read last (package follow)
	TableHeld       = 'h' // source, record id → Held (JSON)
	TableDescribed  = 'd' // source, TopicSI → record id
	TableDigest     = 'p' // source, path → node of the tree of the state digest
	// source, table and rest of the key of a row, 0, commit → what the row was before the commit (package past)
	TableBefore  = 'P'
	TableChanged = 'X' // source, commit, part → the keys of the rows that the commit has changed (package past)
	TableVia     = 'V' // source, commit → topics that it has changed, each with the entry by which it has (lines)
	// source, name of an index, 0, and what that sorts by → what follows from the topics, of which the store knows nothing
	// (txn.Index)
	TableIndex     = 'W'
	TableRejection = 'x' // subscription, key of a claim → Rejection (JSON)
	TableDerived   = 'u' // collection, kind of row, and more → what a derived collection still has to take from its inputs
	TableInput     = 'v' // name of a source → numbers of the collections that are derived from it (JSON)
	TableConsumer  = 'K' // name → how far a consumer outside of the store has read a source (JSON, package consumers)
	TableStagedLog = 'w' // nothing → Collection (JSON): a replica whose log is being made
	TableActivity  = 'y' // number → Activity (JSON)
	TableSample    = 'z' // subscription, period of the day → Sample (JSON)
	TableFile      = 'F' // name of a file → where its chunks are (JSON)
	TableChunk     = 'C' // identifier, number → a piece of a file
	// time, identifier → nothing: from when on the chunks of a file that was removed, or never finished, are to go
	TableGoingFile = 'G'
	TableLease     = 'A' // job → Lease (JSON): which of the processes that share the store does it
	TableBeat      = 'B' // job → number of the lease, count: its holder lives
	TableOpening   = 'O' // nothing → the newest ones (JSON). And number → Opening (JSON)
	// collection, name of an extension, 0, and what that sorts by → what it keeps of the collection, of which the store
	// knows nothing
	TableExtension = 'U'
	TableLoad      = 'L' // number → when it was renewed: a load that is under way (package loads)
	TableFormer    = 'M' // name that a collection had → what has become of that (JSON)
)

// spaces are the keyspaces of the tables that there are once.
var spaces = map[byte]uint32{
	TableMeta: Names, TableCollection: Names, TableSubscription: Names, TableFormer: Names,
	TableInput: Names, TableOpening: Names, TableConsumer: Names,
	TableLease: Processes, TableBeat: Processes, TableLoad: Processes,
	TableFile: Files, TableChunk: Files, TableGoingFile: Files,
	TableActivity: Activities,
}

// Once returns what the keys in a table begin with that there is once.
func Once(table byte) []byte { return Source{Number: spaces[table]}.Key(table) }

// Space returns what the keys of a keyspace begin with.
func Space(number uint32) []byte { return binary.BigEndian.AppendUint32(nil, number) }

// Table returns the table of the row with a key.
func Table(key []byte) byte { return key[SourceSize-1] }

// Rest returns what its table is sorted by of a key.
func Rest(key []byte) []byte { return key[SourceSize:] }

// NumberIn returns the number that the rest of a key is.
func NumberIn(key []byte) uint64 { return binary.BigEndian.Uint64(Rest(key)) }

// Everywhere reports whether each store has rows of a table, also one in which nothing was put, or whether they are of
// processes that share it.
func Everywhere(key []byte) bool {
	switch SourceOf(key).Number {
	case Names:
		return Table(key) == TableMeta || Table(key) == TableOpening
	case Processes:
		return true
	}
	return false
}

// Moves reports whether the rows of a keyspace are part of what another store of the node has as well.
func Moves(number uint32) bool { return number != Processes && number != Files }

// The tables of a generation: those of its records, and all that a source has.
const (
	RecordTables = "tilan"
	SourceTables = RecordTables + "rqQhdpWDPXV"
	// PastTables are those of which it is remembered what their rows were.
	PastTables = "tila"
)

// Source names one generation of one source; with the generation 0, what is not of one.
type Source struct {
	Number     uint32
	Generation uint32
}

// SourceSize is how many bytes of a key name the source and the table.
const SourceSize = 9

// SourceOf returns the source to whose records the row with a key belongs.
func SourceOf(key []byte) Source {
	return Source{binary.BigEndian.Uint32(key), binary.BigEndian.Uint32(key[4:])}
}

// Own names what belongs to a number and is not of one generation.
func Own(number uint32) Source { return Source{Number: number} }

// Prefix returns what all keys of the source begin with. [SourceOf] is its inverse.
func (s Source) Prefix() []byte { return s.Key(0)[:SourceSize-1] }

// Key returns what the keys of the source in a table begin with.
func (s Source) Key(table byte) []byte {
	k := make([]byte, 0, 96)
	k = binary.BigEndian.AppendUint32(k, s.Number)
	k = binary.BigEndian.AppendUint32(k, s.Generation)
	return append(k, table)
}

// Numbered returns the key of what has a sequence, or another number, in a table.
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

// ReifiedKey returns the key of the row which says that something is reified in
// the record with a key: that of a topic, or of an association with the least of
// its players.
func (s Source) ReifiedKey(record []byte) []byte {
	return append(s.ReifiedIn(Table(record)), Rest(record)...)
}

// ReifiedIn begins the keys of the rows which say that something is reified in records of a table.
func (s Source) ReifiedIn(table byte) []byte { return append(s.Key(TableReified), table) }

// Record returns the key of a row of which the table and the rest of the key are given, as [IsReifier] and [Relative]
// return them.
func (s Source) Record(named []byte) []byte { return append(s.Key(named[0]), named[1:]...) }

// byReifier follows the source in the keys of [Source.ReifierKey].
const byReifier = 'R'

// ReifierPrefix begins the keys of the rows which say what topics reify.
func (s Source) ReifierPrefix() []byte { return append(s.Key(TableReified), byReifier) }

// ReifiedByPrefix begins those of one topic.
func (s Source) ReifiedByPrefix(reifier fragment.Ref) []byte {
	return append(append(s.ReifierPrefix(), reifier...), 0)
}

// ReifierKey returns the key of the row which says that a topic reifies something in the record with a key, as that of
// [Source.ReifiedKey].
func (s Source) ReifierKey(reifier fragment.Ref, record []byte) []byte {
	return append(append(s.ReifiedByPrefix(reifier), Table(record)), Rest(record)...)
}

// IsReifier reports whether a key is one of [Source.ReifierKey], and returns what follows its reifier: the table of a
// record, and the rest of its key.
func IsReifier(key []byte) (record []byte, ok bool) {
	if len(key) <= SourceSize || Table(key) != TableReified || key[SourceSize] != byReifier {
		return nil, false
	}
	_, record, _ = bytes.Cut(key[SourceSize:], []byte{0})
	return record, true
}

// Meta returns the key of something that there is once.
func Meta(name string) []byte { return Name(TableMeta, name) }

// Name returns the key of what has a name.
func Name(table byte, name string) []byte { return append(Once(table), name...) }
