package records

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/fragment"
	search "github.com/tmshare/tmshare/internal/ext/search/text"
	"github.com/tmshare/tmshare/internal/store/keys"
)

// identifierTables are the tables of the identifiers of topics.
var identifierTables = []byte{keys.TableTopic, keys.TableIdentifier, keys.TableLocator}

// findIdentifiers finds the topic that has an identifier, then those of which one begins with it.
func (l *looking) findIdentifiers(q search.Query, at position, limit int) (*Found, error) {
	found, s := &Found{}, l.State
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
		last = position{kind: byIdentifier, part: part}
		for r, err := range s.tx.ScanInPlace(prefix, from) {
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
			t, err := s.topicAt(ref)
			if err != nil {
				return nil, err
			}
			if l.looked++; t != nil {
				first = firstWith(t, q.Locator)
			}
			if l.seen[ref] = first; t != nil && locator == first {
				found.Hits = append(found.Hits, Hit{t, search.ByIdentifier(locator)})
			}
		}
		last.after = nil
	}
	return found, nil
}

// firstWith returns the first identifier of a topic that begins with a text, "" if one is that text: that one was found
// before.
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
