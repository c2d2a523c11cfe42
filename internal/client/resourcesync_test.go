package client_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/client/status"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/tmdm"
)

// What is special about sources that follow the lists of a Source: packages, hashes, ways to
// find it. What holds of all forms of records is tested with those.

// rich returns n topics of which XTM 1.0 cannot carry all: their names have types, and every
// fifth is the reifier of an association.
func rich(n int, version string) []string {
	all := []string{vocabulary, topic("nickname", "nickname")}
	for i := range n {
		id := fmt.Sprint("t", i)
		all = append(all, fmt.Sprintf(`<topic><subjectIdentifier href=%q/><name><value>Topic %d %s</value></name><name><type><subjectIdentifierRef href=%q/></type><value>%d %s</value></name></topic>`,
			si(id), i, version, si("nickname"), i, version))
		if i%5 == 0 {
			all = append(all, reified(link("near", id, fmt.Sprint("t", (i+1)%n)), id))
		}
	}
	return all
}

func isPackage(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, ".zip") }

func isDump(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/resourcedump.xml") }

func isCapabilityList(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, lists) }

// isTopic reports requests for the topic that topics, or known, makes for an id.
func isTopic(id string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/topics/"+fragment.Key(tmdm.Locator(si(id))))
	}
}

func topicsAsked(seen []string) int { return times(seen, "/topics/") }

// followedByLists returns a subscriber whose egov follows the lists, without rounds.
func followedByLists(t *testing.T, o *origin, change ...func(*client.Config)) *subscriber {
	s := newSubscriber(t, change...)
	s.record(o, "egov", lists, "egov")
	o.Seen()
	return s
}

// hasTidied asserts that no fetched file remains.
func (s *subscriber) hasTidied() {
	s.t.Helper()
	left, err := os.ReadDir(filepath.Join(s.dir, "downloads"))
	require.NoError(s.t, err)
	require.Empty(s.t, left)
}

// The baseline of a map is one package, which has the best form of each topic.
func TestBaselineComesInAPackage(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	whole := doc(rich(300, "v1")...)
	o := publishing(t, whole)
	s := followedByLists(t, o)
	r := s.syncQuiet()
	seen := o.Seen()
	assert.Zero(t, topicsAsked(seen))
	assert.Equal(t, 1, times(seen, ".zip"))
	assert.Less(t, len(seen), 12)
	assert.True(t, r.CleanStart)
	assert.Equal(t, r.Entries, r.Applied)
	assert.Greater(t, r.Applied, 300)
	s.has(o, whole)
	s.hasRecordsOf(o, "egov", "egov")
	s.hasTidied()
	assert.True(t, s.verify().Equal)

	one := newSubscriber(t)
	_, err := one.Subscribe(context.Background(), o.RecordsURL("egov", lists), client.SubscribeOptions{Asked: store.Asked{Format: "xtm1.0"}})
	require.NoError(t, err)
	o.Seen()
	one.syncQuiet()
	assert.Zero(t, topicsAsked(o.Seen()))
	assert.NotEqual(t, s.canonicalOf("egov", o.SP("egov")), one.canonicalOf("egov", o.SP("egov")), "the package has XTM 1.0 as well, which says less")
}

