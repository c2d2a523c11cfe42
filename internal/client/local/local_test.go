package local_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/losses"
	"github.com/tmshare/tmshare/internal/client/local"
	"github.com/tmshare/tmshare/internal/client/merged"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/store"
	_ "github.com/tmshare/tmshare/internal/testenv" // takes -long
	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/docs"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const localSP = "http://node.example.org/local/"

// node has local statements, and no subscriptions.
type node struct {
	local.Statements
	t  *testing.T
	db *store.DB
}

func newNode(t *testing.T) *node {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Badger: badger.Small})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return &node{local.Statements{Store: db}, t, db}
}

func (n *node) merged() merged.View { return merged.View{Store: n.db, Report: func(string) {}} }

// has asserts that the local statements are those of a document.
func (n *node) has(sp, doc string) {
	n.t.Helper()
	tm, _, err := n.merged().Map(n.t.Context(), false, local.Name)
	require.NoError(n.t, err)
	require.Equal(n.t, docs.Canonical(n.t, docs.Published(n.t, doc, sp), sp), docs.Canonical(n.t, tm, sp))
}

func (n *node) imports(doc string, whole bool) *local.Edit {
	e, err := n.Import(n.t.Context(), "", whole, losses.Limit{}, docs.Reading(n.t, doc))
	require.NoError(n.t, err)
	return e
}

func (n *node) edits(id string, f func(tm *tmdm.TopicMap, t *tmdm.Topic)) *local.Edit {
	e, err := n.EditTopic(n.t.Context(), docs.SI(id), "", func(tm *tmdm.TopicMap, t *tmdm.Topic) error {
		f(tm, t)
		return nil
	})
	require.NoError(n.t, err)
	return e
}

func (n *node) prefix() string {
	sp, err := n.Ensure(n.t.Context(), "")
	require.NoError(n.t, err)
	return sp
}

func TestImport(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	_, _, err := n.merged().Map(t.Context(), false)
	assert.ErrorContains(t, err, "there are no subscriptions")
	e := n.imports(docs.Map(docs.Topics(3, "v1")...), false)
	assert.Equal(t, 4, e.Added, "and the type of names")
	assert.Regexp(t, "^x-tmshare://[0-9a-f-]+/$", e.SP)
	assert.Equal(t, local.Edit{SP: e.SP, Updated: 1}, *n.imports(docs.Map(docs.Topics(1, "v2")...), false), "others stay")
	assert.Equal(t, local.Edit{SP: e.SP}, *n.imports(docs.Map(docs.Topics(1, "v2")...), false), "nothing changes")
	n.has(e.SP, docs.Map(append(docs.Topics(1, "v2"), docs.Topics(3, "v1")[1:]...)...))
	assert.Equal(t, 2, n.imports(docs.Map(docs.Topics(1, "v2")...), true).Deleted)
	n.has(e.SP, docs.Map(docs.Topics(1, "v2")...))

	_, err = n.Import(t.Context(), "", false, losses.Limit{}, docs.Reading(t, "<topicMap"))
	assert.Error(t, err)
	n.has(e.SP, docs.Map(docs.Topics(1, "v2")...))
	last := store.Activity{}
	require.NoError(t, n.db.Activity(t.Context(), func(a store.Activity) bool { last = a; return false }))
	assert.Equal(t, store.ActivityEdited, last.Kind)
}

