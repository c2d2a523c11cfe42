package extsort

import "cmp"

// arena keeps bytes in pieces of memory without pointers, so that the garbage collector need not scan them.
type arena struct {
	pieces [][]byte // most have pieceSize bytes
	used   int      // pieces that are in use
	free   int      // bytes at the end of the last of these
	size   int      // bytes that were added
}

// pieceSize is the size of a piece in bytes. The first ones are smaller, because most sorters have few rows.
const pieceSize, firstPiece = 64 << 10, 1 << 10

// span is the place of bytes in an arena.
type span struct{ piece, begin, length uint32 }

// compare orders two spans by the time of their addition.
func (s span) compare(other span) int {
	return cmp.Or(cmp.Compare(s.piece, other.piece), cmp.Compare(s.begin, other.begin))
}

// place is the place of a row.
type place struct{ key, value span }

// perRow is the memory of a row in bytes, besides its content.
const perRow = 24

// add copies bytes to the arena.
func (a *arena) add(b []byte) span {
	if a.used == 0 || len(b) > a.free {
		a.begin(len(b))
	}
	last := a.pieces[a.used-1]
	begin := len(last) - a.free
	copy(last[begin:], b)
	a.free -= len(b)
	a.size += len(b)
	return span{uint32(a.used - 1), uint32(begin), uint32(len(b))}
}

// begin begins a piece with at least so many bytes.
func (a *arena) begin(n int) {
	if a.used == len(a.pieces) {
		a.pieces = append(a.pieces, nil)
	}
	if len(a.pieces[a.used]) < n {
		a.pieces[a.used] = make([]byte, max(n, min(firstPiece<<min(a.used, 10), pieceSize)))
	}
	a.free = len(a.pieces[a.used])
	a.used++
}

func (a *arena) at(s span) []byte {
	end := s.begin + s.length
	return a.pieces[s.piece][s.begin:end:end]
}

// clear makes the memory free for other bytes.
func (a *arena) clear() { a.used, a.free, a.size = 0, 0, 0 }