// zipOf makes a package of files.
func zipOf(t *testing.T, files map[string]string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = f.Write([]byte(content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

var fixities = regexp.MustCompile(` (hash|length)="[^"]*"`)

// A broken package is skipped: the topics are fetched one by one.
func TestPackageThatIsBrokenIsPassedOver(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	const n = 20
	manifest := `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
		<rs:md capability="resourcedump-manifest" at="2030-01-01T00:00:00Z"/></urlset>`
	for name, c := range map[string]struct {
		unstated bool // the dump has no metadata of the bytes, so that they are inspected
		change   func(body string) string
		says     string
	}{
		"bits flipped":        {false, func(b string) string { return b[:len(b)/2] + string([]byte{b[len(b)/2] ^ 0x10}) + b[len(b)/2+1:] }, "md5"},
		"bits of any flipped": {true, func(b string) string { return b[:len(b)/3] + strings.Repeat("\x00", 2000) + b[len(b)/3+2000:] }, ""},
		"shorter":             {false, func(b string) string { return b[:len(b)/2] }, "its length is"},
		"shorter, not stated": {true, func(b string) string { return b[:len(b)/2] }, "zip"},
		"another package":     {false, func(string) string { return zipOf(t, map[string]string{"manifest.xml": manifest}) }, "its length is"},
		"nothing in it":       {true, func(string) string { return zipOf(t, map[string]string{"manifest.xml": manifest}) }, "is not in the package that should have it"},
		"without a manifest":  {true, func(string) string { return zipOf(t, map[string]string{"a": "b"}) }, "manifest"},
		"leads out of itself": {true, func(string) string {
			return zipOf(t, map[string]string{"manifest.xml": manifest, "../../../evil": "x"})
		}, "evil"},
		"a bomb":            {true, func(string) string { return zipOf(t, map[string]string{"manifest.xml": strings.Repeat(" ", 16<<20)}) }, "MaxRatio"},
		"a page, not a ZIP": {true, func(string) string { return "<html>come back later</html>" }, "zip"},
		"empty":             {true, func(string) string { return "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(n, "v1")...))
			s := followedByLists(t, o)
			o.BreakWith(func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
				if c.unstated && isDump(r) {
					return rewriting(isDump, func(body string) string { return fixities.ReplaceAllString(body, "") })(w, r, real)
				}
				return rewriting(isPackage, c.change)(w, r, real)
			})
			s.syncQuiet()
			seen := o.Seen()
			assert.NotZero(t, times(seen, ".zip"), "it was asked for")
			assert.GreaterOrEqual(t, topicsAsked(seen), 1)
			if name != "bits of any flipped" {
				assert.Equal(t, n+1, topicsAsked(seen), "with the type of the names, which the server adds")
			}
			report := s.reported()
			assert.Equal(t, 1, strings.Count(report, "the package is not used for all that it should have"), report)
			assert.Contains(t, report, c.says)
			s.has(o, doc(topics(n, "v1")...))
			s.hasTidied()
		})
	}
	for name, broken := range map[string]fault{
		"gone":      damage(isPackage, always, answering(http.StatusGone)),
		"not there": damage(isPackage, always, answering(http.StatusNotFound)),
		"cut off": damage(isPackage, always, func(w http.ResponseWriter, r *http.Request, real http.Handler) {
			_, body := record(real, r)
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body[:100])
			panic(http.ErrAbortHandler)
		}),
		"no dump":          damage(isDump, always, answering(http.StatusNotFound)),
		"a dump of no use": rewriting(isDump, func(string) string { return "<html/>" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(n, "v1")...))
			s := followedByLists(t, o, func(c *client.Config) { c.Tries = 2 })
			o.BreakWith(broken)
			s.syncQuiet()
			assert.Equal(t, n+1, topicsAsked(o.Seen()))
			assert.Len(t, strings.Split(s.reported(), "\n"), 1, s.reported())
			s.has(o, doc(topics(n, "v1")...))
			s.hasTidied()
		})
	}
}

// settleChanges waits until no more of the open change list of egov is due to be closed.
func settleChanges(o *origin, changesPerList int) {
	testenv.Eventually(o.T, func() bool {
		return strings.Count(o.Get("/topicmaps/egov/resourcesync/changelist-open.xml"), "<url>") <= changesPerList
	})
}

