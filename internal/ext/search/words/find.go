package words

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/records"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/tmdm"
)

// The limits of the work for one request, so that its cost does not grow with the source.
const (
	mostLooked  = 1000 // records that are compared with the query, each once
	mostCounted = 2000 // entries that are counted, to find out which word is rare
)

// ErrPosition is the error for an invalid position to continue a search.
var ErrPosition = errors.New("there is no such page of results: search again, and follow the links")

// ErrSlow is the error for a page of results that cannot be sorted within the time of a search.
var ErrSlow = errors.New("the search takes too long at the moment: try again, or search for more words of the name")

// ErrLeftBehind is the error for an index that does not match the topics.
var ErrLeftBehind = errors.New(
	"topics cannot be found by name, as a program without the index of words has changed the data. " +
		"A program with it makes the index again when it opens the store for writing")

// Within is the time limit of a search. It is checked between records.
const Within = 2 * time.Second

// Hit is a topic that was found.
type Hit struct {
	Topic *fragment.Topic
	Match Match
	Label fragment.Ref // the matching label if it is a resource; "": the topic itself matches

	at position // after it
}

// Found are some of the topics that were found, the best first.
type Found struct {
	Hits []Hit
	Next string // the position of the next page; "": no more

	Ended bool // the time ran out: these are the results so far
}

// First returns the first of them, and where the next one is found. They are more where one label finds several topics.
func (f *Found) First(n int) *Found {
	for n > 0 && n < len(f.Hits) && f.Hits[n].at.String() == f.Hits[n-1].at.String() {
		n++
	}
	if len(f.Hits) <= n {
		return f
	}
	return &Found{Hits: f.Hits[:n], Next: f.Hits[n-1].at.String()}
}

// Find returns results of a query in a source, limit at most, from a position on; "" is the first one. It may return
// fewer while there are more: after the time is over, it reads no more records, but always reads one.
func Find(s records.State, q Query, position string, limit int, within time.Duration) (*Found, error) {
	at, err := parsePosition(position)
	if err != nil {
		return nil, err
	}
	l := &looking{State: s, most: mostLooked, begun: time.Now(), within: within, seen: map[fragment.Ref]fragment.Ref{},
		names: fragment.Names{In: s}}
	if q.Locators != nil && (position == "" || at.kind == byIdentifier) && (q.Language == nil || *q.Language == "") {
		found, err := l.findIdentifiers(q, at, limit)
		if err != nil || len(found.Hits) > 0 || found.Next != "" || position != "" {
			return found, err
		}
	}
	clear(l.seen)
	if err := current(l.Tx()); err != nil {
		return nil, err
	}
	if err := l.expectSingles(q); err != nil {
		return nil, err
	}
	found := &Found{}
	for i, stage := range stages {
		if position != "" && at.kind != stage.kind {
			continue
		}
		left := limit - len(found.Hits)
		some, err := stage.find(l, q, at, max(left, 1))
		switch {
		case err != nil:
			return nil, err
		case left > 0:
			found.Hits, found.Next, found.Ended = append(found.Hits, some.Hits...), some.Next, some.Ended
		case len(some.Hits) > 0 || some.Next != "":
			found.Next = stage.begin().String()
		}
		if found.Next != "" || i+1 == len(stages) {
			break
		}
		position, at = "", stages[i+1].begin()
		clear(l.seen)
	}
	return found, nil
}

// expectSingles prefetches the single rows to read, if each read is a network round trip.
func (l *looking) expectSingles(q Query) error {
	if !l.Tx().Distant() {
		return nil
	}
	prefixes := [][]byte{kindKey(l.ID(), kindSingle, []byte{byte(ofTexts)}),
		kindKey(l.ID(), kindSingle, segment{ofCode, q.longer()}.prefix(q.code))}
	for _, w := range q.Words {
		for _, g := range segments {
			prefixes = append(prefixes, kindKey(l.ID(), kindSingle, g.prefix(w)))
		}
	}
	return l.Tx().Expect(nil, prefixes)
}

// stage is a part of a search. It finds the topics that earlier stages did not find.
type stage struct {
	kind byte
	find func(l *looking, q Query, at position, limit int) (*Found, error)
}

func (s stage) begin() position { return position{kind: s.kind} }

var stages = [...]stage{{byNotation, (*looking).findNotations}, {byWord, (*looking).findByWords},
	{byText, (*looking).findTexts}}

func (l *looking) findByWords(q Query, at position, limit int) (*Found, error) {
	switch {
	case len(q.Words) == 0:
		return &Found{}, nil
	case len(q.Words) == 1 && q.Language == nil: // the index has no languages
		return l.findWord(q, at, limit)
	}
	return l.findWords(q, at, limit)
}

