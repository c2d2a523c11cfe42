package tmdm

import "cmp"

// slab allocates items in blocks, which is faster than single allocations and saves the memory for rounding up each
// size; a block is freed only when none of its items is used any more.
type slab[T any] struct {
	spare []T
	size  int
	most  int // items made at once, up to which size grows; 256 where it is 0
}

func (s *slab[T]) take() *T {
	if len(s.spare) == 0 {
		s.size = min(max(2*s.size, 4), cmp.Or(s.most, 256))
		s.spare = make([]T, s.size)
	}
	item := &s.spare[0]
	s.spare = s.spare[1:]
	return item
}

// packer moves lists that were given space to grow into arrays without gaps.
type packer[T any] struct{ array []T }

func (p *packer[T]) pack(list []T) []T {
	switch n := len(list); {
	case n == 0:
		return nil
	case n == cap(list):
		return list
	case n > cap(p.array)-len(p.array):
		p.array = make([]T, 0, max(n, min(2*cap(p.array), 1024), 8))
	}
	from := len(p.array)
	p.array = append(p.array, list...)
	return p.array[from:len(p.array):len(p.array)]
}
