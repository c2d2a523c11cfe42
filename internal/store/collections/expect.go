package collections

import (
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// expectedAtOnce is of how many entries is asked at once what they supersede, where each question to the engine takes
// its time.
const expectedAtOnce = 500

// expect asks ahead for the last entries of the keys of some entries that are to be appended.
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
		case last <= a.C.Horizon: // else it is known what that says
			log = append(log, a.C.Log().Numbered(keys.TableFirst, blockStart(last)))
		}
	}
	return a.T.Expect(log, nil)
}