// current returns an error where the index does not agree with the topics.
func current(t *txn.Tx) error {
	kept, err := records.Kept(t)
	if _, ok := kept[name]; err == nil && !ok {
		err = ErrLeftBehind
	}
	return err
}

// looking is the work of one request. It looks at the record of a topic once, however many entries the topic has.
type looking struct {
	records.State
	names        fragment.Names
	most, looked int // records
	begun        time.Time
	within       time.Duration
	ended        bool                          // the time was over
	seen         map[fragment.Ref]fragment.Ref // topics → the first of their identifiers or notations that fits
}

// over reports whether no more records may be looked at.
func (l *looking) over() bool {
	if l.looked >= l.most {
		return true
	}
	return l.late()
}

// late reports whether the time is over.
func (l *looking) late() bool {
	l.ended = l.looked > 0 && time.Since(l.begun) >= l.within
	return l.ended
}

// position is the place to continue a search.
type position struct {
	kind  byte
	skip  int    // number of results after that place which were returned already
	among int    // records that are looked at from there on; 0: as many as may be
	part  int    // of the index, see segments
	after []byte // an entry, or an identifier
}

// The kinds of positions.
const (
	byIdentifier = 'i'
	byNotation   = 'n'
	byWord       = 'w'
	byText       = 't'
)

func (p position) String() string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{p.kind, byte(p.skip >> 8), byte(p.skip), byte(p.among >> 8),
		byte(p.among), byte(p.part)}, p.after...))
}