// A revoked statement leaves no topics, unless others refer to them.
func TestEditsCanBeTakenBack(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	sp := n.prefix()
	n.edits("a", func(tm *tmdm.TopicMap, a *tmdm.Topic) {
		a.AddName("A", nil)
		assoc := tm.CreateAssociation(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(docs.SI("near"))))
		assoc.AddRole(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(docs.SI("from"))), a)
		assoc.AddRole(tm.CreateTopicBySubjectIdentifier(tmdm.Locator(docs.SI("to"))), tm.CreateTopicBySubjectIdentifier(tmdm.Locator(docs.SI("b"))))
	})
	n.has(sp, docs.Map(docs.Topic("a", "A"), docs.Link("near", "a", "b")))
	n.edits("b", func(_ *tmdm.TopicMap, b *tmdm.Topic) { b.AddName("B", nil) })
	n.has(sp, docs.Map(docs.Topic("a", "A"), docs.Topic("b", "B"), docs.Link("near", "a", "b")))

	_, err := n.RemoveTopic(t.Context(), docs.SI("near"))
	assert.ErrorAs(t, err, new(*fragment.InUseError))
	e, err := n.RemoveTopic(t.Context(), docs.SI("a"))
	require.NoError(t, err)
	assert.Equal(t, 4, e.Deleted, "it, and the types and roles that nothing refers to any more")
	_, err = n.RemoveTopic(t.Context(), docs.SI("a"))
	assert.ErrorContains(t, err, "there are no local statements about")
	n.edits("b", func(_ *tmdm.TopicMap, b *tmdm.Topic) { b.Names()[0].Remove() })
	v, err := n.merged().Topic(t.Context(), docs.SI("b"), false)
	assert.Error(t, err, "%v", v)

	e = n.edits("c", func(*tmdm.TopicMap, *tmdm.Topic) {})
	assert.Zero(t, e.Added, "nothing was said")
}

// A document that cannot be read leaves no rows, and the prefix can be chosen until there are statements.
func TestPrefixOfLocalStatementsCanBeChosenAsLongAsThereAreNone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	_, err := n.Import(t.Context(), "", false, losses.Limit{}, docs.Reading(t, "<topicMap"))
	require.Error(t, err)
	all, err := n.db.Collections(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	made := n.prefix()
	e, err := n.Import(t.Context(), localSP, false, losses.Limit{}, docs.Reading(t, docs.Map(docs.Topic("a", "A"))))
	require.NoError(t, err)
	assert.Equal(t, localSP, e.SP)
	assert.NotEqual(t, made, localSP)
	n.imports(docs.Map(), true)
	_, err = n.Ensure(t.Context(), made)
	assert.NoError(t, err, "there are none any more")
}

// Another collection that has the name is no reason to try for ever.
func TestTheNameOfLocalStatementsIsTaken(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for _, c := range []store.Collection{{Name: "egov", SP: "http://egov.example.org/"}, {Name: local.Name, SP: "http://local.example.org/", DerivedFrom: []string{"egov"}}} {
		_, err := n.db.CreateCollection(t.Context(), c, &merge.Memory{}, nil)
		require.NoError(t, err)
	}
	_, err := n.EditTopic(t.Context(), docs.SI("a"), "", func(*tmdm.TopicMap, *tmdm.Topic) error { return nil })
	require.ErrorContains(t, err, `the name "local" is taken by a collection that cannot be written`)
}

// A statement that XTM cannot express is rejected: local statements could no longer be exported.
func TestStatementsThatXTMCannotCarryAreRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	refused := 0
	for _, v := range testhostile.Values {
		e, err := n.EditTopic(t.Context(), docs.SI("a"), "", func(tm *tmdm.TopicMap, topic *tmdm.Topic) error {
			topic.AddOccurrence(v.Value, v.Datatype, tm.CreateTopicBySubjectIdentifier("x:type"))
			return nil
		})
		if err != nil {
			assert.Less(t, len(err.Error()), 9000)
			refused++
		} else {
			require.Positive(t, e.Added+e.Updated)
		}
	}
	require.Positive(t, refused)
	tm, _, err := n.merged().Map(t.Context(), false, local.Name)
	require.NoError(t, err)
	topic := tm.TopicBySubjectIdentifier(tmdm.Locator(docs.SI("a")))
	require.Len(t, topic.Occurrences(), len(testhostile.Values)-refused)
	var doc bytes.Buffer
	_, err = xtm.Write(&doc, tm, xtm.WriteOptions{Base: localSP})
	require.NoError(t, err)
	again, err := xtm.Read(t.Context(), &doc, xtm.Options{Base: localSP})
	require.NoError(t, err)
	require.Equal(t, docs.Canonical(t, tm, localSP), docs.Canonical(t, again, localSP))
}
