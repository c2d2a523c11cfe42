package keys

import "encoding/binary"

// A list of keys with long common prefixes has for each key the number of bytes that it shares with the previous one,
// the number of further bytes, as varints, and these bytes.

// AppendShared appends a key to a list; last is the previous key.
func AppendShared(list, last, key []byte) []byte {
	shared := 0
	for shared < min(len(last), len(key)) && last[shared] == key[shared] {
		shared++
	}
	list = binary.AppendUvarint(binary.AppendUvarint(list, uint64(shared)), uint64(len(key)-shared))
	return append(list, key[shared:]...)
}

// NextShared returns the first key of a list after the key last, whose memory it reuses, and the rest of the list. ok
// is false for an invalid list.
func NextShared(list, last []byte) (key, rest []byte, ok bool) {
	shared, n := binary.Uvarint(list)
	length, m := binary.Uvarint(list[max(n, 0):])
	if n <= 0 || m <= 0 || shared > uint64(len(last)) || length > uint64(len(list)-n-m) || shared+length == 0 {
		return nil, nil, false
	}
	end := n + m + int(length)
	return append(last[:shared], list[n+m:end]...), list[end:], true
}
