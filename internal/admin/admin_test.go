package admin_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/admin"
	"github.com/tmshare/tmshare/internal/ext"
	"github.com/tmshare/tmshare/internal/kv/badger"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
)

const token = "a-token-of-the-test"

// serve starts a server below a path, under an address that is not its public one, and returns a client for it.
func serve(t *testing.T) (*admin.Client, *server.Server, string) {
	db, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Badger: badger.Small})
	require.NoError(t, err)
	s, err := server.New(server.Config{
		Parts: ext.Parts(),
		Store: db, BaseURL: "https://maps.example.org/public", Tokens: []string{token}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	h := httptest.NewServer(http.StripPrefix("/inside", s))
	t.Cleanup(func() {
		h.Close()
		s.Close()
		require.NoError(t, db.Close())
	})
	c, err := admin.New(h.URL+"/inside/", token)
	require.NoError(t, err)
	return c, s, h.URL + "/inside"
}

// xtm21 returns an XTM document with these topics.
func xtm21(topics string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + topics + `</topicMap>`
}

func named(si, name string) string {
	return `<topic><subjectIdentifier href="` + si + `"/><name><value>` + name + `</value></name></topic>`
}

func doc(text string) *admin.Document {
	return admin.XTM(strings.NewReader(text), int64(len(text)))
}

const a, b = "http://psi.example.org/a", "http://psi.example.org/b"

func TestImportCreatesAndPublishes(t *testing.T) {
	c, s, _ := serve(t)
	got, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true, Title: "The Map", SP: "http://psi.example.org/map/"}, doc(xtm21(named(a, "A"))))
	require.NoError(t, err)
	assert.True(t, got.Created)
	assert.Equal(t, 2, got.Added, "the topic and the type of names")
	require.NoError(t, s.Store.View(t.Context(), "map", func(v *store.View) error {
		assert.Equal(t, "The Map", v.Title)
		assert.Equal(t, "http://psi.example.org/map/", v.SP)
		return nil
	}))

	got, err = c.Import(t.Context(), admin.Import{Name: "map", Create: true, Summary: "Described", SP: "http://psi.example.org/map/"}, doc(xtm21(named(a, "B"))))
	require.NoError(t, err)
	assert.False(t, got.Created)
	assert.Equal(t, 1, got.Updated)
	require.NoError(t, s.Store.View(t.Context(), "map", func(v *store.View) error {
		assert.Equal(t, "The Map", v.Title, "what is not given stays")
		assert.Equal(t, "Described", v.Summary)
		return nil
	}))

	_, err = c.Import(t.Context(), admin.Import{Name: "map", Create: true, SP: "http://psi.example.org/other/"}, doc(xtm21("")))
	assert.EqualError(t, err, "the source locator prefix of map is http://psi.example.org/map/ for ever; publish the map under another name")
}

func TestImportTakesGzipAndUnknownSizes(t *testing.T) {
	c, _, _ := serve(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, xtm21(named(a, "A")))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	got, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, admin.XTM(&packed, 0))
	require.NoError(t, err)
	assert.Equal(t, 2, got.Topics)
}

func TestImportRemovesTheCollectionOfARefusedDocument(t *testing.T) {
	c, _, _ := serve(t)
	_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, doc("<topicMap>"))
	var refused *admin.Refusal
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, http.StatusUnprocessableEntity, refused.Status)
	all, err := c.Collections(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
}

// meanwhile is a document that calls a function during its upload.
type meanwhile struct {
	io.Reader
	do func()
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.Reader.Read(p)
}

func TestImportKeepsWhatOthersPublishMeanwhile(t *testing.T) {
	c, _, _ := serve(t)
	broken := &meanwhile{strings.NewReader(strings.Repeat(" ", 10_000) + "<topicMap>"), nil}
	d := &admin.Document{Reader: broken}
	broken.do = func() {
		_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, doc(xtm21(named(a, "A"))))
		assert.NoError(t, err)
	}
	_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, d)
	require.ErrorContains(t, err, "The collection map, created for this, is still there: map has changed since")
	all, err := c.Collections(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "2 topics", all[0].Summary)
}

