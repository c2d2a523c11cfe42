package words

import (
	"bytes"
	"slices"

	"github.com/tmshare/tmshare/fragment"
)

// Definitions and notes have many words, but few searches need them, because names are searched first. So the index has
// one entry per topic for all of them: the hashes of its words. A search reads these entries, and compares the records
// whose hashes match.

// The beginnings of words that are hashed. So in a definition or a note, a word of a query fits a longer one from so
// many bytes on.
const (
	shortest = 3 // bytes of a word that has a hash
	begins   = 6
)

// hash is that of a word. It has no byte that is zero.
type hash [2]byte

func hashOf(word string) hash {
	h := uint32(2166136261) // FNV-1a
	for i := range min(len(word), begins) {
		h = (h ^ uint32(word[i])) * 16777619
	}
	return hashFrom(h)
}

func isHashed(word string) bool { return len(word) >= shortest }

func hashFrom(h uint32) hash {
	h ^= h >> 16
	return hash{byte(h%255 + 1), byte(h>>8%255 + 1)}
}

// hashesOf returns the hashes of the words of a topic, of which the entries have those of its names; "": it has no
// definition and no note.
func hashesOf(t *fragment.Topic, names []Entry) string {
	var all []hash
	topicTexts(t, func(text Text) bool {
		if text.Kind < Definition {
			return true
		}
		if all == nil {
			all = make([]hash, 0, 64)
			for _, e := range names {
				if isHashed(e.Word) {
					all = append(all, hashOf(e.Word))
				}
			}
		}
		all = appendHashes(all, text.Value)
		return len(all) < hashesOfText
	})
	slices.SortFunc(all, func(a, b hash) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	b := make([]byte, 0, 2*len(all))
	for _, h := range all[:min(len(all), hashesOfText)] {
		b = append(b, h[:]...)
	}
	return string(b)
}

// appendHashes appends the hashes of the words of a text, as [cut] returns them.
func appendHashes(all []hash, text string) []hash {
	if !isASCII(text) || len(text) > longestText {
		for _, w := range cut(text) {
			if isHashed(w.text) {
				all = append(all, hashOf(w.text))
			}
		}
		return all
	}
	for i, n := 0, 0; i < len(text) && n < wordsOfText; i++ {
		h, start := uint32(2166136261), i
		for ; i < len(text); i++ {
			c := text[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if !isPlainLetter(c) {
				break
			}
			if i-start < begins {
				h = (h ^ uint32(c)) * 16777619
			}
		}
		if i > start {
			n++
		}
		if i-start >= shortest {
			all = append(all, hashFrom(h))
		}
	}
	return all
}

// haveAll reports whether all of some hashes are among those of a word with its rank.
func haveAll(word []byte, wanted []hash) bool {
next:
	for _, h := range wanted {
		for i := 1; i+1 < len(word) && word[i] <= h[0]; i += 2 {
			if word[i] == h[0] && word[i+1] == h[1] {
				continue next
			}
		}
		return false
	}
	return true
}

// mostEntries is the number of entries of definitions and notes that one request reads.
const mostEntries = 200_000

// findTexts finds topics that have the words in definitions and notes, with or without names, not in names alone.
func (l *looking) findTexts(q Query, at position, limit int) (*Found, error) {
	var wanted []hash
	for _, w := range q.Words {
		if isHashed(w) {
			wanted = append(wanted, hashOf(w))
		}
	}
	if len(wanted) == 0 {
		return &Found{}, nil
	}
	passed := 0
	fits := func(word []byte) bool {
		if passed++; passed >= mostEntries || passed%1000 == 0 && l.late() {
			l.looked = l.most
		}
		return l.looked >= l.most || haveAll(word, wanted)
	}
	return l.findAmong(q, entriesThat(l.Tx(), l.ID(), []byte{byte(ofTexts)}, at.after, fits), at, limit,
		func(t *fragment.Topic, _ string) (Match, bool, error) {
			m, ok := q.Match(t)
			if !ok || m.tier < ofText {
				return m, false, nil
			}
			labelled, err := l.betterLabel(q, t.TopicSI(), "", m)
			return m, !labelled, err
		})
}

// look reads the record of a topic; nil: it is not there.
func (l *looking) look(ref fragment.Ref) (*fragment.Topic, error) {
	l.looked++
	return l.Topic(ref)
}
