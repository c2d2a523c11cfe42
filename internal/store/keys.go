package store

import (
	"encoding/binary"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/tmdm"
)

// FormatVersion is the version of the layout on disk. Open refuses a newer one.
const FormatVersion = 2

// A key is a table letter and what the table is sorted by. Numbers are
// big-endian, so that they sort.
const (
	tableMeta         = 'm' // name → value: format, next number
	tableCollection   = 'c' // name → Collection (JSON)
	tableSubscription = 'b' // name → Subscription (JSON)
	tableLog          = 'e' // collection, sequence → entry (JSON)
	tableFragment     = 'f' // collection, sequence → fragment data
	tableKey          = 'k' // collection, topic key → last sequence, TopicSI
	tableChangeList   = 'g' // collection, number → ChangeList (JSON)
	tableSnapshot     = 's' // collection, number → Snapshot (JSON)
	tableTopic        = 't' // source, TopicSI → topic record
	tableIdentifier   = 'i' // source, other subject identifier → TopicSI
	tableLocator      = 'l' // source, subject locator → TopicSI
	tableAssociation  = 'a' // source, player, 0, part, key → association record
	tableMentions     = 'n' // source, reference → count
	tableReified      = 'r' // source, 't' or 'a', the rest of the key of a record → nothing: something in it is reified
	tableQuarantine   = 'q' // source, TopicSI → Quarantined (JSON)
	tableHeld         = 'h' // source, record id → Held (JSON)
	tableDescribed    = 'd' // source, TopicSI → record id
	tableActivity     = 'y' // number → Activity (JSON)
	// j and J are those of the engine.
)

// The tables that hold the records of a generation of a source, and all that
// belongs to one.
const (
	recordTables = "tilan"
	sourceTables = recordTables + "rqhd"
)

// sourceID names one generation of one source.
type sourceID struct {
	number     uint32
	generation uint32
}

// idOf returns the source to whose records the row with a key belongs.
func idOf(key []byte) sourceID {
	return sourceID{binary.BigEndian.Uint32(key[1:]), binary.BigEndian.Uint32(key[5:])}
}

func (s sourceID) key(table byte) []byte {
	k := make([]byte, 0, 96)
	k = append(k, table)
	k = binary.BigEndian.AppendUint32(k, s.number)
	return binary.BigEndian.AppendUint32(k, s.generation)
}

func (s sourceID) locatorKey(table byte, l tmdm.Locator) []byte { return append(s.key(table), l...) }

// playingPrefix begins the keys of the associations that player takes part in.
// Locators have no control characters, so the zero byte ends the player.
func (s sourceID) playingPrefix(player fragment.Ref, part fragment.Part) []byte {
	return append(append(s.key(tableAssociation), player...), 0, byte(part))
}

func (s sourceID) associationKey(player fragment.Ref, part fragment.Part, key fragment.AssociationKey) []byte {
	return append(s.playingPrefix(player, part), key[:]...)
}

func metaKey(name string) []byte             { return append([]byte{tableMeta}, name...) }
func nameKey(table byte, name string) []byte { return append([]byte{table}, name...) }
func collectionKey(table byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{table}, number)
}

func sequenceKey(table byte, collection uint32, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(collectionKey(table, collection), seq)
}