// Many changes come in the packages of the Change Dump; others are fetched one by one, also if the packages would cost
// more.
func TestChangesComeInPackagesWhereThatIsCheaper(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(60, "v1")...), node.ChangesPerList(20))
	s := recorded(t, o, lists)
	o.Put(doc(topics(60, "v2")...))
	o.Put(doc(topics(50, "v2")...))
	settleChanges(o, 20)
	r := s.syncQuiet()
	seen := o.Seen()
	assert.Equal(t, 3, times(seen, ".zip"), "%v", seen)
	assert.Equal(t, 1, topicsAsked(seen), "one, and the deletions, are in no closed list yet")
	assert.Equal(t, 60, r.Applied)
	s.has(o, doc(topics(50, "v2")...))
	s.hasTidied()
	assert.True(t, s.verify().Equal)
	o.Seen()

	// More bytes than necessary: the package has a large, deleted topic.
	noise := make([]byte, 150_000)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	large := topic("large", base64.StdEncoding.EncodeToString(noise))
	few := append(topics(50, "v2")[2:], topic("t0", "T0"), topic("t1", "T1"))
	o.Put(doc(append(few, large)...))
	o.Put(doc(few...))
	o.Put(doc(append(few, topics(60, "v3")[50:]...)...)) // fills the list, and
	o.Put(doc(append(few, topics(60, "v4")[50:]...)...)) // makes it older than the open one
	settleChanges(o, 20)
	s.syncQuiet()
	seen = o.Seen()
	assert.Zero(t, times(seen, ".zip"), "%v", seen)
	assert.Equal(t, 12, topicsAsked(seen))
	s.has(o, doc(append(few, topics(60, "v4")[50:]...)...))
}

// Content that differs from the list is rejected. Its topic is in quarantine: no round accepts the content until the
// list and the content agree.
func TestTopicThatIsNotWhatTheListStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(body string) string
		says string
	}{
		"the version before":   {func(b string) string { return strings.ReplaceAll(b, "v2", "v1") }, "md5"},
		"another topic":        {func(b string) string { return strings.ReplaceAll(b, si("t1"), si("t9")) }, "md5"},
		"shorter":              {func(b string) string { return b[:len(b)-20] }, "length"},
		"longer":               {func(b string) string { return b + "<!-- -->" }, "length"},
		"no XML":               {func(b string) string { return strings.Repeat("x", len(b)) }, "md5"},
		"an empty map":         {func(string) string { return doc() }, "length"},
		"empty":                {func(string) string { return "" }, "length"},
		"a page for people":    {func(string) string { return "<!DOCTYPE html><html><body>down<br></body></html>" }, "length"},
		"without what it says": {func(b string) string { return strings.ReplaceAll(b, "Topic 1 v2", "Topic 9 v9") }, "md5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(4, "v1")...))
			s := recorded(t, o, lists)
			o.Put(doc(topics(4, "v2")...))
			o.BreakWith(rewriting(isTopic("t1"), c.lie))
			held := topics(4, "v2")
			held[1] = topics(4, "v1")[1]
			stale := doc(held...)
			want := regexp.MustCompile(`its (?:` + c.says + `) is ([0-9a-f]+), not ([0-9a-f]+)$`)
			var first []string
			for round := 1; round <= 3; round++ {
				_, bad := s.syncPasses(1)
				found := want.FindStringSubmatch(bad[0].Error)
				require.NotNil(t, found, bad[0].Error)
				assert.NotEqual(t, found[1], found[2])
				if first == nil {
					first = found
				}
				assert.Equal(t, first, found, "what was stated goes on to be what is wanted")
				assert.Equal(t, round, bad[0].Tries)
				s.has(o, stale)
			}
			o.BreakWith(nil)
			s.syncQuiet()
			s.has(o, doc(topics(4, "v2")...))
			assert.Zero(t, s.syncQuiet().Entries)
			assert.True(t, s.verify().Equal)
		})
	}
}

// A form that differs from its list may be replaced by another one, with less content and a message.
func TestFormThatIsNotWhatTheListStates(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := recorded(t, o, lists)
	o.Put(doc(topics(3, "v2")...))
	for _, c := range []struct{ broken, taken string }{{`\.xtm21$`, `\.xtm1`}, {`\.xtm`, `/[a-z2-7]{26}`}} {
		broken := regexp.MustCompile(c.broken)
		o.BreakWith(rewriting(func(r *http.Request) bool { return isTopic("t1")(r) && broken.MatchString(r.URL.Path) },
			func(b string) string { return strings.ReplaceAll(b, "v2", "v1") }))
		for range 2 {
			_, bad := s.syncPasses(1)
			assert.Regexp(t, `its sha-256 is [0-9a-f]{64}, not [0-9a-f]{64}; http.*`+c.taken+` was taken, which may say less`, bad[0].Error)
			s.has(o, doc(topics(3, "v2")...))
		}
	}
	o.BreakWith(nil)
	s.syncQuiet()
	s.has(o, doc(topics(3, "v2")...))
}