func TestImportRemovesTheCollectionWhenInterrupted(t *testing.T) {
	c, _, _ := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Import(ctx, admin.Import{Name: "map", Create: true}, &admin.Document{Reader: &meanwhile{strings.NewReader(strings.Repeat(" ", 50<<20) + xtm21(named(a, "A"))), cancel}})
	require.ErrorIs(t, err, context.Canceled)
	all, err := c.Collections(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
}

func TestUploadsSayWhatTheyAre(t *testing.T) {
	var got []*http.Request
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r)
		_, _ = io.WriteString(w, "{}")
	}))
	defer h.Close()
	c, err := admin.New(h.URL, "")
	require.NoError(t, err)
	for _, d := range []*admin.Document{doc("<topicMap/>"), admin.XTM(strings.NewReader("\x1F\x8Bpacked"), 0)} {
		_, err := c.PutTopics(t.Context(), "map", nil, d, admin.Write{})
		require.NoError(t, err)
	}
	require.Len(t, got, 2)
	assert.Equal(t, "application/xml", got[0].Header.Get("Content-Type"))
	assert.Equal(t, int64(11), got[0].ContentLength)
	assert.Empty(t, got[0].Header.Get("Content-Encoding"))
	assert.Empty(t, got[0].Header.Get("Authorization"))
	assert.Equal(t, int64(-1), got[1].ContentLength)
	assert.Equal(t, "gzip", got[1].Header.Get("Content-Encoding"))
}

func TestIfMatchGuardsEveryWrite(t *testing.T) {
	c, _, _ := serve(t)
	ctx := t.Context()
	_, err := c.Import(ctx, admin.Import{Name: "map", Create: true}, doc(xtm21(named(a, "A"))))
	require.NoError(t, err)
	tag, err := c.ETag(ctx, "map")
	require.NoError(t, err)
	old := admin.Write{IfMatch: tag}
	_, err = c.Import(ctx, admin.Import{Name: "map", Write: admin.Write{IfMatch: strings.Trim(tag, `"`)}}, doc(xtm21(named(a, "B"))))
	require.NoError(t, err, "without the quotes as well")

	writes := map[string]func() error{
		"import": func() error {
			_, err := c.Import(ctx, admin.Import{Name: "map", Write: old}, doc(xtm21("")))
			return err
		},
		"import to a new collection": func() error {
			_, err := c.Import(ctx, admin.Import{Name: "new", Create: true, Write: old}, doc(xtm21("")))
			return err
		},
		"put topics":   func() error { _, err := c.PutTopics(ctx, "map", nil, doc(xtm21(named(b, "B"))), old); return err },
		"delete topic": func() error { _, err := c.DeleteTopic(ctx, "map", a, old); return err },
		"settings":     func() error { _, _, err := c.Put(ctx, "map", admin.Change{"title": "x"}, tag); return err },
		"delete":       func() error { _, err := c.Delete(ctx, "map", admin.Write{IfMatch: tag}); return err },
	}
	for name, write := range writes {
		var refused *admin.Refusal
		if assert.ErrorAs(t, write(), &refused, name) {
			assert.Equal(t, http.StatusPreconditionFailed, refused.Status, name)
		}
	}
}

