package losses

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/tmshare/tmshare/fragment"
)

// renumbering finds out whether a version has numbered its topics anew. A topic without subject identifiers and
// locators is known by its id in the document alone, and gets its TopicSI of it. Programs that number all topics with
// each export give topics the ids of others; then one more topic changes all that come after it.
//
// What tells a renumbering from an edit, however large: what an id stands for has left it and stands under another id
// now. So the values of names and occurrences are compared, and nothing that refers to topics, since references change
// with the ids. Values that several topics share say nothing.
type renumbering struct {
	prefix string // begins the TopicSIs that are made of ids
	seed   maphash.Seed
	values map[uint64]moves // by the hash of a topic's values
}

// moves is how often values have left an id, and come to another one, counted up to 2.
type moves struct{ left, came uint8 }

func newRenumbering(prefix string) *renumbering {
	return &renumbering{prefix: prefix, seed: maphash.MakeSeed(), values: map[uint64]moves{}}
}

// see notes the values of one topic, where they are others than before.
func (r *renumbering) see(c *fragment.Compared) {
	if c.Old == nil && c.New == nil || !strings.HasPrefix(string(c.TopicSI), r.prefix) {
		return
	}
	was, is := r.hash(c.Old), r.hash(c.New)
	if was == is {
		return
	}
	if was != 0 {
		m := r.values[was]
		m.left = min(m.left+1, 2)
		r.values[was] = m
	}
	if is != 0 {
		m := r.values[is]
		m.came = min(m.came+1, 2)
		r.values[is] = m
	}
}

// hash returns a hash of the values of a topic, 0 where it has none or is not there.
func (r *renumbering) hash(t *fragment.Topic) uint64 {
	if t == nil || len(t.Names)+len(t.Occurrences) == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	add := func(kind byte, value string) {
		_ = h.WriteByte(kind)
		_, _ = h.WriteString(value)
		_ = h.WriteByte(0)
	}
	for i := range t.Names { // in the order of their values
		add('n', t.Names[i].Value)
	}
	for i := range t.Occurrences {
		add('o', t.Occurrences[i].Value)
	}
	return h.Sum64()
}

// fewMoved is how many topics may have another id without a word.
const fewMoved = 3

// moved returns how many topics have another id than before, or 0 where the version does not look as if it had been
// numbered anew: where most values that left an id, or most that came to one, are not those of a topic that has moved.
func (r *renumbering) moved() int {
	var moved, left, came int
	for _, m := range r.values {
		if m.left == 1 {
			left++
		}
		if m.came == 1 {
			came++
		}
		if m.left == 1 && m.came == 1 {
			moved++
		}
	}
	if moved < fewMoved || moved*2 < min(left, came) {
		return 0
	}
	return moved
}

// RenumberedRule names the rule that topics keep their ids from version to version.
const RenumberedRule = "renumbered-ids"

// RenumberedWarning says what it means that so many topics have other ids than before.
func RenumberedWarning(topics int) string {
	return fmt.Sprintf(
		"%d topics have other ids in the document than before. Topics without subject identifiers are known by their ids "+
			"alone, so each of these is published as another topic. "+
			"Keep the ids from version to version, or give the topics subject identifiers", topics)
}
