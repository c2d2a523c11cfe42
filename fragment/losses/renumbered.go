package losses

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/tmshare/tmshare/fragment"
)

// renumbering detects versions with renumbered topics. A topic without subject identifiers and locators has only its id
// in the document, from which its TopicSI is made. Programs that number all topics in each export give topics the ids
// of others, and one inserted topic changes all that follow.
//
// A renumbering differs from an edit of any size: values of an id are now under another id. So it compares the values
// of names and occurrences, but no references to topics, because these change with the ids. It ignores values that
// several topics share.
type renumbering struct {
	prefix string // begins the TopicSIs that are made of ids
	seed   maphash.Seed
	values map[uint64]moves // by the hash of a topic's values
}

// moves counts how often values have left an id, and come to another one, up to 2.
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

// hash returns a hash of the values of a topic; 0 if it has none or does not exist.
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

// fewMoved is the number of topics that may have another id without a warning.
const fewMoved = 3

// moved returns the number of topics with other ids than before. It returns 0 if the version does not seem renumbered:
// most values that left an id, or most that came to one, are not of moved topics.
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

// RenumberedWarning returns the warning that so many topics have other ids than before.
func RenumberedWarning(topics int) string {
	return fmt.Sprintf(
		"%d topics have other ids in the document than before. Topics without subject identifiers are known by their ids "+
			"alone, so each of these is published as another topic. "+
			"Keep the ids from version to version, or give the topics subject identifiers", topics)
}
