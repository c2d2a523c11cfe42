package sparql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/cli"
	"github.com/tmshare/tmshare/internal/rdf"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/consumed"
	"github.com/tmshare/tmshare/internal/testkit/triplestore"
	"github.com/tmshare/tmshare/merge"
)

// published returns the change that leads to the given records.
func published(t testing.TB, next *merge.Memory) func(fragment.Source) *fragment.Change {
	return func(prior fragment.Source) *fragment.Change {
		c := &fragment.Change{}
		touched := map[fragment.Ref]bool{}
		before, after := associationsOf(t, prior), associationsOf(t, next)
		for was, err := range fragment.Records(prior) {
			require.NoError(t, err)
			if a := was.Association; a != nil {
				if after[a.Key()] == nil {
					c.DeleteAssociations = append(c.DeleteAssociations, a)
					touched[a.Players()[0]] = true
				}
				continue
			}
			ref := was.Topic.TopicSI()
			if is, err := next.Topic(ref); is == nil {
				require.NoError(t, err)
				c.DeleteTopics = append(c.DeleteTopics, ref)
				c.Deleted, touched[ref] = c.Deleted+1, true
			}
		}
		for is, err := range next.Topics() {
			require.NoError(t, err)
			was, err := prior.Topic(is.TopicSI())
			require.NoError(t, err)
			if was == nil || !reflect.DeepEqual(fragment.MarshalTopic(was), fragment.MarshalTopic(is)) {
				c.PutTopics, touched[is.TopicSI()] = append(c.PutTopics, is), true
			}
		}
		for key, is := range after {
			if before[key] == nil {
				c.PutAssociations = append(c.PutAssociations, is)
				touched[is.Players()[0]] = true
			}
		}
		for _, ref := range slices.Sorted(maps.Keys(touched)) {
			c.Entries = append(c.Entries, fragment.Entry{TopicSI: ref, Topic: ref, Deleted: slices.Contains(c.DeleteTopics, ref)})
		}
		return c
	}
}

func associationsOf(t testing.TB, src fragment.Source) map[fragment.AssociationKey]*fragment.Association {
	all := map[fragment.AssociationKey]*fragment.Association{}
	for r, err := range fragment.Records(src) {
		require.NoError(t, err)
		if a := r.Association; a != nil {
			all[a.Key()] = a
		}
	}
	return all
}

func about(si fragment.Ref, texts ...string) *fragment.Topic {
	topic := storetest.Named(si, "a name of "+string(si))
	for _, text := range texts {
		value, datatype, _ := strings.Cut(text, "^^")
		if datatype == "" {
			datatype = "string"
		}
		topic.Occurrences = append(topic.Occurrences, fragment.Occurrence{Value: value, Type: "http://example.org/text",
			Datatype: rdf.XSD + datatype})
	}
	return topic
}

func memoryOf(t testing.TB, all ...any) *merge.Memory {
	m := &merge.Memory{}
	for _, one := range all {
		if topic, ok := one.(*fragment.Topic); ok {
			require.NoError(t, m.PutTopic(topic))
		} else {
			require.NoError(t, m.PutAssociation(one.(*fragment.Association)))
		}
	}
	return m
}

// stated returns an association that is a statement, in a scope.
func stated(s, o fragment.Ref, scope ...fragment.Ref) *fragment.Association {
	return &fragment.Association{Type: "http://example.org/knows", Scope: scope, Roles: []fragment.Role{
		{Type: rdf.NS + "subject", Player: s},
		{Type: rdf.NS + "object", Player: o}}}
}

// A statement goes when no record states it any more.
func TestStatementsOfTwoRecordsStay(t *testing.T) {
	a, b := storetest.Ref(1), storetest.Ref(2)
	for name, versions := range map[string][]*merge.Memory{
		"scopes": {
			memoryOf(t, about(a), about(b), stated(a, b, "http://example.org/x"), stated(a, b, "http://example.org/y")),
			memoryOf(t, about(a), about(b), stated(a, b, "http://example.org/y")),
			memoryOf(t, about(a), about(b), stated(a, b, "http://example.org/z")),
			memoryOf(t, about(a), about(b)),
		},
		"values": {
			memoryOf(t, about(a, "1^^integer", "1.0^^decimal", "true^^boolean")),
			memoryOf(t, about(a, "1.0^^decimal", "true^^boolean")),
			memoryOf(t, about(a, "1^^integer")),
			memoryOf(t, about(a)),
		},
	} {
		for _, equal := range []bool{false, true} {
			t.Run(fmt.Sprint(name, equal), func(t *testing.T) {
				db, s := consumed.OpenStore(t), triplestore.New(t, "")
				if equal {
					s.Value = canonicalLine
				}
				src := consumed.NewCollection(t, db)
				k := newTarget(t, db, s)
				for _, version := range versions {
					src.Publish(t, published(t, version))
					_, err := k.step(t.Context())
					require.NoError(t, err)
					requireInStep(t, s, src, k)
				}
			})
		}
	}
}

