package client_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv"
	"github.com/tmshare/tmshare/internal/kv/memory"
	"github.com/tmshare/tmshare/internal/statedigest"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/store/keys"
	"github.com/tmshare/tmshare/internal/store/storetest"
	"github.com/tmshare/tmshare/internal/store/txn"
	"github.com/tmshare/tmshare/internal/testenv"
)

// manyKinds is a document with each kind of row: topics with further identifiers, rows of associations with the record
// and with the name of the player that has it, reified statements.
func manyKinds() string {
	ref := func(id string) string { return fmt.Sprintf(`<subjectIdentifierRef href=%q/>`, si(id)) }
	typed := func(id string) string { return "<type>" + ref(id) + "</type>" }
	reifier := func(id string) string { return "<reifier>" + ref(id) + "</reifier>" }
	all := []string{vocabulary, topic("note", "note"), topic("crowd", "crowd"), topic("kind", "kind")}
	crowd := ""
	for i := range 24 {
		id := fmt.Sprintf("t%d", i)
		t := fmt.Sprintf(`<topic><subjectIdentifier href=%q/>`, si(id))
		if i%3 == 0 {
			t += fmt.Sprintf(`<subjectIdentifier href=%q/><subjectLocator href="http://example.org/at/%d"/>`, si("also-"+id), i)
		}
		if i%2 == 0 {
			t += "<instanceOf>" + ref("kind") + "</instanceOf>"
		}
		t += fmt.Sprintf(`<name>%s<value>Topic %d</value><variant><scope>%s</scope><resourceData>variant %d</resourceData></variant></name>`,
			map[bool]string{true: reifier(fmt.Sprintf("r%d", i))}[i%4 == 0], i, ref("note"), i)
		t += fmt.Sprintf(`<occurrence>%s<resourceData>%s</resourceData></occurrence></topic>`, typed("note"), strings.Repeat("x", 7*i))
		all = append(all, t, link("near", id, fmt.Sprintf("t%d", (i+5)%24)))
		if i%4 == 0 {
			all = append(all, topic(fmt.Sprintf("r%d", i), "reifier"))
		}
		if i < 6 {
			crowd += "<role>" + typed("from") + ref(id) + "</role>"
		}
	}
	all = append(all, topic("rc", "reifier of an association"), "<association>"+reifier("rc")+typed("crowd")+crowd+"</association>")
	three := ""
	for _, id := range []string{"t7", "t8", "t9"} {
		three += "<role>" + typed("to") + ref(id) + "</role>"
	}
	return doc(append(all, "<association>"+typed("crowd")+three+"</association>")...)
}

// heldRows are the rows of a subscriber in step, and the source to which its records belong.
type heldRows struct {
	o      *origin
	dir    string
	all    []kv.Row
	source keys.Source
}

// holding returns the rows of a subscriber of a document that serves a replica, so that its number of topics is checked
// as well.
func holding(t *testing.T, document string) *heldRows {
	o := publishing(t, document)
	engine := memory.New()
	h := &heldRows{o: o, dir: t.TempDir()}
	db, c := h.open(t, engine)
	_, err := c.Subscribe(t.Context(), o.URL+"/topicmaps/egov", client.SubscribeOptions{Replicate: true})
	require.NoError(t, err)
	r, err := c.Sync(t.Context(), "egov")
	require.NoError(t, err)
	require.True(t, r.Proven)
	subscriptions, err := db.Subscriptions(t.Context())
	require.NoError(t, err)
	h.source = subscriptions[0].Source(subscriptions[0].State)
	h.all = rowsIn(t, engine)
	require.NoError(t, db.Close())
	return h
}

// asserting is the common interface of *testing.T and *rapid.T.
type asserting interface {
	require.TestingT
	Context() context.Context
}

func (h *heldRows) open(t asserting, engine kv.Engine, change ...func(*client.Config)) (*store.DB, *client.Client) {
	db, err := store.Open(t.Context(), store.Options{Dir: h.dir, Engine: engine, Logger: silent, Indexes: []txn.Index{storetest.Index}})
	require.NoError(t, err)
	config := client.Config{Protocols: ext.Protocols(), Store: db, Logger: silent, Backoff: time.Millisecond}
	for _, f := range change {
		f(&config)
	}
	c, err := client.New(config)
	require.NoError(t, err)
	return db, c
}

// findings returns the findings of a check of a database.
func findings(t asserting, db *store.DB) (found []store.Finding) {
	require.NoError(t, db.Check(t.Context(), false, func(f store.Finding) { found = append(found, f) }, func(string) {}))
	return found
}

