package patch

import "sort"

// hunk is where two rows of elements differ: from[a:b] stands in the one where to[c:d] stands
// in the other.
type hunk struct{ a, b, c, d int }

// align returns the differences between two sequences of elements, in order. It aligns elements that occur once in
// both, as far as their order is the same ("patience diff"), and equal elements next to them. That takes little more
// time than reading both.
func align(from, to []child) []hunk {
	w := hunk{0, len(from), 0, len(to)}
	w.trim(from, to)
	var hunks []hunk
	add := func(h hunk) {
		h.trim(from, to)
		if h.a < h.b || h.c < h.d {
			hunks = append(hunks, h)
		}
	}
	a, c := w.a, w.c
	for _, p := range longestRise(onceInBoth(from, to, w)) {
		add(hunk{a, p.from, c, p.to})
		a, c = p.from+1, p.to+1
	}
	add(hunk{a, w.b, c, w.d})
	return hunks
}

// trim removes equal elements at the beginning and at the end.
func (h *hunk) trim(from, to []child) {
	for h.a < h.b && h.c < h.d && from[h.a] == to[h.c] {
		h.a, h.c = h.a+1, h.c+1
	}
	for h.a < h.b && h.c < h.d && from[h.b-1] == to[h.d-1] {
		h.b, h.d = h.b-1, h.d-1
	}
}

// pair is an element that both rows have.
type pair struct{ from, to int }

// onceInBoth returns the elements that are there once in both, in the order of the first.
func onceInBoth(from, to []child, w hunk) []pair {
	if w.a == w.b || w.c == w.d {
		return nil
	}
	type place struct {
		from, to       int
		inFrom, inThis int
	}
	places := make(map[string]place, w.b-w.a)
	for i := w.a; i < w.b; i++ {
		p := places[from[i].all]
		p.from, p.inFrom = i, p.inFrom+1
		places[from[i].all] = p
	}
	for i := w.c; i < w.d; i++ {
		if p, ok := places[to[i].all]; ok {
			p.to, p.inThis = i, p.inThis+1
			places[to[i].all] = p
		}
	}
	var pairs []pair
	for i := w.a; i < w.b; i++ {
		if p := places[from[i].all]; p.inFrom == 1 && p.inThis == 1 {
			pairs = append(pairs, pair{i, p.to})
		}
	}
	return pairs
}

// longestRise returns the longest row of pairs in which both places rise.
func longestRise(pairs []pair) []pair {
	var ends []int // of rows of each length, the pair with the least place
	before := make([]int, len(pairs))
	for i, p := range pairs {
		n := sort.Search(len(ends), func(n int) bool { return pairs[ends[n]].to > p.to })
		if before[i] = -1; n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	rise := make([]pair, len(ends))
	if len(ends) > 0 {
		for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
			rise[n] = pairs[i]
		}
	}
	return rise
}
