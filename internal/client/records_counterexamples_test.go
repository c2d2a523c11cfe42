package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/faults"
)

// known returns a topic with a name and some subject identifiers, the first of which is the TopicSI of a new topic, and
// with more content.
func known(ids, name string, more ...string) string {
	var b strings.Builder
	for id := range strings.FieldsSeq(ids) {
		fmt.Fprintf(&b, `<subjectIdentifier href=%q/>`, si(id))
	}
	slices.Sort(more) // types come before names
	statements := strings.Join(more, "")
	return "<topic>" + b.String() + statements + "<name><value>" + name + "</value></name></topic>"
}

func instanceOf(id string) string {
	return fmt.Sprintf(`<instanceOf><subjectIdentifierRef href=%q/></instanceOf>`, si(id))
}

// histories are those in which clients without a rule of the update algorithm fail.
var histories = map[string][]string{
	"a merge that comes apart again":     {doc(known("b", "B"), known("a", "A")), doc(known("b a", "both")), doc(known("b", "B"))},
	"and both halves stay":               {doc(known("b", "B"), known("a", "A")), doc(known("b a", "both")), doc(known("b", "B"), known("a", "A again"))},
	"an instance loses its name":         {doc(known("a", "class"), known("c d", "C", instanceOf("a"))), doc(known("a", "class"), known("d", "C", instanceOf("a"))), doc(known("a", "the class"), known("d", "C"))},
	"an identifier leaves what dies":     {doc(known("a x", "A"), known("b", "B")), doc(known("b x", "B"))},
	"and is the only one of another":     {doc(known("a x", "A")), doc(known("x", "X"))},
	"a topic goes under another name":    {doc(known("a", "A")), doc(known("a b", "A")), doc(known("b", "A"))},
	"a class splits":                     {doc(known("a b", "class"), known("c", "C", instanceOf("a"))), doc(known("a", "class A"), known("b", "class B"), known("c", "C", instanceOf("b")))},
	"a type gains a name and loses it":   {doc(known("c", "C"), known("i", "I", instanceOf("c"))), doc(known("c b", "C"), known("i", "I", instanceOf("b"))), doc(known("c", "C"), known("b", "B"), known("i", "I", instanceOf("c")))},
	"an upstream merge":                  {doc(known("a", "A"), known("b", "B"), vocabulary, link("near", "a", "x"), link("near", "b", "y")), doc(known("a b", "AB"), vocabulary, link("near", "a", "x"))},
	"an identifier is lost":              {doc(known("a b", "A")), doc(known("a", "A"))},
	"an identifier moves":                {doc(known("a x", "A"), known("b", "B"), vocabulary, link("near", "a", "b")), doc(known("a", "A"), known("b x", "B"), vocabulary, link("near", "a", "b"))},
	"an identifier goes round":           {doc(known("a x", "A"), known("b y", "B"), known("c z", "C")), doc(known("a y", "A"), known("b z", "B"), known("c x", "C")), doc(known("a z", "A"), known("b x", "B"), known("c y", "C"))},
	"names change places":                {doc(known("a x", "A"), known("b y", "B")), doc(known("b x", "A"), known("a y", "B"))},
	"a player goes":                      {doc(known("a", "A"), vocabulary, link("near", "a", "b")), doc(known("a", "A"), vocabulary)},
	"instances come and go":              {doc(known("k", "class")), doc(known("k", "class"), known("i", "I", instanceOf("k"))), doc(known("k", "class"))},
	"a topic is deleted and there again": {doc(known("a b", "A"), known("z", "Z")), doc(known("z", "Z")), doc(known("a", "A again"), known("b", "B"), known("z", "Z"))},
	"all goes":                           {doc(known("a", "A"), vocabulary, link("near", "a", "b")), doc(), doc(known("a", "A"))},
	"a TopicSI is another's now":         {doc(known("a b", "A"), known("c", "C")), doc(known("b", "A"), known("c a", "C")), doc(known("b", "A"), known("a", "C"))},
	"reifiers move": {
		doc(known("r", "R"), known("a", "A"), known("b", "B"), vocabulary, reified(link("near", "a", "b"), "r")),
		doc(known("r", "R"), known("a", "A"), known("b", "B"), vocabulary, reified(link("near", "b", "a"), "r"), link("near", "a", "b")),
		doc(known("a", "A"), known("b", "B"), vocabulary, link("near", "a", "b")),
	},
}