// The server's links lead to its public address, which cannot be reached here.
func TestEverythingGoesToTheAddressGiven(t *testing.T) {
	c, s, _ := serve(t)
	ctx := t.Context()
	_, created, err := c.Put(ctx, "map", admin.Change{"documentSize": 1, "keepEntries": 1}, "")
	require.NoError(t, err)
	assert.True(t, created)
	_, err = c.Import(ctx, admin.Import{Name: "map", Create: true}, doc(xtm21(named(a, "A"))))
	require.NoError(t, err)

	p, err := c.PutTopics(ctx, "map", nil, doc(xtm21(named(b, "B"))), admin.Write{})
	require.NoError(t, err)
	assert.Equal(t, 1, p.Added)
	var fragment bytes.Buffer
	require.NoError(t, c.Topic(ctx, "map", b, admin.TopicForm{Extension: ".xtm21"}, &fragment))
	assert.Contains(t, fragment.String(), "<value>B</value>")
	assert.Contains(t, fragment.String(), `version="2.1"`)
	p, err = c.DeleteTopic(ctx, "map", b, admin.Write{})
	require.NoError(t, err)
	assert.Equal(t, 1, p.Deleted)

	all, err := c.Collections(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, "map", all[0].Name)
	assert.Equal(t, "https://maps.example.org/public/topicmaps/map", all[0].Address)
	assert.Equal(t, p.LastChange, all[0].Updated)

	snap, taken, err := c.TakeSnapshot(ctx, "map")
	require.NoError(t, err)
	assert.True(t, taken)
	assert.Equal(t, p.LastChange, snap.Updated)
	_, taken, err = c.TakeSnapshot(ctx, "map")
	require.NoError(t, err)
	assert.False(t, taken)

	pruned, err := c.Prune(ctx, "map", false)
	require.NoError(t, err)
	assert.Equal(t, "map", pruned.Collection)
	require.NoError(t, s.Store.View(ctx, "map", func(v *store.View) error {
		assert.Equal(t, v.Head-1, v.Horizon)
		return nil
	}))

	gone, err := c.Delete(ctx, "map", admin.Write{})
	require.NoError(t, err)
	assert.Equal(t, 2, gone.Deleted)
}

func TestSubjectIdentifiersAreEncoded(t *testing.T) {
	c, _, _ := serve(t)
	const si = "http://psi.example.org/a?b=c&d=%20+#e"
	_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, doc(xtm21(named("http://psi.example.org/a?b=c&amp;d=%20+#e", "A"))))
	require.NoError(t, err)
	_, err = c.PutTopics(t.Context(), "map", []string{si}, doc(xtm21(`<topic><subjectIdentifier href="http://psi.example.org/a?b=c&amp;d=%20+#e"/></topic>`)), admin.Write{})
	require.NoError(t, err)
	_, err = c.DeleteTopic(t.Context(), "map", si, admin.Write{})
	require.NoError(t, err)
}

func TestRefusalsAreAsTheServerSaysThem(t *testing.T) {
	c, _, address := serve(t)
	_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true},
		doc(xtm21(named(a, "A")+`<topic><subjectIdentifier href="`+b+`"/><name><type><subjectIdentifierRef href="`+a+`"/></type><value>B</value></name></topic>`)))
	require.NoError(t, err)
	_, err = c.DeleteTopic(t.Context(), "map", a, admin.Write{})
	var refused *admin.Refusal
	require.ErrorAs(t, err, &refused)
	assert.Regexp(t, `^the topic `+a+` still types, scopes or reifies something \(request [0-9a-f]+\)\n  statements of "B"$`, err.Error())

	stranger, err := admin.New(address, "")
	require.NoError(t, err)
	_, err = stranger.Delete(t.Context(), "map", admin.Write{})
	assert.ErrorContains(t, err, "writing needs a token")
}

func TestForeignAnswersAreNotShown(t *testing.T) {
	answers := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a proxy's error": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("X-Request-Id", "7")
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "<h1>\x1b[31mSorry</h1>")
		}, "URL answers 502 Bad Gateway (request 7)"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://maps.example.org/topicmaps/map", http.StatusMovedPermanently)
		}, "URL answers 301 Moved Permanently, leading to https://maps.example.org/topicmaps/map; give the server's address as it is there"},
		"another kind of JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"detail":"of something else"}`)
		}, "URL answers 403 Forbidden"},
		"something else": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<html>")
		}, "URL/topicmaps/map answers what is not this server's: invalid character '<' looking for beginning of value; check the address (--server)"},
	}
	for name, c := range answers {
		h := httptest.NewServer(c.answer)
		client, err := admin.New(h.URL, token)
		require.NoError(t, err)
		_, err = client.Delete(t.Context(), "map", admin.Write{})
		assert.EqualError(t, err, strings.ReplaceAll(c.want, "URL", h.URL), name)
		_, err = client.Collections(t.Context())
		assert.Error(t, err, name)
		_, err = client.DeleteTopic(t.Context(), "map", a, admin.Write{})
		assert.Error(t, err, name)
		h.Close()
	}
}