func parsePosition(text string) (p position, err error) {
	if text == "" {
		return stages[0].begin(), nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 6 || !strings.Contains("inwt", string(b[:1])) || int(b[5]) >= len(segments) {
		return position{}, fmt.Errorf("%w (%.50q)", ErrPosition, text)
	}
	return position{b[0], int(b[1])<<8 | int(b[2]), min(int(b[3])<<8|int(b[4]), mostLooked), int(b[5]), b[6:]}, nil
}

// segment is a part of the index: the entries of a rank with a word, or with longer words that begin with it.
type segment struct {
	rank   Rank
	longer bool
}

// segments are the parts of the index in the order of results.
var segments = func() (all []segment) {
	for _, ranks := range [][]Rank{{Whole, WholeOther, Begins, Has}, {OfNotation}, {OfVariant}, {OfIdentifier}} {
		for _, longer := range []bool{false, true} {
			for _, rank := range ranks {
				all = append(all, segment{rank, longer})
			}
		}
	}
	return all
}()

// prefix returns the prefix of a segment's entries for a word, which those of longer words share.
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
func (l *looking) entries(word string, from position) iter.Seq2[position, error] {
	return func(yield func(position, error) bool) {
		after := from.after
		for part := from.part; part < len(segments); part++ {
			g := segments[part]
			prefix := g.prefix(word)
			if g.longer && len(after) == 0 { // an earlier segment has the word itself
				after = append([]byte{byte(g.rank)}, word...)
				after = append(after, 0, 0xFF)
			}
			for entry, err := range entriesWith(l.Tx(), l.ID(), prefix, after) {
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

// bestEntry returns by which entry a topic is found for a word: the first of its entries in the order of segments. ok
// is false where it is not.
func bestEntry(t *fragment.Topic, word string) (found position, ok bool) {
	consider := func(rank Rank, with string) {
		part := slices.Index(segments, segment{rank, with != word})
		if ok && part > found.part {
			return
		}
		entry := appendEntry(nil, Entry{rank, with}, t.TopicSI())
		if !ok || part < found.part || bytes.Compare(entry, found.after) < 0 {
			found, ok = position{kind: byWord, part: part, after: entry}, true
		}
	}
	n := 0
	topicTexts(t, func(text Text) bool {
		if text.Kind >= Definition {
			return false
		}
		words := cut(searched(text))
		n += len(words)
		for _, w := range words {
			if strings.HasPrefix(w.text, word) {
				consider(rankOf(&text, w, words), w.text)
			}
		}
		return n <= wordsOfTopic
	})
	if n > wordsOfTopic { // the index lacks some entries
		found, ok = position{}, false
		for _, e := range Entries(t) {
			if strings.HasPrefix(e.Word, word) {
				consider(e.Rank, e.Word)
			}
		}
	}
	return found, ok
}

// expectedEntries is entries without those of topics that were looked at. The topics of the others are going to be
// read.
func (l *looking) expectedEntries(q Query, entries iter.Seq2[position, error]) iter.Seq2[position, error] {
	if !l.Tx().Distant() {
		return entries
	}
	enough := func(some []position) bool { return len(some) == readAtOnce }
	return records.InParts(entries, enough, func(some []position) error {
		refs := make([]fragment.Ref, 0, len(some))
		for i := range some {
			ref := topicOf(some[i].after)
			if _, looked := l.seen[ref]; !looked {
				refs = append(refs, ref)
			}
		}
		slices.Sort(refs)
		if refs = slices.Compact(refs); q.Type != "" {
			return l.Expect(refs, nil)
		}
		return l.ExpectNames(refs)
	})
}

// readAtOnce is the number of topics per read if each read is a network round trip.
const readAtOnce = 50

// walk reads the topics of entries for a word, from a position on, and calls take with those that match, until enough
// returns true or a limit is reached. It returns the position to continue; nil at the end. Entries are sorted by rank,
// so later entries of a topic are worse. An entry that is not the best of its topic is skipped.
func (l *looking) walk(q Query, word string, at position, enough func() bool,
	take func(Hit)) (next *position, err error) {
	for now, err := range l.expectedEntries(q, l.entries(word, at)) {
		if err != nil {
			return nil, err
		}
		if enough() || l.over() {
			return &at, nil
		}
		at = now
		ref := topicOf(now.after)
		if _, looked := l.seen[ref]; looked {
			continue
		}
		l.seen[ref] = ""
		t, err := l.look(ref)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		first, ok := bestEntry(t, word)
		if !ok || first.part != now.part || !bytes.Equal(first.after, now.after) {
			continue
		}
		if _, _, ok = q.byNotation(t); ok {
			continue
		}
		m, ok := q.match(t, onlyNames, nil)
		if !ok {
			continue
		}
		hits, err := l.hits(q, t, m)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			if ok, err = l.isOf(h.Topic.TopicSI(), q.Type); err != nil {
				return nil, err
			}
			if h.at = at; ok {
				take(h)
			}
		}
	}
	return nil, nil
}

// isOf reports whether a topic is an instance of typ; true if typ is empty.
func (l *looking) isOf(topic, typ fragment.Ref) (bool, error) {
	if typ == "" {
		return true, nil
	}
	types, err := TypesOf(l.State, topic, mostTypes)
	return slices.Contains(types, typ), err
}

// mostTypes is the number of types of a topic that are read.
const mostTypes = 200

// TypesOf returns the types of a topic, so many at most.
func TypesOf(in fragment.Lookup, topic fragment.Ref, most int) (types []fragment.Ref, err error) {
	for a, err := range in.AssociationsOf(topic, fragment.AsInstance) {
		if err != nil {
			return nil, err
		}
		class, _, _ := a.TypeInstance()
		if types = append(types, class); len(types) == most {
			break
		}
	}
	return types, nil
}

// findNotations finds topics with a notation that equals or begins with the query.
func (l *looking) findNotations(q Query, at position, limit int) (*Found, error) {
	if q.code == "" {
		return &Found{}, nil
	}
	notations := segment{ofCode, q.longer()}
	return l.findAmong(q, entriesWith(l.Tx(), l.ID(), notations.prefix(q.code), at.after), at, limit,
		func(t *fragment.Topic, notation string) (Match, bool, error) {
			m, code, ok := q.byNotation(t)
			l.seen[t.TopicSI()] = fragment.Ref(code)
			return m, ok && code == notation, nil
		})
}

// findAmong finds topics by entries of the index after a position. match returns how a topic matches, and whether the
// entry with a word is the one that finds it.
func (l *looking) findAmong(q Query, entries iter.Seq2[[]byte, error], at position, limit int,
	match func(t *fragment.Topic, word string) (Match, bool, error)) (*Found, error) {
	found := &Found{}
	kind := at.kind
	positions := func(yield func(position, error) bool) {
		for entry, err := range entries {
			if !yield(position{kind: kind, after: bytes.Clone(entry)}, err) {
				return
			}
		}
	}
	for now, err := range l.expectedEntries(q, positions) {
		if err != nil {
			return nil, err
		}
		if len(found.Hits) == limit || l.over() {
			found.Next, found.Ended = at.String(), l.ended
			return found, nil
		}
		at = now
		entry, ref, _ := split(now.after)
		word := string(entry[1:])
		if first, looked := l.seen[fragment.Ref(ref)]; looked && string(first) != word {
			continue
		}
		t, err := l.look(fragment.Ref(ref))
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		m, ok, err := match(t, word)
		if ok && err == nil {
			err = l.take(found, t, q, m, at)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// findWord finds topics with one word, in the order of the index.
func (l *looking) findWord(q Query, at position, limit int) (*Found, error) {
	found := &Found{}
	next, err := l.walk(q, q.Words[0], at, func() bool {
		return len(found.Hits) >= limit
	}, func(h Hit) { found.Hits = append(found.Hits, h) })
	if next != nil {
		found.Next, found.Ended = next.String(), l.ended
	}
	return found, err
}

// findWords finds topics with several words. It reads the topics with the rarest word, [mostLooked] at a time or as
// many as the time allows, and sorts those that have the other words, too. Each page covers one such batch.
func (l *looking) findWords(q Query, at position, limit int) (*Found, error) {
	word, before := q.Words[0], l.looked
	var err error
	if len(q.Words) > 1 {
		if word, err = l.rarest(q.Words); err != nil {
			return nil, err
		}
	}
	if at.among > 0 {
		l.most, l.within = at.among, 2*l.within
	}
	var all []Hit
	next, err := l.walk(q, word, at, func() bool { return false }, func(h Hit) { all = append(all, h) })
	switch {
	case err != nil:
		return nil, err
	case l.ended && at.among > 0:
		return nil, ErrSlow
	}
	slices.SortStableFunc(all, func(a, b Hit) int { return a.Match.Compare(b.Match) })
	for i := range all {
		all[i].at = position{byWord, i + 1, l.looked - before, at.part, at.after}
	}
	found := &Found{Ended: l.ended, Hits: all[min(at.skip, len(all)):]}
	switch {
	case len(found.Hits) > limit:
		found = found.First(limit)
	case next != nil:
		next.skip, next.among = 0, 0
		found.Next = next.String()
	}
	return found, nil
}

// rarest returns the word that the fewest entries have, as far as they are counted.
func (l *looking) rarest(all []string) (word string, err error) {
	fewest := mostCounted
	word = all[0]
	for _, w := range all {
		n := 0
		for _, err := range l.entries(w, position{}) {
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
func (l *looking) findIdentifiers(q Query, at position, limit int) (*Found, error) {
	found := &Found{}
	last := at
	if at.kind != byIdentifier {
		last = position{kind: byIdentifier}
		for _, locator := range q.Locators {
			for _, find := range []func(tmdm.Locator) (*fragment.Topic, error){l.Topic, l.TopicBySubjectLocator} {
				t, err := find(locator)
				if err != nil {
					return nil, err
				}
				if t == nil || slices.ContainsFunc(found.Hits, func(h Hit) bool { return h.Topic.TopicSI() == t.TopicSI() }) {
					continue
				}
				if err := l.take(found, t, q, ByIdentifier(locator), last); err != nil {
					return nil, err
				}
			}
		}
	}
	for part := last.part; part < len(identifierTables)*len(q.Locators); part++ {
		table := identifierTables[part%len(identifierTables)]
		prefix := l.ID().LocatorKey(table, q.Locators[part/len(identifierTables)])
		from := prefix
		if len(last.after) > 0 {
			from = append(append(l.ID().Key(table), last.after...), 0)
		}
		last = position{kind: byIdentifier, part: part}
		for r, err := range l.Tx().ScanInPlace(prefix, from) {
			if err != nil {
				return nil, err
			}
			if len(found.Hits) >= limit || l.over() {
				found.Next, found.Ended = last.String(), l.ended
				return found, nil
			}
			locator := fragment.Ref(r.Key[keys.SourceSize:])
			ref := locator
			if table != keys.TableTopic {
				ref = fragment.Ref(r.Value)
			}
			last.after = []byte(locator)
			first, looked := l.seen[ref]
			if looked && locator != first {
				continue
			}
			t, err := l.Topic(ref)
			if err != nil {
				return nil, err
			}
			if l.looked++; t != nil {
				first = firstWith(t, q)
			}
			if l.seen[ref] = first; t != nil && locator == first {
				if err := l.take(found, t, q, ByIdentifier(locator), last); err != nil {
					return nil, err
				}
			}
		}
		last.after = nil
	}
	return found, nil
}

// take adds a topic if it is an instance of the query's type.
func (l *looking) take(found *Found, t *fragment.Topic, q Query, m Match, at position) error {
	ok, err := l.isOf(t.TopicSI(), q.Type)
	if ok {
		found.Hits = append(found.Hits, Hit{Topic: t, Match: m, at: at})
	}
	return err
}

// firstWith returns the first identifier of a topic that begins with a text, "" if one is that text: that one was found
// before.
func firstWith(t *fragment.Topic, q Query) (first fragment.Ref) {
	for _, l := range slices.Concat(t.SubjectIdentifiers, t.SubjectLocators) {
		switch {
		case slices.Contains(q.Locators, l):
			return ""
		case first == "" && q.Begins(l):
			first = l
		}
	}
	return first
}
