package records

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/search"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/words"
)

// The bounds of what one request looks at: its cost does not grow with the source.
const (
	mostLooked  = 1000 // records that are compared with the query
	mostCounted = 2000 // entries that are counted, to find out which word is rare
)

// ErrNoIndex says that a folder has no indexes of words.
var ErrNoIndex = errors.New("the data folder was written by an earlier version and has no index of names: any command that writes to it makes one, such as \"tmshare-client sync\"")

// ErrPosition says that a position is none at which a search can go on.
var ErrPosition = errors.New("there is no such page of results: search again, and follow the links")

// Hit is a topic that was found.
type Hit struct {
	Topic *fragment.Topic
	Match search.Match
}

// Found are some of the topics that were found, the best first.
type Found struct {
	Hits []Hit
	Next string // the position at which the next ones are found; "": there are no more
}

// Find returns some topics that a query finds, limit at most, from a position on; "" is that of the first ones. It may return fewer while there are more.
func (s State) Find(q search.Query, position string, limit int) (*Found, error) {
	if there, _, err := HasRules(s.tx); err != nil || !there {
		return nil, errors.Join(err, ErrNoIndex)
	}
	at, err := parsePosition(position)
	if err != nil {
		return nil, err
	}
	if q.Locator != "" && (position == "" || at.kind == byIdentifier) {
		found, err := s.findIdentifiers(q, at, limit)
		if err != nil || len(found.Hits) > 0 || position != "" {
			return found, err
		}
	}
	switch len(q.Words) {
	case 0:
		return &Found{}, nil
	case 1:
		return s.findWord(q, at, limit)
	}
	return s.findWords(q, at, limit)
}

// position is where a search goes on.
type position struct {
	kind  byte
	skip  int    // of what is found from there on, so many were returned already
	part  int    // of the index, see segments
	after []byte // an entry, or an identifier
}

// The kinds of positions.
const (
	byIdentifier = 'i'
	byWord       = 'w'
)

func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{p.kind, byte(p.skip >> 8), byte(p.skip), byte(p.part)}, p.after...))
}

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return position{kind: byWord}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 4 || b[0] != byIdentifier && b[0] != byWord || int(b[3]) >= len(segments) {
		return position{}, fmt.Errorf("%w (%.50q)", ErrPosition, text)
	}
	return position{b[0], int(b[1])<<8 | int(b[2]), int(b[3]), b[4:]}, nil
}

// segment is a part of the index: the entries of a rank with a word, or with longer words that begin with it.
type segment struct {
	rank   search.Rank
	longer bool
}

// segments are the parts of the index in the order of what they find.
var segments = func() (all []segment) {
	for _, ranks := range [][]search.Rank{{search.Whole, search.Begins, search.Has}, {search.OfVariant}, {search.OfIdentifier}} {
		for _, longer := range []bool{false, true} {
			for _, rank := range ranks {
				all = append(all, segment{rank, longer})
			}
		}
	}
	return all
}()

// prefix returns what the entries of a segment for a word begin with. Those of longer words are among these.
func (g segment) prefix(word string) []byte {
	p := append([]byte{byte(g.rank)}, word...)
	if !g.longer {
		p = append(p, 0)
	}
	return p
}

// has reports whether an entry that begins as those of the segment do is one of them.
func (g segment) has(entry []byte, word string) bool {
	return !g.longer || len(entry) > len(word)+1 && entry[len(word)+1] != 0
}

// entries iterates over the entries of all segments for a word, from a position on.
func (s State) entries(word string, from position) iter.Seq2[position, error] {
	return func(yield func(position, error) bool) {
		after := from.after
		for part := from.part; part < len(segments); part++ {
			g := segments[part]
			prefix := g.prefix(word)
			if g.longer && len(after) == 0 { // what has the word itself was in another segment
				after = append([]byte{byte(g.rank)}, word...)
				after = append(after, 0, 0xFF)
			}
			for entry, err := range words.Entries(s.tx, s.id, prefix, after) {
				if err == nil && !g.has(entry, word) {
					continue
				}
				if !yield(position{kind: byWord, part: part, after: bytes.Clone(entry)}, err) || err != nil {
					return
				}
			}
			after = nil
		}
	}
}

// best returns by which entry a topic is found for a word: the first of its entries in the order of segments. ok is false where it is not.
func best(t *fragment.Topic, word string) (found position, ok bool) {
	for _, e := range search.Entries(t) {
		if !strings.HasPrefix(e.Word, word) {
			continue
		}
		part := slices.Index(segments, segment{e.Rank, e.Word != word})
		entry := words.Entry(e, t.TopicSI())
		if !ok || part < found.part || part == found.part && bytes.Compare(entry, found.after) < 0 {
			found, ok = position{kind: byWord, part: part, after: entry}, true
		}
	}
	return found, ok
}

// expectedEntries is entries, whose topics are going to be read.
func (s State) expectedEntries(word string, from position) iter.Seq2[position, error] {
	if !s.tx.Distant() {
		return s.entries(word, from)
	}
	enough := func(some []position) bool { return len(some) == readAtOnce }
	return InParts(s.entries(word, from), enough, func(some []position) error {
		refs := make([]fragment.Ref, len(some))
		for i, at := range some {
			refs[i] = words.Topic(at.after)
		}
		return s.ExpectNames(refs)
	})
}

// readAtOnce is how many topics are asked for at once, where each question to the engine takes its time.
const readAtOnce = 50