// reified adds a reifier to an association.
func reified(association, id string) string {
	return strings.Replace(association, "<association>", fmt.Sprintf(`<association><reifier><subjectIdentifierRef href=%q/></reifier>`, si(id)), 1)
}

// Each of these histories leads to the server's map, with rounds after each step, only at the end, or with each step
// between the feed and the records.
func TestRecordsThroughHistoriesThatBreakOthers(t *testing.T) {
	testenv.SkipUnderRace(t)
	testenv.OnlyWithAll(t, "many histories are followed in each form")
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		for name, history := range histories {
			for how, follow := range map[string]func(*testing.T, *origin, *subscriber, []string){
				"each step": func(_ *testing.T, o *origin, s *subscriber, history []string) {
					for _, version := range history[1:] {
						o.Put(version)
						s.sync()
						s.has(o, version)
						s.hasRecordsOf(o, "egov", "egov")
					}
				},
				"at the end": func(_ *testing.T, o *origin, _ *subscriber, history []string) {
					for _, version := range history[1:] {
						o.Put(version)
					}
				},
				"in between": func(t *testing.T, o *origin, s *subscriber, history []string) {
					for i := 1; i < len(history); i++ {
						o.Put(strings.Replace(history[i-1], "</topicMap>", known("other", fmt.Sprint("version ", i))+"</topicMap>", 1))
						changeBetweenFeedAndFetch(o, history[i])
						s.sync()
					}
				},
			} {
				t.Run(name+"/"+how, func(t *testing.T) {
					t.Parallel()
					o := publishing(t, history[0], documentSize(3))
					s := recorded(t, o, form)
					follow(t, o, s, history)
					s.syncPasses(0)
					s.has(o, history[len(history)-1])
					s.hasRecordsOf(o, "egov", "egov")
					assert.Zero(t, s.sync().Entries)
				})
			}
		}
	})
}

// changeBetweenFeedAndFetch publishes a version during the first request for a record.
func changeBetweenFeedAndFetch(o *origin, version string) {
	var once sync.Once
	o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isRecord(r) {
			once.Do(func() { o.Put(version) })
		}
		return false
	})
}

// A fetched record is newer than its entry. It is fetched again with its next entry.
func TestRecordThatIsNewerThanItsEntry(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(topics(3, "v1")...))
		s := recorded(t, o, form)
		o.Put(doc(topics(3, "v2")...))
		changeBetweenFeedAndFetch(o, doc(topics(3, "v3")...))
		mark := s.sync().Mark
		s.has(o, doc(topics(3, "v3")...))
		r := s.sync()
		if form == lists { // the hashes show that there is a later one
			assert.Zero(t, r.Entries)
			return
		}
		assert.Equal(t, 3, r.Applied)
		assert.True(t, r.Mark.After(mark))
		s.has(o, doc(topics(3, "v3")...))
		assert.Zero(t, s.sync().Entries)
	})
}

// A record deleted between the feed and the fetch is answered with 200 and an empty topic. The next feed states the
// deletion.
func TestTombstoneThatIsServedAsARecord(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(known("a x", "A"), known("b", "B")))
		s := recorded(t, o, form)
		o.Put(doc(known("a x", "A changed"), known("b", "B")))
		changeBetweenFeedAndFetch(o, doc(known("b x", "B")))
		r := s.sync()
		assert.Zero(t, r.Quarantined)
		if form != lists { // otherwise the hash shows it
			assert.Equal(t, 1, r.Applied)
			s.syncPasses(0)
		}
		s.has(o, doc(known("b x", "B")))
		assert.Zero(t, s.sync().Entries)
	})
}

// A type-instance association is in the records of both topics, but belongs to the instance. An instance that came and
// went between two feeds is only mentioned by its class.
func TestInstanceThatCameAndWentBetweenTwoFeeds(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		class, instance := known("k", "class"), known("i", "I", instanceOf("k"))
		o := publishing(t, doc(class))
		s := recorded(t, o, form)
		o.Put(doc(known("k", "a class")))
		changeBetweenFeedAndFetch(o, doc(known("k", "the class"), instance))
		s.sync()
		o.BreakWith(nil)
		o.Put(doc(known("k", "the class")))
		s.sync()
		s.has(o, doc(known("k", "the class")))
		s.hasRecordsOf(o, "egov", "egov")
	})
}

