package keys

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Remembered reports whether a key, or a key prefix, is of a table whose former rows are kept.
func (s Source) Remembered(key []byte) bool {
	return len(key) >= SourceSize && strings.IndexByte(PastTables, Table(key)) >= 0 && bytes.HasPrefix(key, s.Prefix())
}

// Relative returns the table and the rest of the key of a row of a source, without the source.
func Relative(key []byte) []byte { return key[SourceSize-1:] }

// BeforePrefix returns the key prefix of former rows whose keys begin with prefix.
func (s Source) BeforePrefix(prefix []byte) []byte {
	return append(s.Key(TableBefore), Relative(prefix)...)
}

// BeforeRow returns the key prefix of the former versions of a row. No key is the beginning of another one and a zero
// byte: locators have none, and the rest of the key of an association has a fixed length after its player.
func (s Source) BeforeRow(key []byte) []byte { return append(s.BeforePrefix(key), 0) }

// Before returns the key of a row's version before a commit.
func (s Source) Before(key []byte, commit uint64) []byte {
	return binary.BigEndian.AppendUint64(s.BeforeRow(key), commit)
}

// OfBefore parses a key of [Source.Before]. ok is false for other keys.
func (s Source) OfBefore(before []byte) (key []byte, commit uint64, ok bool) {
	end := len(before) - 9
	if end <= SourceSize || before[end] != 0 {
		return nil, 0, false
	}
	return s.Record(before[SourceSize:end]), binary.BigEndian.Uint64(before[end+1:]), true
}

// ChangedBy returns the key prefix of the parts of a commit's changes.
func (s Source) ChangedBy(commit uint64) []byte {
	return binary.BigEndian.AppendUint64(s.Key(TableChanged), commit)
}

// Changed returns the key of a part of a commit's changes.
func (s Source) Changed(commit uint64, part uint32) []byte {
	return binary.BigEndian.AppendUint32(s.ChangedBy(commit), part)
}

// OfChanged returns the commit and the part in a key of [Source.Changed]. ok is false for other keys.
func OfChanged(key []byte) (commit uint64, part uint32, ok bool) {
	if len(key) != SourceSize+12 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(key[SourceSize:]), binary.BigEndian.Uint32(key[SourceSize+8:]), true
}
