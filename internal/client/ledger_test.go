package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/tmdm"
)

// contents returns the records of a source by a name for each, marshalled, without
// the item identifiers of statements: they say where a statement was read, and
// change without an entry.
func contents(t *testing.T, src fragment.Source) map[string]string {
	t.Helper()
	all := map[string]string{}
	for topic, err := range src.Topics() {
		require.NoError(t, err)
		plain, err := fragment.UnmarshalTopic(fragment.MarshalTopic(topic))
		require.NoError(t, err)
		for i := range plain.Names {
			plain.Names[i].ItemIdentifiers = nil
			for j := range plain.Names[i].Variants {
				plain.Names[i].Variants[j].ItemIdentifiers = nil
			}
		}
		for i := range plain.Occurrences {
			plain.Occurrences[i].ItemIdentifiers = nil
		}
		all["topic "+string(topic.TopicSI())] = string(fragment.MarshalTopic(plain))
	}
	for a, err := range src.Associations() {
		require.NoError(t, err)
		plain := *a
		plain.ItemIdentifiers, plain.Roles = nil, slices.Clone(a.Roles)
		for i := range plain.Roles {
			plain.Roles[i].ItemIdentifiers = nil
		}
		key := a.Key()
		all["association "+string(key[:])] = string(fragment.MarshalAssociation(&plain))
	}
	return all
}

// sameRecords asserts that two sources have the same records, and names those that
// differ.
func sameRecords(t *testing.T, expected, actual map[string]string, msg string, args ...any) {
	t.Helper()
	var differ []string
	for name, record := range expected {
		if has, ok := actual[name]; !ok || has != record {
			differ = append(differ, fmt.Sprintf("expected %q\n%q\nnot %q", name, record, has))
		}
	}
	for name, record := range actual {
		if _, ok := expected[name]; !ok {
			differ = append(differ, fmt.Sprintf("not expected %q\n%q", name, record))
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		require.Failf(t, "records differ", "%s\n%s", fmt.Sprintf(msg, args...), strings.Join(differ[:min(len(differ), 10)], "\n"))
	}
}

// ledger remembers all that a server has published of a collection: each record
// that it ever had, the identifiers that each topic ever had, and the whole state
// at the time of each last change.
type ledger struct {
	t       *testing.T
	o       *origin
	name    string
	records map[string]bool
	known   map[fragment.Ref][]tmdm.Locator
	states  map[time.Time]map[string]string
	latest  time.Time
}

func newLedger(t *testing.T, o *origin, name string) *ledger {
	l := &ledger{t: t, o: o, name: name, records: map[string]bool{}, known: map[fragment.Ref][]tmdm.Locator{}, states: map[time.Time]map[string]string{}}
	l.note()
	return l
}

// note remembers what the server has now.
func (l *ledger) note() {
	l.t.Helper()
	require.NoError(l.t, l.o.db.View(l.t.Context(), l.name, func(v *store.View) error {
		l.latest = v.Updated.UTC()
		now := contents(l.t, v.Source())
		l.states[l.latest] = now
		for name, record := range now {
			l.records[name+record] = true
		}
		for topic, err := range v.Source().Topics() {
			require.NoError(l.t, err)
			l.known[topic.TopicSI()] = append(append(l.known[topic.TopicSI()], topic.SubjectIdentifiers...), topic.SubjectLocators...)
		}
		return nil
	}))
}

// hasPublished asserts that each record of a source is one that the server had at
// some time. A topic that is only referred to has some of its identifiers.
func (l *ledger) hasPublished(src fragment.Source) {
	l.t.Helper()
	provisional := map[string]bool{}
	for topic, err := range src.Topics() {
		require.NoError(l.t, err)
		if topic.Provisional {
			provisional["topic "+string(topic.TopicSI())] = true
			require.Subset(l.t, l.known[topic.TopicSI()], topic.SubjectIdentifiers)
		}
	}
	for name, record := range contents(l.t, src) {
		if !provisional[name] && !l.records[name+record] {
			require.Failf(l.t, "a record that the server has never published", "%q\n%q", name, record)
		}
	}
}

// was asserts that a source is what the server had published up to a time.
func (l *ledger) was(at time.Time, src fragment.Source) {
	l.t.Helper()
	state, ok := l.states[at.UTC()]
	require.True(l.t, ok, "nothing was published at %s", at)
	sameRecords(l.t, state, contents(l.t, src), "as of %s; the newest is %s", at, l.latest)
}

// source calls f with the records of a source.
func (s *subscriber) source(name string, f func(store.Subscription, fragment.Source)) {
	require.NoError(s.t, s.db.ReadSources(s.t.Context(), func(subscriptions []store.Subscription, sources []fragment.Source) error {
		for i := range subscriptions {
			if subscriptions[i].Name == name {
				f(subscriptions[i], sources[i])
			}
		}
		return nil
	}))
}
