package client

import (
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/follow"
)

// settling determines which entries are settled, so that their fragments no longer change.
//
// Servers other than TMShare in Go have times in whole seconds, and some list each topic once, under an id made of the
// topic and the time. If such a topic changes twice in one second, the feed is the same before and after the second
// change. So later rounds fetch the fragment of an entry again, until the feed is from a later second.
type settling struct {
	asOf    time.Time         // the feed has all changes up to this time, by the server's clock
	mark    follow.Mark       // of the earlier rounds
	digests map[string]string // by key: of applied changes that are not settled
	differs bool              // a fragment was another one than in earlier rounds
}

// grace is the time for which further changes with an entry's time may appear, because that is the time of a change's
// begin, but the entry appears with its commit.
const grace = 2 * time.Second

func newSettling(asOf time.Time, mark follow.Mark) settling {
	s := settling{asOf: asOf, mark: mark, digests: map[string]string{}}
	maps.Copy(s.digests, mark.Unsettled)
	return s
}

// settled reports whether no change has the time any more.
func (s *settling) settled(at time.Time) bool {
	return at.Nanosecond() != 0 || !s.asOf.Before(at.Add(grace)) || at.After(s.asOf.Add(follow.Grace))
}

// applied returns the digest of the fragment that earlier rounds applied for a change that was not settled.
func (s *settling) applied(r *follow.Record) (string, bool) {
	digest, ok := s.mark.Unsettled[follow.Key(r.ID, r.Updated)]
	return digest, ok
}

// digest returns the digest for the bytes of a change's fragment, nil if none is needed.
func (s *settling) digest(r *follow.Record) *digest {
	if _, again := s.applied(r); r.Change.State != "" || s.settled(r.Updated) && !again {
		return nil
	}
	return &digest{}
}

// compare notes whether a fragment is the one that was applied already. Once one has differed,
// all that follow are applied, in their order: they may be of the same topic.
func (s *settling) compare(o *follow.Result[received]) {
	before, again := s.applied(o.Record)
	if !again || o.Err != nil {
		return
	}
	if s.differs = s.differs || o.Content.digest != before; !s.differs {
		o.Content.fragment, o.Content.unchanged = nil, true
	}
}

// note stores the digest of an applied change.
func (s *settling) note(o *follow.Result[received]) {
	key := follow.Key(o.ID, o.Updated)
	if delete(s.digests, key); o.Err == nil && o.Content.digest != "" && !s.settled(o.Updated) {
		s.digests[key] = o.Content.digest
	}
}

// unsettled returns the changes to read again in the next round, nil for none. Those in quarantine are retried in any
// case.
func (s *settling) unsettled() map[string]string {
	if len(s.digests) == 0 {
		return nil
	}
	return maps.Clone(s.digests)
}

// end drops settled changes, after the round has read all again.
func (s *settling) end() {
	maps.DeleteFunc(s.digests, func(key, _ string) bool {
		_, text, _ := strings.Cut(key, "\x00")
		at, err := feeds.ParseTime(text)
		return err != nil || s.settled(at)
	})
}

// digest is the digest of the bytes read through it. A nil one does nothing.
type digest struct{ hash hash.Hash }

// reader starts again, because it may be another try.
func (d *digest) reader(r io.Reader) io.Reader {
	if d == nil {
		return r
	}
	d.hash = sha256.New()
	return io.TeeReader(r, d.hash)
}

func (d *digest) sum() string {
	if d == nil {
		return ""
	}
	return base64.RawStdEncoding.EncodeToString(d.hash.Sum(nil)[:12])
}
