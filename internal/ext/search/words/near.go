package words

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// The bounds of a search for words that are like others.
const (
	mostJumps  = 500 // to other places of the index, for each rank
	mostPassed = 200 // entries that are passed one by one before a jump
	mostNear   = 5   // words that are like one
	mostTried  = 6   // texts that are looked for
)

// Near returns suggestions for a query, most at most: texts with names that have a similar word in place of one that no
// topic has, or else of any one. They are written as in the topics.
func Near(s records.State, q Query, most int) (all []string, err error) {
	if q.Locators != nil || len(q.Words) == 0 || current(s.Tx()) != nil {
		return nil, nil
	}
	l := &looking{State: s}
	missing := slices.DeleteFunc(slices.Clone(q.Words), func(w string) bool {
		for _, failed := range l.entries(w, position{}) {
			err = cmp.Or(err, failed)
			return true
		}
		return false
	})
	if len(missing) == 0 {
		missing = q.Words
	}
	var texts []string
	for _, w := range missing {
		near, failed := nearTo(s.Tx(), s.ID(), w)
		if err = cmp.Or(err, failed); err != nil {
			return nil, err
		}
		if len(missing) < len(q.Words) && len(near) == 0 { // no other word would help
			return nil, nil
		}
		for _, other := range near {
			words := slices.Clone(q.Words)
			words[slices.Index(words, w)] = other
			texts = append(texts, strings.Join(words, " "))
		}
	}
	for _, text := range texts[:min(len(texts), mostTried)] {
		next := Parse(text)
		next.Type, next.Language = q.Type, q.Language
		l := &looking{State: s, most: mostLooked, begun: time.Now(), within: Within, seen: map[fragment.Ref]fragment.Ref{}}
		found, err := l.findByWords(next, position{kind: byWord}, 1)
		if err != nil {
			return nil, err
		}
		if len(found.Hits) == 0 || len(all) == most || found.Hits[0].Match.Text.Label() == Hidden { // it is no word to write
			continue
		}
		all = append(all, next.written(&found.Hits[0]))
	}
	return all, nil
}

// written returns the words of a query as a topic has them that it finds.
func (q Query) written(h *Hit) string {
	words := slices.Clone(q.Words)
	for _, p := range q.Marks(h.Match.Text.Value) {
		for i, w := range q.Words {
			if p.Marked && Fold(p.Text) == w {
				words[i] = p.Text
			}
		}
	}
	return strings.Join(words, " ")
}

// nearTo returns the words of names in the index that are like one, the most alike first. Words of three to six letters
// differ by one of them: it is another one, too many, missing, or has changed its place with the next one. Longer words
// differ by two at most, and begin with the same letter if they do by two.
func nearTo(t *txn.Tx, id keys.Source, word string) (all []string, err error) {
	runes := []rune(word)
	if len(runes) < 3 || partsNoWords(runes[0]) {
		return nil, nil
	}
	distances := map[string]int{}
	most := 1
	for _, rank := range []Rank{Whole, WholeOther, Begins, Has} {
		if err := eachNear(t, id, rank, runes, most, distances); err != nil {
			return nil, err
		}
	}
	if len(distances) == 0 && len(runes) > 6 {
		for _, rank := range []Rank{Whole, WholeOther, Begins, Has} {
			if err := eachNear(t, id, rank, runes, 2, distances); err != nil {
				return nil, err
			}
		}
	}
	delete(distances, word)
	for other := range distances {
		all = append(all, other)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), strings.Compare(a, b))
	})
	return all[:min(len(all), mostNear)], nil
}

// eachNear finds the words of a rank that are similar to one. It skips ranges of the sorted words whose prefix excludes
// similar words.
func eachNear(t *txn.Tx, id keys.Source, rank Rank, word []rune, most int, found map[string]int) error {
	prefix := []byte{byte(rank)}
	if most > 1 {
		prefix = utf8.AppendRune(prefix, word[0])
	}
	at := string(prefix[1:])
	for jumps := 0; jumps < mostJumps; jumps++ {
		passed, ended := 0, true
		for entry, err := range entriesWith(t, id, prefix, append([]byte{byte(rank)}, at...)) {
			if err != nil {
				return err
			}
			w, _, _ := split(entry)
			if string(w[1:]) < at {
				if passed++; passed > mostPassed {
					ended = false
					break
				}
				continue
			}
			passed = 0
			d, next := compareWords([]rune(string(w[1:])), word, most)
			if d <= most {
				found[string(w[1:])] = d
			}
			if at = next; at == "" {
				return nil
			}
		}
		if ended {
			return nil
		}
	}
	return nil
}

// compareWords returns the distance of two words, or more than most, and the least prefix after the first word that may
// begin a word within the distance; "": none. The distance is that of Damerau and Levenshtein in which no part is
// changed twice (optimal string alignment).
func compareWords(word, wanted []rune, most int) (distance int, next string) {
	rows := make([][]int, 1, len(word)+1)
	for j := range len(wanted) + 1 {
		rows[0] = append(rows[0], j)
	}
	for i := range word {
		row := nextRow(rows, word[:i+1], wanted)
		if slices.Min(row) > most {
			return most + 1, after(rows, word[:i+1], wanted, most)
		}
		rows = append(rows, row)
	}
	return rows[len(word)][len(wanted)], string(word) + "\x01"
}

// nextRow returns the distances of a word from the prefixes of another one. rows has those of the word's own prefixes.
func nextRow(rows [][]int, word, wanted []rune) []int {
	i := len(word)
	row := make([]int, len(wanted)+1)
	row[0] = i
	for j := 1; j <= len(wanted); j++ {
		cost := 1
		if word[i-1] == wanted[j-1] {
			cost = 0
		}
		row[j] = min(rows[i-1][j]+1, row[j-1]+1, rows[i-1][j-1]+cost)
		if i > 1 && j > 1 && word[i-1] == wanted[j-2] && word[i-2] == wanted[j-1] {
			row[j] = min(row[j], rows[i-2][j-2]+1)
		}
	}
	return row
}

// after returns the least word prefix, after one that is too different from the wanted word, that is not.
func after(rows [][]int, word, wanted []rune, most int) string {
	for i := len(word) - 1; i >= 0; i-- {
		least := rune(-1)
		for _, r := range wanted {
			other := append(slices.Clone(word[:i]), r)
			if r > word[i] && (least < 0 || r < least) && slices.Min(nextRow(rows[:i+1], other, wanted)) <= most {
				least = r
			}
		}
		if slices.Min(rows[i]) < most { // any letter may follow
			least = word[i] + 1
		}
		if least >= 0 {
			return string(word[:i]) + string(least)
		}
	}
	return ""
}