func requireCode(t testing.TB, code int, err error) {
	t.Helper()
	failed, ok := errors.AsType[*cli.ExitError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, failed.Code, "%v", err)
}

// A graph that is not empty is taken over only on request. Its contents are reported before.
func TestGraphsThatAreNotEmpty(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	src.Publish(t, consumed.Edits(t, 1))
	const other = `<http://example.org/other> <http://example.org/p> "1"`
	s.Graphs["<"+graph+">"] = map[string]bool{other: true, wanted(t, src)[0]: true}
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	requireCode(t, cli.Conflict, err)
	require.ErrorContains(t, err, "2 statements, of which 1 are not those of m")
	require.Len(t, s.Graph("<"+graph+">"), 2, "nothing was touched")
	result, err := k.compareNow(t.Context(), false)
	require.NoError(t, err)
	assert.Equal(t, 1, result.Extra)
	assert.Contains(t, result.Examples, "- "+other+" .")
	k.maxDelete = -1 // as "rebuild" has it, and "add --adopt"
	_, err = k.compareNow(t.Context(), true)
	require.NoError(t, err)
	requireInStep(t, s, src, k)
}

// Two nodes that write to one graph notice each other.
func TestASecondWriterIsNoticed(t *testing.T) {
	s := triplestore.New(t, "")
	one, two := consumed.OpenStore(t), consumed.OpenStore(t)
	first, second := consumed.NewCollection(t, one), consumed.NewCollection(t, two)
	first.Publish(t, consumed.Edits(t, 1))
	second.Publish(t, consumed.Edits(t, 2))
	k, other := newTarget(t, one, s), newTarget(t, two, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	_, err = other.step(t.Context())
	requireCode(t, cli.Conflict, err)
	requireInStep(t, s, first, k)

	other.maxDelete = -1
	_, err = other.compareNow(t.Context(), true)
	require.NoError(t, err)
	requireInStep(t, s, second, other)
	for _, repair := range []bool{false, true} {
		_, err = k.compareNow(t.Context(), repair)
		requireCode(t, cli.Conflict, err)
	}
	requireCode(t, cli.Conflict, k.clear(t.Context()))
	require.Equal(t, wanted(t, second), s.Graph("<"+graph+">"))
	for _, changed := range []bool{false, true} {
		if changed {
			first.Publish(t, consumed.Edits(t, 3))
		}
		k.checked = time.Time{}
		_, err = k.step(t.Context())
		requireCode(t, cli.Conflict, err)
		require.ErrorContains(t, err, `"target rebuild t"`)
		require.Equal(t, wanted(t, second), s.Graph("<"+graph+">"))
	}
}

// A statement that a store does not take is listed and passed over. When it is gone from the source, it is forgotten.
func TestStatementsThatAStoreRefuses(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	s.Refuse = func(triple string) bool { return strings.Contains(triple, "abc") }
	src := consumed.NewCollection(t, db)
	a, b := storetest.Ref(1), storetest.Ref(2)
	k := newTarget(t, db, s)
	src.Publish(t, published(t, memoryOf(t, about(a, "abc^^integer", "1^^integer"), about(b, "abc"))))
	_, err := k.step(t.Context())
	require.NoError(t, err)
	require.Len(t, k.Refused, 2)
	require.NotContains(t, strings.Join(s.Graph("<"+graph+">"), "\n"), "abc")
	src.Publish(t, published(t, memoryOf(t, about(a, "abc^^integer", "2^^integer"))))
	_, err = k.step(t.Context())
	require.NoError(t, err)
	require.Len(t, k.Refused, 1)
	require.Contains(t, strings.Join(s.Graph("<"+graph+">"), "\n"), `"2"`)
	src.Publish(t, published(t, memoryOf(t, about(a))))
	_, err = k.step(t.Context())
	require.NoError(t, err)
	require.Empty(t, k.Refused)
	requireInStep(t, s, src, k)
}

// A store that answers updates and does not do them is found out.
func TestStoresThatPretend(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	change := consumed.Edits(t, 1)
	src.Publish(t, change)
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	src.Publish(t, change)
	s.Keep(func() { s.Fault = func(bool) triplestore.Fault { return triplestore.Pretends } })
	_, err = k.step(t.Context())
	require.ErrorContains(t, err, "the store answers an update, and does not do it")
	require.NotEmpty(t, k.Error)
	s.Keep(func() { s.Fault = nil })
	_, err = k.step(t.Context())
	require.NoError(t, err)
	requireInStep(t, s, src, k)
}

// The deletions of a comparison are bounded.
func TestComparisonsDeleteNoMoreThanTheyMay(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	sub := consumed.NewSubscription(t, db)
	var all []any
	for i := range 200 {
		all = append(all, about(storetest.Ref(i)))
	}
	sub.Publish(t, published(t, memoryOf(t, all...)))
	k := newTarget(t, db, s)
	k.maxDelete = 10
	_, err := k.step(t.Context())
	require.NoError(t, err)
	before := s.Graph("<" + graph + ">")
	sub.Replace(t, memoryOf(t, all[:100]...))
	_, err = k.step(t.Context())
	requireCode(t, cli.HeldBack, err)
	require.Equal(t, before, s.Graph("<"+graph+">"))
	require.Positive(t, k.HeldBack)
	k.maxDelete = -1
	_, err = k.compareNow(t.Context(), true)
	require.NoError(t, err)
	requireInStep(t, s, sub, k)
	require.Zero(t, k.HeldBack)
}

// A process may end at any request of a large change.
func TestLargeChangesSurviveAnEndAtAnyRequest(t *testing.T) {
	testenv.SkipUnderRace(t)
	var versions []*merge.Memory
	for v := range 3 {
		m := &merge.Memory{}
		for i := range 550 {
			require.NoError(t, m.PutTopic(about(storetest.Ref(i), fmt.Sprint("version ", v))))
		}
		versions = append(versions, m)
	}
	step := 4
	if testenv.Long() {
		step = 1
	}
	for _, after := range []bool{false, true} {
		done := false
		for at := 1; !done; at += step {
			db, s := consumed.OpenStore(t), triplestore.New(t, "")
			s.Most = 200
			src := consumed.NewCollection(t, db)
			src.Publish(t, published(t, versions[0]))
			k := newTarget(t, db, s)
			k.perRange, k.mostRows = perRange, mostRows
			_, err := k.step(t.Context())
			require.NoError(t, err)
			src.Publish(t, published(t, versions[1]))
			ctx, stop := context.WithCancel(t.Context())
			n := 0
			s.Keep(func() {
				s.Fault = func(bool) triplestore.Fault {
					if n++; n < at {
						return triplestore.None
					}
					stop()
					if after {
						return triplestore.Lost
					}
					return triplestore.Broken
				}
			})
			_, err = k.step(ctx)
			done = err == nil
			stop()
			s.Keep(func() { s.Fault = nil })
			k = begun(t, db, k.Target)
			k.perRange, k.mostRows = perRange, mostRows
			src.Publish(t, published(t, versions[2]))
			for range 2 { // the changes that were begun, and later ones
				_, err = k.step(t.Context())
				require.NoError(t, err)
			}
			requireInStep(t, s, src, k)
		}
	}
}

// One changed topic costs the same, however large the graph is.
func TestASmallChangeCostsLittle(t *testing.T) {
	cost := func(n int) (requests, bytes int) {
		db, s := consumed.OpenStore(t), triplestore.New(t, "")
		src := consumed.NewCollection(t, db)
		hub := storetest.Ref(0)
		version := func(text string) *merge.Memory {
			m := memoryOf(t, about(hub))
			for i := range n {
				require.NoError(t, m.PutTopic(about(storetest.Ref(i+1))))
				require.NoError(t, m.PutAssociation(stated(storetest.Ref(i+1), hub)))
			}
			require.NoError(t, m.PutTopic(about(storetest.Ref(1), text)))
			return m
		}
		src.Publish(t, published(t, version("one")))
		k := newTarget(t, db, s)
		k.perRange, k.mostRows = perRange, mostRows
		_, err := k.step(t.Context())
		require.NoError(t, err)
		s.Keep(func() { s.Count, s.Size = 0, 0 })
		src.Publish(t, published(t, version("two")))
		_, err = k.step(t.Context())
		require.NoError(t, err)
		requireInStep(t, s, src, k)
		return s.Count, s.Size
	}
	requests, bytes := cost(2000)
	fewer, less := cost(50)
	assert.Equal(t, fewer, requests)
	assert.LessOrEqual(t, requests, 3)
	assert.Less(t, float64(bytes), 1.2*float64(less))
}

// Flags that make no sense are refused with what to write.
func TestTargetsAreValidated(t *testing.T) {
	good := Target{Name: "t", Source: "m", Update: "http://127.0.0.1/update", Query: "http://127.0.0.1/query", Graph: graph}
	require.NoError(t, good.validate())
	for want, change := range map[string]func(*Target){
		"cannot name a target":          func(t *Target) { t.Name = "a b" },
		"--sparql-update: \"x\"":        func(t *Target) { t.Update = "x" },
		"--sparql-query: \"ftp://a/b\"": func(t *Target) { t.Query = "ftp://a/b" },
		"name or a password":            func(t *Target) { t.Update = "http://a:b@127.0.0.1/" },
		"\"graph\" is no absolute IRI":  func(t *Target) { t.Graph = "graph" },
		"no absolute IRI: write":        func(t *Target) { t.Graph = "http://example.org/> <b" },
		"--of is missing":               func(t *Target) { t.Source = "" },
		"no absolute IRI: write it":     func(t *Target) { t.Graph = "http://" },
		"no absolute IRI":               func(t *Target) { t.Graph = "http://example.org/%zz" },
		"\"http://example.org/a#b#c\"":  func(t *Target) { t.Graph = "http://example.org/a#b#c" },
		"exclude each other":            func(t *Target) { t.PasswordFile, t.TokenFile = "a", "b" },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.validate(), want)
	}
	for update, want := range map[string]string{
		"http://h/skos/update":               "http://h/skos/query",
		"http://h/repositories/x/statements": "http://h/repositories/x",
		"http://h/sparql":                    "http://h/sparql",
	} {
		assert.Equal(t, want, queryAddress(update))
	}
}

