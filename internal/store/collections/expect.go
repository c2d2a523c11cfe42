package collections

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// expectedAtOnce is the number of entries whose superseded ones are prefetched at a time, if each read is a network
// round trip.
const expectedAtOnce = 500

// expect prefetches the last entries of the keys of entries to append.
func (a *Appender) expect(some []fragment.Entry) error {
	if a.T == nil || !a.T.Distant() {
		return nil
	}
	var lasts, log [][]byte
	for i := range some {
		lasts = append(lasts, TopicKey(a.C, some[i].TopicSI))
	}
	if err := a.T.Expect(lasts, nil); err != nil {
		return err
	}
	for _, key := range lasts {
		last, err := lastIn(a.T, key)
		if err != nil {
			return err
		}
		switch {
		case last == 0:
		case !a.C.isFirst(last):
			log = append(log, a.C.Log().Numbered(keys.TableLog, last))
		case last <= a.C.Horizon: // otherwise its data is known
			log = append(log, a.C.Log().Numbered(keys.TableFirst, blockStart(last)))
		}
	}
	return a.T.Expect(log, nil)
}
