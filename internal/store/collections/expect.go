package collections

import (
	"iter"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/rendered"
	"github.com/tmshare/tmshare/internal/store/txn"
)

// expectedAtOnce is of how many entries is asked at once what they need.
const expectedAtOnce = 5 * rendered.AtOnce

// InParts iterates over entries that are to be published, rendered.AtOnce of them at a time. Where each question to the engine takes its time, it asks
// ahead for what they need: the entries before, the topics, and what these play in.
func InParts(t *txn.Tx, c *Collection, state *records.Cached, entries []fragment.Entry) iter.Seq2[[]fragment.Entry, error] {
	return func(yield func([]fragment.Entry, error) bool) {
		for many := range slices.Chunk(entries, expectedAtOnce) {
			if t.Distant() {
				if err := expectEntries(t, c, state, many); err != nil {
					yield(nil, err)
					return
				}
			}
			for some := range slices.Chunk(many, rendered.AtOnce) {
				if !yield(some, nil) {
					return
				}
			}
		}
	}
}

func expectEntries(t *txn.Tx, c *Collection, state *records.Cached, entries []fragment.Entry) error {
	var topics []fragment.Ref
	var lasts, log [][]byte
	for i := range entries {
		topics = append(topics, entries[i].TopicSI)
		if described := entries[i].Topic; described != "" && described != entries[i].TopicSI {
			topics = append(topics, described)
		}
		lasts = append(lasts, TopicKey(c, fragment.Key(entries[i].TopicSI)))
	}
	if err := state.ExpectTopics(topics, nil, lasts...); err != nil {
		return err
	}
	for _, key := range lasts {
		var last KeyRow
		ok, err := t.GetJSON(key, &last)
		if err != nil {
			return err
		}
		if ok {
			log = append(log, c.Log().Numbered(keys.TableLog, last.Seq))
		}
	}
	return t.Expect(log, nil)
}