// A target follows its collection to another name.
func TestTargetsOfRenamedCollections(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	change := consumed.Edits(t, 1)
	src.Publish(t, change)
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	src.Publish(t, change)
	_, err = db.RenameCollection(t.Context(), "m", "n")
	require.NoError(t, err)
	_, err = k.step(t.Context())
	require.NoError(t, err)
	require.Equal(t, "n", k.Source)
	require.NoError(t, db.View(t.Context(), "n", func(v *store.View) error {
		require.Equal(t, v.Head, k.Mark.Commit)
		return nil
	}))
}

// Statements that others have put into a graph are removed, also if they are more than an answer has.
func TestManyStatementsOfOthersGo(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	src.Publish(t, consumed.Edits(t, 1))
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	s.Keep(func() {
		s.Cut = 25
		for i := range 200 {
			s.Graphs["<"+graph+">"][fmt.Sprintf(`<http://example.org/s> <http://example.org/p> "%d"`, i)] = true
			s.Graphs["<"+graph+">"][fmt.Sprintf(`<http://example.org/o> <http://example.org/p> <http://example.org/%d>`, i)] = true
		}
	})
	result, err := k.compareNow(t.Context(), true)
	require.NoError(t, err)
	require.False(t, result.Equal())
	requireInStep(t, s, src, k)
}