func TestAddressesMakeSense(t *testing.T) {
	for _, address := range []string{"", "127.0.0.1:8080", "ftp://example.org", "http://", "http://example.org/?x", "http://example.org/#x", "http://a b/"} {
		_, err := admin.New(address, "")
		assert.Error(t, err, address)
	}
}

// A password in the address is in no message.
func TestMessagesShowNoPassword(t *testing.T) {
	address, err := testenv.FreeAddress()
	require.NoError(t, err)
	c, err := admin.New("http://me:secret@"+address, "")
	require.NoError(t, err)
	_, err = c.Collections(t.Context())
	require.ErrorContains(t, err, "no answer from http://me:xxxxx@"+address)
	require.NotContains(t, err.Error(), "secret")
}

// A server that stops reading a long document and answers must be heard.
func TestRefusalsOfLongDocumentsArrive(t *testing.T) {
	c, _, _ := serve(t)
	_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, doc(xtm21("")))
	require.NoError(t, err)
	long := "<nothing>" + strings.Repeat(" ", 20<<20)
	for range testenv.Rounds(5, 20) {
		for _, size := range []int64{int64(len(long)), 0} {
			_, err := c.Import(t.Context(), admin.Import{Name: "map", Create: true}, admin.XTM(strings.NewReader(long), size))
			var refused *admin.Refusal
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, http.StatusUnprocessableEntity, refused.Status)
		}
	}
}

// A missing name may be mistyped: a new collection is only created on request.
func TestImportToANameThatIsNotThere(t *testing.T) {
	c, _, _ := serve(t)
	_, err := c.Import(t.Context(), admin.Import{Name: "musik"}, doc(xtm21("")))
	assert.EqualError(t, err, `there is no collection "musik"; the server has no collections yet. To make a new one of that name, add --create`)
	dry, err := c.Import(t.Context(), admin.Import{Name: "music", Create: true, Write: admin.Write{DryRun: true}}, doc(xtm21(named(a, "A"))))
	require.NoError(t, err)
	assert.True(t, dry.DryRun && dry.Created)
	assert.Equal(t, 2, dry.Added)
	_, err = c.Import(t.Context(), admin.Import{Name: "music", Create: true}, doc(xtm21(named(a, "A"))))
	require.NoError(t, err)
	_, err = c.Import(t.Context(), admin.Import{Name: "musik"}, doc(xtm21("")))
	assert.EqualError(t, err, `there is no collection "musik"; there are music. To make a new one of that name, add --create`)
	dry, err = c.Import(t.Context(), admin.Import{Name: "music", Title: "Music", Write: admin.Write{DryRun: true}}, doc(xtm21(named(a, "B"))))
	require.NoError(t, err)
	assert.Equal(t, 1, dry.Updated)
	all, err := c.Collections(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.NotEqual(t, "Music", all[0].Title, "a dry run changes no settings")
}

// A dry run of a first version names topics as the import does, those of a document
// that is merged here too.
func TestDryRunOfAFirstVersionNamesTopicsAsTheImportDoes(t *testing.T) {
	c, s, _ := serve(t)
	sp, err := s.PrefixFor(t.Context(), "new", nil)
	require.NoError(t, err)
	const unnamed = `<topic id="x"/>`
	for given, want := range map[string]string{"": sp, "https://id.example.org/": "https://id.example.org/"} {
		for kind, d := range map[string]*admin.Document{
			"sent":   doc(xtm21(unnamed)),
			"merged": admin.Merged(func(sp string) (*admin.Document, error) { assert.Equal(t, want, sp); return doc(xtm21(unnamed)), nil }),
		} {
			dry, err := c.Import(t.Context(), admin.Import{Name: "new", SP: given, Create: true, Write: admin.Write{DryRun: true}}, d)
			require.NoError(t, err, kind)
			require.Len(t, dry.Changes, 1, kind)
			assert.Equal(t, want+"topic/x", dry.Changes[0].TopicSI, kind)
		}
	}
	_, err = c.Import(t.Context(), admin.Import{Name: "new", SP: "map", Create: true, Write: admin.Write{DryRun: true}}, doc(xtm21(unnamed)))
	assert.ErrorContains(t, err, "source locator prefix", "as the import refuses it")
}