func rowsIn(t asserting, engine kv.Engine) (all []kv.Row) {
	reader, err := engine.Snapshot(t.Context())
	require.NoError(t, err)
	defer reader.Close()
	for r, err := range reader.Range(nil, nil, false) {
		require.NoError(t, err)
		all = append(all, kv.Row{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)})
	}
	return all
}

// engine returns an engine with some rows.
func engineOf(t asserting, rows []kv.Row) kv.Engine {
	e := memory.New()
	w, err := e.Bulk(t.Context())
	require.NoError(t, err)
	for _, r := range rows {
		require.NoError(t, w.Put(r.Key, r.Value))
	}
	require.NoError(t, w.Commit())
	return e
}

// table returns the rows of a table of the source.
func (h *heldRows) table(table byte) (all []kv.Row) {
	for _, r := range h.all {
		if bytes.HasPrefix(r.Key, h.source.Key(table)) {
			all = append(all, r)
		}
	}
	return all
}

// records returns all rows of the source in a database, without the number of the generation. It omits the old values
// of rows, because a repair is a commit of its own.
func records(t asserting, rows []kv.Row) map[string]string {
	all := map[string]string{}
	for _, r := range rows {
		switch table := keys.Table(r.Key); {
		case table == keys.TableBefore, table == keys.TableChanged:
		case strings.IndexByte(keys.SourceTables, table) >= 0:
			all[string(r.Key[keys.SourceSize-1:])] = string(r.Value)
		}
	}
	return all
}

// flip returns bytes of which one bit is another one.
func flip(t *rapid.T, b []byte, from int) []byte {
	at := rapid.IntRange(8*from, 8*len(b)-1).Draw(t, "bit")
	b = bytes.Clone(b)
	b[at/8] ^= 1 << (at % 8)
	return b
}

// damaged is a row that is damaged.
type damagedRow struct {
	was   kv.Row
	about []string // one of these topics must be named; none if the row belongs to no topic
	shows bool     // verify detects it, because not only item identifiers are damaged
}

// damage returns rows with one damage more.
func (h *heldRows) damage(t *rapid.T, rows []kv.Row) ([]kv.Row, *damagedRow) {
	prefix := h.source.Key(rapid.SampledFrom([]byte("tttttaaaaailnrpp")).Draw(t, "table"))
	all := slices.DeleteFunc(slices.Clone(rows), func(r kv.Row) bool { return !bytes.HasPrefix(r.Key, prefix) })
	if len(all) == 0 {
		t.Skip("no such row is left")
	}
	d := &damagedRow{was: rapid.SampledFrom(all).Draw(t, "row"), shows: true}
	became := d.was
	how := rapid.SampledFrom([]string{"value", "value", "value", "value", "key", "lost", "more"}).Draw(t, "damage")
	if how == "value" && len(d.was.Value) == 0 {
		how = "key"
	}
	switch how {
	case "value":
		became.Value = flip(t, d.was.Value, 0)
		d.shows = !sameContent(d.was, became)
	case "key", "more":
		if len(d.was.Key) == keys.SourceSize {
			t.Skip("the root of the tree has no key")
		}
		became.Key = flip(t, d.was.Key, keys.SourceSize)
	}
	if how != "more" {
		d.about = topicsOf(d.was)
		rows = slices.DeleteFunc(slices.Clone(rows), func(r kv.Row) bool { return bytes.Equal(r.Key, d.was.Key) })
	}
	if how == "lost" {
		return rows, d
	}
	if slices.ContainsFunc(rows, func(r kv.Row) bool { return bytes.Equal(r.Key, became.Key) }) {
		t.Skip("another row is there")
	}
	return append(rows, became), d
}

// sameContent reports whether the content of a record is unchanged: item identifiers are no content.
func sameContent(was, is kv.Row) bool {
	switch keys.Table(was.Key) {
	case keys.TableTopic:
		before, err := fragment.UnmarshalTopic(was.Value)
		after, failed := fragment.UnmarshalTopic(is.Value)
		return err == nil && failed == nil && bytes.Equal(fragment.MarshalTopic(after), is.Value) && fragment.SameTopic(before, after)
	case keys.TableAssociation:
		if was.Value[0] != 0 || is.Value[0] != 0 {
			return false
		}
		before, err := fragment.UnmarshalAssociation(was.Value[1:])
		after, failed := fragment.UnmarshalAssociation(is.Value[1:])
		return err == nil && failed == nil && fragment.SameAssociation(before, after)
	}
	return false
}