// A deletion entry of a TopicSI that another topic has now deletes no statement of that one.
func TestDeletionEntryOfATopicSIThatAnotherTopicOwns(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(known("a", "A"), known("b", "B"), vocabulary, link("near", "a", "c"), link("near", "b", "c")))
		s := recorded(t, o, form, func(c *client.Config) { c.Batch = 1 })
		merged := doc(known("b a", "both"), vocabulary, link("near", "a", "c"))
		o.Put(merged)
		// The deletion entry is late: the topic's changes come first.
		if form == archived {
			o.BreakWith(rewriting(isRecordsFeed, func(body string) string {
				for _, e := range faults.Entry.FindAllString(body, -1) {
					if strings.Contains(e, "<content") {
						body = strings.Replace(body, e, "", 1)
					}
				}
				return body
			}))
			s.sync()
			s.has(o, merged)
			o.BreakWith(nil)
			merged = doc(known("b a", "both"), vocabulary, link("near", "a", "c"), known("other", "so that the feed changes"))
			o.Put(merged)
		}
		s.sync()
		s.has(o, merged)
		s.hasRecordsOf(o, "egov", "egov")
	})
}

// A class of many instances need not list them.
func TestRecordsWithoutInstances(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(known("k", "class"), known("i", "I", instanceOf("k")), known("j", "J", instanceOf("k"))))
		_, err := o.DB.ChangeSettings(o.T.Context(), "egov", func(s *store.Settings) error { s.OmitInstances = true; return nil })
		require.NoError(t, err)
		s := recorded(t, o, form)
		version := doc(known("k", "the class"), known("i", "I", instanceOf("k")), known("j", "J"))
		o.Put(version)
		s.sync()
		s.has(o, version)
	})
}

// A cache may have an earlier version of a record, for about a minute as the server allows. The request bypasses it.
func TestCachesDoNotHoldRecordsBack(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	kept := map[string]*httptest.ResponseRecorder{}
	var mu sync.Mutex
	cache := func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !isRecord(r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		a, ok := kept[r.URL.Path]
		if !ok || r.Header.Get("Cache-Control") == "no-cache" {
			a, _ = record(real, r)
			kept[r.URL.Path] = a
			assert.True(t, strings.Contains(a.Body.String(), "topic-name") || strings.Contains(a.Header().Get("Cache-Control"), "max-age="))
		}
		faults.Send(w, a.Code, a.Header(), a.Body.Bytes())
		return true
	}
	o.Put(doc(topics(3, "v2")...)) // those of the first version are rendered, and not to be kept
	o.BreakWith(cache)
	s := newSubscriber(t)
	s.record(o, "egov", archived, "egov")
	s.sync()
	o.Put(doc(topics(3, "v3")...))
	s.sync()
	s.has(o, doc(topics(3, "v3")...))
}

// A large record is not stored but rendered, and is removed with its topic.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	hub := func(version string) string { return topic("hub", version+strings.Repeat("x", 300<<10)) }
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(hub("v1"), topic("a", "A")))
		s := recorded(t, o, form)
		s.has(o, doc(hub("v1"), topic("a", "A")))
		o.Put(doc(hub("v2"), topic("a", "A")))
		changeBetweenFeedAndFetch(o, doc(topic("a", "A")))
		s.syncPasses(0)
		s.syncPasses(0)
		s.has(o, doc(topic("a", "A")))
		assert.True(t, s.verify().Equal)
	})
}