// candidate returns the topic of an entry, nil if the topic is found by a better one, or has the entry no more.
func (s State) candidate(at position, word string) (*fragment.Topic, error) {
	t, err := s.topicAt(words.Topic(at.after))
	if t == nil || err != nil {
		return nil, err
	}
	if first, ok := best(t, word); !ok || first.part != at.part || !bytes.Equal(first.after, at.after) {
		return nil, nil
	}
	return t, nil
}

// findWord finds what has one word: the index has it in the order in which it is found.
func (s State) findWord(q search.Query, at position, limit int) (*Found, error) {
	found, looked := &Found{}, 0
	var last position
	for now, err := range s.expectedEntries(q.Words[0], at) {
		if err != nil {
			return nil, err
		}
		if len(found.Hits) == limit || looked == mostLooked {
			found.Next = last.String()
			break
		}
		last = now
		t, err := s.candidate(now, q.Words[0])
		if err != nil {
			return nil, err
		}
		if m, ok := match(q, t); ok {
			found.Hits = append(found.Hits, Hit{t, m})
		}
		looked++
	}
	return found, nil
}

func match(q search.Query, t *fragment.Topic) (search.Match, bool) {
	if t == nil {
		return search.Match{}, false
	}
	return q.Match(t)
}

// findWords finds what has several words. It looks at topics that have the rarest of them, [mostLooked] at a time, and sorts those that have the
// others too.
func (s State) findWords(q search.Query, at position, limit int) (*Found, error) {
	word, err := s.rarest(q.Words)
	if err != nil {
		return nil, err
	}
	var all []Hit
	looked, next := 0, position{}
	last := at
	for now, err := range s.expectedEntries(word, at) {
		if err != nil {
			return nil, err
		}
		if looked == mostLooked {
			next = last
			break
		}
		last = now
		t, err := s.candidate(now, word)
		if err != nil {
			return nil, err
		}
		looked++
		if m, ok := match(q, t); ok {
			all = append(all, Hit{t, m})
		}
	}
	slices.SortStableFunc(all, func(a, b Hit) int { return a.Match.Compare(b.Match) })
	found := &Found{}
	all = all[min(at.skip, len(all)):]
	if len(all) > limit {
		at.skip += limit
		found.Hits, found.Next = all[:limit], at.String()
		return found, nil
	}
	found.Hits = all
	if next.kind != 0 {
		found.Next = next.String()
	}
	return found, nil
}

// rarest returns that of several words which the fewest entries have, as far as they are counted.
func (s State) rarest(all []string) (word string, err error) {
	fewest := mostCounted
	word = all[0]
	for _, w := range all {
		n := 0
		for _, err := range s.entries(w, position{}) {
			if err != nil {
				return "", err
			}
			if n++; n >= fewest {
				break
			}
		}
		if n < fewest {
			fewest, word = n, w
		}
	}
	return word, nil
}

// identifierTables are the tables of the identifiers of topics.
var identifierTables = []byte{keys.TableTopic, keys.TableIdentifier, keys.TableLocator}

// findIdentifiers finds the topic that has an identifier, then those of which one begins with it.
func (s State) findIdentifiers(q search.Query, at position, limit int) (*Found, error) {
	found, looked := &Found{}, 0
	last := at
	if at.kind != byIdentifier {
		last = position{kind: byIdentifier}
		for _, find := range []func() (*fragment.Topic, error){
			func() (*fragment.Topic, error) { return s.Topic(q.Locator) },
			func() (*fragment.Topic, error) { return s.TopicBySubjectLocator(q.Locator) },
		} {
			t, err := find()
			if err != nil {
				return nil, err
			}
			if t != nil && !slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.Topic.TopicSI() == t.TopicSI() }) {
				found.Hits = append(found.Hits, Hit{t, search.ByIdentifier(q.Locator)})
			}
		}
	}
	for part := last.part; part < len(identifierTables); part++ {
		table := identifierTables[part]
		prefix := s.id.LocatorKey(table, q.Locator)
		from := prefix
		if len(last.after) > 0 {
			from = append(append(s.id.Key(table), last.after...), 0)
		}
		last = position{byIdentifier, 0, part, nil}
		for r, err := range s.tx.ScanInPlace(prefix, from) {
			if err != nil {
				return nil, err
			}
			if len(found.Hits) >= limit || looked == mostLooked {
				found.Next = last.String()
				return found, nil
			}
			looked++
			locator := fragment.Ref(r.Key[keys.SourceSize:])
			ref := locator
			if table != keys.TableTopic {
				ref = fragment.Ref(r.Value)
			}
			last.after = []byte(locator)
			t, err := s.topicAt(ref)
			if err != nil {
				return nil, err
			}
			if t != nil && locator == firstWith(t, q.Locator) {
				found.Hits = append(found.Hits, Hit{t, search.ByIdentifier(locator)})
			}
		}
		last.after = nil
	}
	return found, nil
}

// firstWith returns the first identifier of a topic that begins with a text, "" if one is that text: that one was found before.
func firstWith(t *fragment.Topic, prefix fragment.Ref) (first fragment.Ref) {
	for _, l := range slices.Concat(t.SubjectIdentifiers, t.SubjectLocators) {
		switch {
		case l == prefix:
			return ""
		case first == "" && strings.HasPrefix(string(l), string(prefix)):
			first = l
		}
	}
	return first
}