// A store that takes no updates at all is asked once.
func TestStoresThatTakeNoUpdates(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	src.Publish(t, consumed.Edits(t, 1))
	s.Refuse = func(string) bool { return true }
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.ErrorContains(t, err, "400 Bad Request")
	require.Empty(t, k.Refused)
	require.Less(t, s.Count, 10)
}

// A statement that was removed with its graph can be added again.
func TestGraphsAreCleared(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	src.Publish(t, consumed.Edits(t, 1))
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	require.NoError(t, k.clear(t.Context()))
	require.Empty(t, s.Graph("<"+graph+">"))
	require.Empty(t, s.Graph("<"+marks+">"))
}

// A later change of the source is no difference of the graph.
func TestAComparisonIsOfWhatTheSourceHasNow(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	change := consumed.Edits(t, 1)
	src.Publish(t, change)
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	src.Publish(t, change)
	result, err := k.compareNow(t.Context(), true)
	require.NoError(t, err)
	require.True(t, result.Equal())
	requireInStep(t, s, src, k)
}

// A store whose answers lie outside the requested ranges causes no deletions.
func TestStoresThatAnswerAnotherQuestion(t *testing.T) {
	db, s := consumed.OpenStore(t), triplestore.New(t, "")
	src := consumed.NewCollection(t, db)
	var all []any
	for i := range 40 {
		all = append(all, about(storetest.Ref(i)))
	}
	src.Publish(t, published(t, memoryOf(t, all...)))
	k := newTarget(t, db, s)
	_, err := k.step(t.Context())
	require.NoError(t, err)
	before := s.Graph("<" + graph + ">")
	s.Keep(func() { s.Unfiltered = true })
	_, err = k.compareNow(t.Context(), true)
	require.ErrorContains(t, err, "outside of it")
	require.Equal(t, before, s.Graph("<"+graph+">"))
}