// A changed prefix could delete everything: no record is changed.
func TestPrefixOfASourceThatChangesStopsEverything(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(3, "v1")...))
	s := recorded(t, o, lists)
	before := s.known("egov")
	o.Put(doc(topics(2, "v2")...))
	link := regexp.MustCompile(`<rs:ln [^>]*source-locator-prefix[^>]*>`)
	for name, c := range map[string]struct{ with, found string }{
		"another":      {strings.Replace(link.FindString(o.Get("/topicmaps/egov"+lists)), o.SP("egov"), "http://psi.example.org/map/", 1), "http://psi.example.org/map/"},
		"a longer one": {strings.Replace(link.FindString(o.Get("/topicmaps/egov"+lists)), o.SP("egov"), o.SP("egov")+"v2/", 1), o.SP("egov") + "v2/"},
		"none":         {"", ""},
	} {
		require.Regexp(t, link, o.Get("/topicmaps/egov"+lists))
		o.BreakWith(rewriting(isCapabilityList, func(b string) string { return link.ReplaceAllString(b, c.with) }))
		for _, round := range []func(context.Context, string) (*client.Round, error){s.Sync, s.Replace} {
			_, err := round(context.Background(), "egov")
			var changed *client.PrefixError
			require.ErrorAs(t, err, &changed, name)
			assert.Equal(t, client.PrefixError{URL: o.RecordsURL("egov", lists), Pinned: o.SP("egov"), Found: c.found, Name: "egov", Again: "--protocol resourcesync " + o.RecordsURL("egov", lists)}, *changed)
			s.has(o, doc(topics(3, "v1")...))
			now := s.known("egov")
			assert.Equal(t, before.State, now.State)
			assert.Equal(t, err.Error(), now.LastError)
			assert.Equal(t, status.RoundFailed, status.Describe(&now, nil, s.Now()).State)
		}
	}
	o.BreakWith(nil)
	s.syncQuiet()
	s.has(o, doc(topics(2, "v2")...))
	s.hasTidied()
}

// A new collection under the URLs of a deleted one is another source.
func TestSourceThatBeginsAnewIsReadAnew(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...))
	s := recorded(t, o, lists)
	require.Equal(t, http.StatusOK, o.Ask(http.MethodDelete, "/topicmaps/egov", "", "").Code)
	_, err := s.syncFails()
	assert.ErrorContains(t, err, o.RecordsURL("egov", lists)+": the server answered 410 Gone")
	s.has(o, doc(topics(5, "v1")...))
	o.Create("libraries", doc(topic("other", "Other"))) // to which the server leads now
	_, err = s.syncFails()
	assert.ErrorContains(t, err, o.RecordsURL("egov", lists)+": the server answered 410 Gone")
	s.has(o, doc(topics(5, "v1")...))
	again := doc(append(topics(3, "anew"), topic("other", "Other"))...)
	o.Create("egov", again)
	r := s.syncQuiet()
	assert.Equal(t, "the Source has another Capability List, or another history", r.Reason)
	assert.Contains(t, s.reported(), r.Reason+"; all of it was read")
	s.has(o, again)
	s.hasRecordsOf(o, "egov", "egov")
	assert.Empty(t, s.syncQuiet().Reason)
	assert.True(t, s.verify().Equal)
}