// Withdrawn and restored formats, with the content that each can express.
func TestRecordsWhoseFormatsAreWithdrawn(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
		s := recorded(t, o, form)
		asked := func() (xtm1, xtm21 int) {
			all := o.Seen()
			return times(all, ".xtm1"), times(all, ".xtm21") - times(all, "current")
		}
		for _, c := range []struct {
			offered []string
			xtm1    bool
		}{{[]string{"xtm1"}, true}, {nil, false}, {[]string{"xtm2.1"}, false}} {
			o.Offer("egov", c.offered...)
			s.syncPasses(0)
			one, two := asked()
			assert.Equal(t, c.xtm1, one > 0, "%v", c.offered)
			assert.Equal(t, !c.xtm1, two > 0, "%v", c.offered)
			s.has(o, doc(topics(5, "v1")...))
			assert.Zero(t, s.sync().Entries)
			o.Seen()
		}
		assert.True(t, s.verify().Equal)
	})
}

// "verify" compares one state, and finds differences.
func TestVerifyRecords(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(topics(3, "v1")...))
		s := recorded(t, o, form)
		o.Put(doc(topics(4, "v2")...))
		assert.True(t, s.verify().Equal, "it brings the source in step first")
		n := 2
		o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if isSnapshot(r) && n > 0 {
				n--
				o.Put(doc(topics(4+n, fmt.Sprint("w", n))...))
			}
			return false
		})
		assert.True(t, s.verify().Equal, "while it changes")
		o.BreakWith(nil)
		s.sync()
		o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
			if !isSnapshot(r) {
				return false
			}
			answer, body := record(real, r)
			faults.Send(w, answer.Code, answer.Header(), []byte(strings.Replace(string(body), "Topic 1 w1", "another name", 1)))
			return true
		})
		v := s.verify()
		require.Len(t, v.Differences, 1)
		assert.Equal(t, si("t1"), v.Differences[0].TopicSI)
		o.BreakWith(nil)
		_, err := s.Replace(context.Background(), "egov")
		require.NoError(t, err)
		assert.True(t, s.verify().Equal)
	})
}

// A server on a new database, and one that was restored from a backup.
func TestRecordsOfAServerThatBeganAnew(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		for name, c := range map[string]struct{ restore bool }{"rebuilt": {false}, "restored": {true}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
				saved := o.Backup()
				s := recorded(t, o, form)
				o.Put(doc(topics(7, "lost")...))
				s.sync()
				if c.restore {
					o.Restore(saved)
					o.Put(doc(topics(3, "after")...))
				} else {
					o.Rebuild()
					o.Create("egov", doc(topics(3, "after")...))
				}
				s.sync()
				s.has(o, doc(topics(3, "after")...))
				s.hasRecordsOf(o, "egov", "egov")
				assert.Zero(t, s.sync().Entries)
			})
		}
	})
}

// The record that was changed last in a lost history, and again in the one that took its place, does
// not hide that.
func TestRecordOfTheMarkThatChangesInAnotherHistory(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, form string) {
		o := publishing(t, doc(topics(5, "v1")...), documentSize(2))
		saved := o.Backup()
		s := recorded(t, o, form)
		o.Put(doc(topics(7, "lost")...))
		o.Put(doc(append(topics(7, "lost"), topic("last", "lost"))...))
		s.sync()
		o.Restore(saved)
		now := append(topics(5, "v1"), topic("last", "found"))
		o.Put(doc(now...))
		s.sync()
		s.has(o, doc(now...))
		s.hasRecordsOf(o, "egov", "egov")
		assert.Zero(t, s.sync().Entries)
	})
}

// What was in quarantine is of no use in another history: the record is no more, or has an older
// version.
func TestQuarantineOfALostHistory(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]string{"it is no more": topics(3, "v1"), "it is older": topics(7, "v1")} {
		t.Run(name, func(t *testing.T) {
			inForms(t, func(t *testing.T, form string) {
				o := publishing(t, doc(before...), documentSize(2))
				saved := o.Backup()
				s := recorded(t, o, form)
				o.Put(doc(topics(7, "v2")...))
				o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
					_, body := record(real, r)
					if !isRecord(r) || !strings.Contains(string(body), si("t5")) {
						return false
					}
					w.WriteHeader(http.StatusNotFound)
					return true
				})
				s.syncPasses(1)
				o.BreakWith(nil)
				o.Restore(saved)
				o.Put(doc(append(before, topic("new", "new"))...))
				s.syncPasses(0)
				s.has(o, doc(append(before, topic("new", "new"))...))
				assert.Zero(t, s.sync().Entries)
			})
		})
	}
}