// topicsOf returns the topics to which a row belongs: one of an association to the player, and to the owner of the
// record.
func topicsOf(r kv.Row) []string {
	rest := r.Key[keys.SourceSize:]
	player := func(rest []byte) string { before, _, _ := bytes.Cut(rest, []byte{0}); return string(before) }
	switch keys.Table(r.Key) {
	case keys.TableTopic, keys.TableMentions:
		return []string{string(rest)}
	case keys.TableIdentifier, keys.TableLocator:
		return []string{string(r.Value)}
	case keys.TableReified:
		if record, ok := keys.IsReifier(r.Key); ok {
			rest = record
		}
		if rest[0] == keys.TableTopic {
			return []string{string(rest[1:])}
		}
		return []string{player(rest[1:])}
	case keys.TableAssociation:
		if r.Value[0] != 0 {
			return []string{player(rest)}
		}
		if a, err := fragment.UnmarshalAssociation(r.Value[1:]); err == nil {
			return []string{player(rest), string(statedigest.Owner(a))}
		}
	}
	return nil
}

// One damaged bit of any row of a subscriber's records is found, named and repaired, and so is a row that was lost, or
// that is too much.
func TestDamageIsFoundAndRepaired(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	for _, table := range []byte(keys.RecordTables + "rpW") {
		require.NotEmpty(t, h.table(table), "%c", table)
	}
	want := records(t, h.all)
	replaced, cases := 0, 0
	testenv.Check(t, 150, 10_000, func(t *rapid.T) {
		rows, d := h.damage(t, h.all)
		engine := engineOf(t, rows)
		db, c := h.open(t, engine)
		defer db.Close()
		v, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, err)
		require.True(t, v.Equal, "%+v", v)
		require.Empty(t, findings(t, db))
		again, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, err)
		require.True(t, again.Equal)
		require.Zero(t, again.Repaired+again.Mended)
		if !d.shows {
			return
		}
		cases++
		require.Equal(t, want, records(t, rowsIn(t, engine)))
		require.NotZero(t, v.Repaired+v.Mended+len(v.Replaced))
		if v.Replaced != "" {
			replaced++
			return
		}
		if d.about != nil {
			before := named(t, db)
			require.True(t, slices.ContainsFunc(d.about, func(topic string) bool { return slices.Contains(before, topic) }), "%q, not %q", before, d.about)
		}
	})
	t.Logf("%d damages, of which %d took a clean replacement", cases, replaced)
}

// Any combination of damages ends in a correct proven state and a sound store.
func TestMuchDamageIsRepaired(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	want := records(t, h.all)
	replaced := 0
	testenv.Check(t, 40, 2_000, func(t *rapid.T) {
		rows, shows := h.all, true
		for range rapid.IntRange(2, 30).Draw(t, "damages") {
			var d *damagedRow
			rows, d = h.damage(t, rows)
			shows = shows && d.shows
		}
		engine := engineOf(t, rows)
		db, c := h.open(t, engine)
		defer db.Close()
		v, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, err)
		require.True(t, v.Equal, "%+v", v)
		require.Empty(t, findings(t, db))
		if shows {
			require.Equal(t, want, records(t, rowsIn(t, engine)))
		}
		if v.Replaced != "" {
			replaced++
		}
	})
	t.Logf("%d clean replacements", replaced)
}

// A damaged record may have an identifier of another topic, which has it again in the end.
func TestDamageThatClaimsAnIdentifierOfAnotherTopic(t *testing.T) {
	t.Parallel()
	h := holding(t, manyKinds())
	for _, claimed := range []string{"also-t9", "t9", "also-t0", "t4"} {
		rows := slices.Clone(h.all)
		for i, r := range rows {
			if bytes.Equal(r.Key, h.source.LocatorKey(keys.TableTopic, "http://psi.example.org/t3")) {
				topic, err := fragment.UnmarshalTopic(r.Value)
				require.NoError(t, err)
				topic.SubjectIdentifiers[1] = fragment.Ref(si(claimed))
				rows[i].Value = fragment.MarshalTopic(topic)
			}
		}
		engine := engineOf(t, rows)
		db, c := h.open(t, engine)
		v, err := c.Verify(t.Context(), "egov", true)
		require.NoError(t, err)
		require.True(t, v.Equal)
		require.Empty(t, findings(t, db), claimed)
		require.Equal(t, records(t, h.all), records(t, rowsIn(t, engine)))
		require.Empty(t, v.Replaced, claimed)
		require.NoError(t, db.Close())
	}
}

// named returns the topics that the log names as mended and repaired.
func named(t asserting, db *store.DB) (topics []string) {
	require.NoError(t, db.Activity(t.Context(), func(a store.Activity) bool {
		if a.Kind == store.ActivityMended || a.Kind == store.ActivityRepaired {
			for _, e := range a.Entries {
				topics = append(topics, e.TopicSI)
			}
		}
		return true
	}))
	return topics
}
