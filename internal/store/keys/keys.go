// Package keys has the layout of the rows of a store: the tables, and the keys in them.
package keys

import (
	"bytes"
	"encoding/binary"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// FormatVersion is the version of the layout. A store refuses any other.
const FormatVersion = 6

// The tables. A key is a table letter and what the table is sorted by. Numbers are
// big-endian, so that they sort.
const (
	TableMeta         = 'm' // name → value: format, next number
	TableCollection   = 'c' // name → Collection (JSON)
	TableSubscription = 'b' // name → Subscription (JSON)
	TableLog          = 'e' // collection, sequence → entry (JSON)
	TableFragment     = 'f' // collection, sequence → fragment data
	TableKey          = 'k' // collection, topic key → last sequence, TopicSI
	TableLogHash      = 'o' // collection, index → hash of the tree of the log
	TableChangeList   = 'g' // collection, number → ChangeList (JSON)
	TableSnapshot     = 's' // collection, number → Snapshot (JSON)
	TableTopic        = 't' // source, TopicSI → topic record
	TableIdentifier   = 'i' // source, other subject identifier → TopicSI
	TableLocator      = 'l' // source, subject locator → TopicSI
	TableAssociation  = 'a' // source, player, 0, part, key → association record
	TableMentions     = 'n' // source, reference → count
	TableReified      = 'r' // source, 't' or 'a', the rest of the key of a record → nothing: something in it is reified. And source, 'R', reifier, 0, 't' or 'a', the rest of the key → nothing: by whom
	TableQuarantine   = 'q' // source, TopicSI → Quarantined (JSON)
	TableSpan         = 'D' // source → which entries of its feed were read last (package follow)
	TableHeld         = 'h' // source, record id → Held (JSON)
	TableDescribed    = 'd' // source, TopicSI → record id
	TableDigest       = 'p' // source, path → node of the tree of the state digest
	TableWord         = 'W' // source, kind of row, rank, word, TopicSI → nothing, or more of them: the words by which topics are found (package words)
	TableRejection    = 'x' // subscription, key of a claim → Rejection (JSON)
	TableDerived      = 'u' // collection, kind of row, and more → what a derived collection still has to take from its inputs
	TableInput        = 'v' // name of a source → numbers of the collections that are derived from it (JSON)
	TableStagedLog    = 'w' // name → Collection (JSON): a replica whose log is being made
	TableActivity     = 'y' // number → Activity (JSON)
	TableSample       = 'z' // subscription, period of the day → Sample (JSON)
	TableFile         = 'F' // name of a file → where its chunks are (JSON)
	TableChunk        = 'C' // identifier, number → a piece of a file
	TableGoingFile    = 'G' // time, identifier → nothing: from when on the chunks of a file that was removed, or never finished, are to go
	TableLease        = 'A' // job → Lease (JSON): which of the processes that share the store does it
	TableBeat         = 'B' // job → number of the lease, count: its holder lives
	TableOpening      = 'O' // nothing → the newest ones (JSON). And number → Opening (JSON)
	TableLoad         = 'L' // number → when it was renewed: a load that is under way (package loads)
	// j and J are those of the engine.
)

// The tables that hold the records of a generation of a source, and all that
// belongs to one.
const (
	RecordTables = "tilan"
	SourceTables = RecordTables + "rqhdpWD"
)

// CollectionTables are the tables of what belongs to a collection, by its number.
const CollectionTables = "efkogsu"

// OwnTables are those of what each store has, also one in which nothing was put.
const OwnTables = "mO"

// FileTables are the tables in which package files keeps files.
const FileTables = "CFG"

// ProcessTables are those of the processes that share a store, and no part of what it keeps.
const ProcessTables = "ABL"

// Source names one generation of one source.
type Source struct {
	Number     uint32
	Generation uint32
}

// SourceSize is how many bytes of a key name the table and the source.
const SourceSize = 9

// SourceOf returns the source to whose records the row with a key belongs.
func SourceOf(key []byte) Source {
	return Source{binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:])}
}

// Key returns what the keys of the source in a table begin with.
func (s Source) Key(table byte) []byte {
	k := make([]byte, 0, 96)
	k = append(k, table)
	k = binary.BigEndian.AppendUint32(k, s.Number)
	return binary.BigEndian.AppendUint32(k, s.Generation)
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

// ReifiedKey returns the key of the row which says that something is reified in
// the record with a key: that of a topic, or of an association with the least of
// its players.
func (s Source) ReifiedKey(record []byte) []byte {
	k := append(s.Key(TableReified), record[0])
	return append(k, record[len(s.Key(TableReified)):]...)
}

// byReifier follows the source in the keys of [Source.ReifierKey].
const byReifier = 'R'

// ReifierPrefix begins the keys of the rows which say what topics reify.
func (s Source) ReifierPrefix() []byte { return append(s.Key(TableReified), byReifier) }

// ReifiedByPrefix begins those of one topic.
func (s Source) ReifiedByPrefix(reifier fragment.Ref) []byte {
	return append(append(s.ReifierPrefix(), reifier...), 0)
}

// ReifierKey returns the key of the row which says that a topic reifies something in the record with a key, as that of [Source.ReifiedKey].
func (s Source) ReifierKey(reifier fragment.Ref, record []byte) []byte {
	return append(append(s.ReifiedByPrefix(reifier), record[0]), record[SourceSize:]...)
}

// IsReifier reports whether a key is one of [Source.ReifierKey], and returns what follows its reifier: the table of a record, and the rest of its key.
func IsReifier(key []byte) (record []byte, ok bool) {
	if len(key) <= SourceSize || key[0] != TableReified || key[SourceSize] != byReifier {
		return nil, false
	}
	_, record, _ = bytes.Cut(key[SourceSize:], []byte{0})
	return record, true
}

// Meta returns the key of something that there is once.
func Meta(name string) []byte { return append([]byte{TableMeta}, name...) }

// Name returns the key of what has a name.
func Name(table byte, name string) []byte { return append([]byte{table}, name...) }

// Collection returns what the keys of a collection in a table begin with.
func Collection(table byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{table}, number)
}

// Sequence returns the key of what has a sequence, or another number, in a collection.
func Sequence(table byte, collection uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(Collection(table, collection), seq)
}
