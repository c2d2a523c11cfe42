package records

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// Title returns the title of the topic with a TopicSI for a reader of some languages, "" if there is none.
func (s State) Title(topicSI fragment.Ref, languages ...string) (string, error) {
	t := s.Titles(languages...)
	return t.alone(topicSI)
}

// Titles finds the titles of topics. For ascending TopicSIs, one pass over the rows suffices.
type Titles struct {
	state State
	names fragment.Names

	next   func() (row, error, bool)
	stop   func()
	at     row
	more   bool // at is a row
	missed int
}

// The limits of walking.
const (
	mostPassed = 8  // rows between two requested topics
	mostMissed = 16 // topics that were not found by that
)

// Titles returns a reader of the titles of topics. The caller must close it.
func (s State) Titles(languages ...string) *Titles {
	return &Titles{state: s, names: fragment.Names{In: s, Languages: languages}}
}

// Close ends the walk. t may be nil.
func (t *Titles) Close() {
	if t != nil && t.stop != nil {
		t.stop()
	}
}

// Of is [State.Title].
func (t *Titles) Of(topicSI fragment.Ref) (string, error) {
	if t.missed == mostMissed {
		return t.alone(topicSI)
	}
	key := t.state.id.LocatorKey(keys.TableTopic, topicSI)
	if t.next == nil {
		t.next, t.stop = iter.Pull2(t.state.tx.ScanInPlace(t.state.id.Key(keys.TableTopic), key))
		if err := t.step(); err != nil {
			return "", err
		}
	}
	for range mostPassed {
		if !t.more || bytes.Compare(t.at.Key, key) >= 0 {
			break
		}
		if err := t.step(); err != nil {
			return "", err
		}
	}
	if t.more && bytes.Equal(t.at.Key, key) {
		return t.in(t.at.Value, topicSI)
	}
	t.missed++
	return t.alone(topicSI)
}

// alone is Of without the walk.
func (t *Titles) alone(topicSI fragment.Ref) (string, error) {
	b, err := t.state.tx.Get(t.state.id.LocatorKey(keys.TableTopic, topicSI))
	if b == nil || err != nil {
		return "", err
	}
	return t.in(b, topicSI)
}

func (t *Titles) in(record []byte, topicSI fragment.Ref) (string, error) {
	title, err := t.names.Stored(record)
	if err != nil {
		err = fmt.Errorf("topic %s: %w", topicSI, err)
	}
	return title, err
}

func (t *Titles) step() (err error) {
	t.at, err, t.more = t.next()
	return err
}