// With a topic that changes at each request, and a map that changes at each request, the round ends, and a later one
// brings the rest in step.
func TestTopicThatChangesAllTheTime(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]func(*http.Request) bool{
		"when it is asked for":   isTopic("t1"),
		"when any is asked for":  isRecord,
		"when lists are asked":   isRecordsFeed,
		"at each single request": func(*http.Request) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := publishing(t, doc(topics(4, "v1")...))
			s := recorded(t, o, lists)
			var version atomic.Int64
			now := func() string {
				all := topics(4, "v2")
				all[1] = topic("t1", fmt.Sprint("Topic 1 of ", version.Load()))
				return doc(all...)
			}
			o.Put(now())
			o.BreakWith(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if changes(r) {
					version.Add(1)
					o.Put(now())
				}
				return false
			})
			for range 2 {
				r := s.sync()
				assert.LessOrEqual(t, r.Quarantined, 1)
				for _, q := range s.quarantined() {
					assert.Equal(t, []string{si("t1")}, q.Names)
				}
				seen := o.Seen()
				assert.Less(t, len(seen), 200, "it gives up in the end")
				if name == "when it is asked for" {
					assert.Greater(t, times(seen, "/changelist"), 2, "but not at once")
				}
				for _, id := range []string{"t0", "t1", "t2", "t3"} {
					topic := s.here()["egov"]["topic "+si(id)]
					require.NotEmpty(t, topic, "nothing is lost: %s", id)
					if id != "t1" {
						require.Contains(t, topic, "v2")
					}
				}
			}
			require.NotZero(t, version.Load())
			o.BreakWith(nil)
			s.syncQuiet()
			s.has(o, now())
			s.hasRecordsOf(o, "egov", "egov")
			assert.Zero(t, s.syncQuiet().Entries)
			assert.True(t, s.verify().Equal)
		})
	}
}

func (s *subscriber) quarantined() []store.Quarantined {
	all, err := s.db.Quarantine(s.t.Context(), "egov")
	require.NoError(s.t, err)
	return all
}

// For subject identifiers with any characters, the list identifies the topic by it: each record is about the topic with
// its name.
func TestSubjectIdentifiersOfAllCharacters(t *testing.T) {
	o := publishing(t, doc(topic("a", "A")))
	s := recorded(t, o, lists)
	characters := []rune(" \u00a0%&'\"<>+#?;=,~^`{}|[]\\()äß語\u0301\u2028\u3000\U0001F600\U000E0001aZ09-._/:@!$*")
	pieces := rapid.OneOf(rapid.StringOfN(rapid.SampledFrom(characters), 0, 8, -1), rapid.SampledFrom([]string{"%20", "%2F", "%2f", "%C3%A4", "%", "%7E", "%zz", "&amp;", "%26", "%25", "..", "//", "&#38;"}))
	testenv.Check(t, 10, 50, func(r *rapid.T) {
		all := map[string]bool{}
		var elements []string
		for i, parts := range rapid.SliceOfN(rapid.SliceOfN(pieces, 1, 4), 1, 6).Draw(r, "identifiers") {
			id, err := iri.Normalize(rapid.SampledFrom([]string{"http://psi.example.org/", "urn:x-", "HTTP://PSI.example.org/?"}).Draw(r, "begins") + strings.Join(parts, ""))
			if blank := strings.TrimRight(id, " "); err != nil || all[id] || strings.TrimSpace(blank) != blank {
				continue // readers of XTM remove any white space at the end
			}
			all[id] = true
			elements = append(elements, fmt.Sprintf(`<topic><subjectIdentifier href="%s"/><name><value>%d</value></name></topic>`, html.EscapeString(iri.Escape(id)), i))
		}
		o.Put(doc(elements...))
		round, err := s.Sync(context.Background(), "egov")
		require.NoError(r, err)
		require.Zero(r, round.Quarantined, s.quarantined())
		require.NoError(r, s.db.HeldRecords(r.Context(), "egov", nil, func(held store.Held) error {
			require.True(r, held.Named, "the list does not name %s", held.TopicSI)
			delete(all, string(held.TopicSI))
			return nil
		}))
		require.Empty(r, all)
		s.hasRecordsOf(o, "egov", "egov")
		s.has(o, doc(elements...))
	})
}
