package keys

import "encoding/binary"

// A list of keys of which each begins like the one before for the most part says of each how many bytes it shares with
// that, how many more it has, as varints, and these.

// AppendShared adds a key to a list, behind the last one.
func AppendShared(list, last, key []byte) []byte {
	shared := 0
	for shared < min(len(last), len(key)) && last[shared] == key[shared] {
		shared++
	}
	list = binary.AppendUvarint(binary.AppendUvarint(list, uint64(shared)), uint64(len(key)-shared))
	return append(list, key[shared:]...)
}

// NextShared returns the key with which a list begins, behind the last one, whose memory it takes, and the rest of the
// list. ok is false for what is none.
func NextShared(list, last []byte) (key, rest []byte, ok bool) {
	shared, n := binary.Uvarint(list)
	length, m := binary.Uvarint(list[max(n, 0):])
	if n <= 0 || m <= 0 || shared > uint64(len(last)) || length > uint64(len(list)-n-m) || shared+length == 0 {
		return nil, nil, false
	}
	end := n + m + int(length)
	return append(last[:shared], list[n+m:end]...), list[end:], true
}
