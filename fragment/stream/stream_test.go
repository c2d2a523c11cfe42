package stream_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/fragment/stream"
	"github.com/tmshare/tmshare/internal/testedit"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

const sp = "http://maps.example.org/topicmaps/test/"

// streamed returns the stored forms of the records of a document, in order.
func streamed(document string, o xtm.Options) ([]string, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(document)), nil }
	var list []string
	for r, err := range stream.Snapshot(open, o) {
		if err != nil {
			return nil, err
		}
		list = append(list, stored(r))
	}
	slices.Sort(list)
	return list, nil
}

// read whole returns the same of the map that the document makes.
func readWhole(document string, o xtm.Options) ([]string, error) {
	m, err := fragment.ReadSnapshot(context.Background(), strings.NewReader(document), o)
	if err != nil {
		return nil, err
	}
	var list []string
	for r, err := range fragment.Records(m) {
		if err != nil {
			return nil, err
		}
		list = append(list, stored(r))
	}
	slices.Sort(list)
	return list, nil
}

func stored(r fragment.Record) string {
	if r.Topic != nil {
		return "topic " + string(fragment.MarshalTopic(r.Topic))
	}
	return "association " + string(fragment.MarshalAssociation(r.Association))
}

var asClient = xtm.Options{Base: sp, DropClashes: true}

// streams checks that a document can be streamed, and gives the same records.
func streams(t *testing.T, document string) {
	t.Helper()
	want, err := readWhole(document, asClient)
	require.NoError(t, err)
	got, err := streamed(document, asClient)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// streamsOrRefuses checks that a document gives the same records, or none.
func streamsOrRefuses(t *testing.T, document string) (refused bool) {
	t.Helper()
	got, err := streamed(document, asClient)
	if errors.Is(err, stream.ErrNotStreamable) {
		return true
	}
	want, expected := readWhole(document, asClient)
	if expected != nil {
		require.EqualError(t, err, expected.Error())
		return false
	}
	require.NoError(t, err)
	require.Equal(t, want, got)
	return false
}

// snapshotOf returns the snapshot that a server would make of a map.
func snapshotOf(t *testing.T, m *fragment.Map, version xtm.Version) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, fragment.WriteSnapshot(&b, m, fragment.Form{Version: version, SP: sp}))
	return b.String()
}

func TestSnapshotsStream(t *testing.T) {
	refused10 := 0
	for seed := range uint64(80) {
		start := document21(`<topic id="t1"><subjectIdentifier href="http://a"/><name><value>n</value></name></topic><topic id="t2"/>`)
		tm, err := xtm.Read(t.Context(), strings.NewReader(start), xtm.Options{Base: sp})
		require.NoError(t, err)
		editor := testedit.New(tm, sp, seed)
		for range 60 {
			editor.Edit()
		}
		if seed%3 == 0 { // the vocabulary of typing gets mixed up
			_ = tm.CreateTopicBySubjectIdentifier(tmdm.PSIType).Merge(tm.CreateTopicBySubjectIdentifier(tmdm.PSIInstance))
			tm.Normalize(t.Context())
		}
		m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
		require.NoError(t, err)
		streams(t, snapshotOf(t, m, xtm.V21))
		if streamsOrRefuses(t, snapshotOf(t, m, xtm.V10)) {
			refused10++
		}
	}
	require.Less(t, refused10, 80, "XTM 1.0 never streams")
	require.Positive(t, refused10, "reifiers of XTM 1.0 need the whole document")
}

func TestSnapshotsOfRealMapsStream(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Shared(t, "data"), "*.xtm*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			nothing := func(tmdm.Locator) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(document10())), nil
			}
			tm, err := xtm.Read(t.Context(), strings.NewReader(contentOf(t, file)), xtm.Options{Base: sp, Lenient: true, Loader: nothing})
			require.NoError(t, err)
			m, err := fragment.NameTopics(t.Context(), tm, sp, nil)
			require.NoError(t, err)
			streams(t, snapshotOf(t, m, xtm.V21))
			streamsOrRefuses(t, snapshotOf(t, m, xtm.V10))
			streamsOrRefuses(t, contentOf(t, file))
		})
	}
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		r, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}

func document21(elements ...string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1">` + strings.Join(elements, "\n") + `</topicMap>`
}

func document10(elements ...string) string {
	return `<topicMap xmlns="http://www.topicmaps.org/xtm/1.0/" xmlns:xlink="http://www.w3.org/1999/xlink">` + strings.Join(elements, "\n") + `</topicMap>`
}

func described(si, more string) string {
	return fmt.Sprintf(`<topic><subjectIdentifier href="http://%s"/>%s</topic>`, si, more)
}

func nameOf(value, more string) string {
	return fmt.Sprintf(`<name>%s<value>%s</value></name>`, more, value)
}

func reifiedBy(si string) string {
	return fmt.Sprintf(`<reifier><subjectIdentifierRef href="http://%s"/></reifier>`, si)
}

func linkOf(attrs, typ string, players ...string) string {
	roles := ""
	for _, p := range players {
		roles += fmt.Sprintf(`<role><type><subjectIdentifierRef href="http://r"/></type><subjectIdentifierRef href="http://%s"/></role>`, p)
	}
	return fmt.Sprintf(`<association%s><type><subjectIdentifierRef href="http://%s"/></type>%s</association>`, attrs, typ, roles)
}

// Documents of other servers that can be streamed.
func TestForeignDocumentsThatStream(t *testing.T) {
	for name, document := range map[string]string{
		"empty":                        document21(),
		"two reifiers":                 document21(described("c", nameOf("x", reifiedBy("x"))+nameOf("y", reifiedBy("y")))),
		"references without a topic":   document21(described("a", nameOf("x", `<scope><subjectIdentifierRef href="http://theme"/></scope>`)), linkOf("", "t", "a", "b")),
		"a reference before its topic": document21(linkOf("", "t", "a", "b"), described("a", ""), described("b", "")),
		"types without the vocabulary": document21(described("a", `<instanceOf><subjectIdentifierRef href="http://c"/></instanceOf>`)),
		"local ids that nothing uses":  document21(`<topic id="x"><subjectIdentifier href="http://a"/></topic>`),
		"item identifiers of our own and others": document21(described("a",
			nameOf("x", `<itemIdentity href="`+sp+`1"/><itemIdentity href="http://other/1"/>`))),
		"an association without roles": document10(`<association><instanceOf><subjectIndicatorRef xlink:href="http://t"/></instanceOf><member/></association>`),
		"a reified map":                strings.Replace(document21(described("a", "")), `version="2.1"`, `version="2.1"><reifier><subjectIdentifierRef href="http://a"/></reifier`, 1),
		"two scopes of a name":         document21(described("a", nameOf("x", "")+nameOf("x", `<scope><subjectIdentifierRef href="http://s"/></scope>`))),
		"a theme twice":                document21(described("a", nameOf("x", `<scope><subjectIdentifierRef href="http://s"/><subjectIdentifierRef href="http://s"/></scope>`))),
		"the other order of roles":     document21(linkOf("", "t", "b", "a")),
		"XTM 1.0 by subject identifiers": document10(`<topic id="x"><subjectIdentity><subjectIndicatorRef xlink:href="http://a"/></subjectIdentity>` +
			`<baseName id="n"><baseNameString>x</baseNameString></baseName></topic>`),
	} {
		t.Run(name, func(t *testing.T) { streams(t, document) })
	}
}

// Documents that are refused. Streamed, they would give other records than read
// as a whole.
func TestForeignDocumentsThatDoNotStream(t *testing.T) {
	long := strings.Repeat("x", fragment.MaxLocator)
	for name, document := range map[string]string{
		"a reference by id":                    document21(`<topic id="x"><subjectIdentifier href="http://a"/><instanceOf><topicRef href="#x"/></instanceOf></topic>`),
		"a reference by subject locator":       document21(described("a", `<instanceOf><subjectLocatorRef href="http://b"/></instanceOf>`)),
		"a topic without subject identifier":   document21(`<topic><subjectLocator href="http://a"/></topic>`),
		"two elements of a topic":              document21(described("a", ""), described("a", nameOf("x", ""))),
		"two topics share an identifier":       document21(described("a", `<subjectIdentifier href="http://c"/>`), described("b", `<subjectIdentifier href="http://c"/>`)),
		"an identifier twice":                  document21(described("a", `<subjectIdentifier href="http://a"/>`)),
		"two topics share a subject locator":   document21(described("a", `<subjectLocator href="http://l"/>`), described("b", `<subjectLocator href="http://l"/>`)),
		"an item identifier is a subject's":    document21(described("a", ""), described("b", `<itemIdentity href="http://a"/>`)),
		"two topics share an item identifier":  document21(described("a", `<itemIdentity href="http://i"/>`), described("b", `<itemIdentity href="http://i"/>`)),
		"a reference by a second identifier":   document21(described("a", `<subjectIdentifier href="http://b"/>`), linkOf("", "t", "b")),
		"such a reference before the topic":    document21(linkOf("", "t", "b"), described("a", `<subjectIdentifier href="http://b"/>`)),
		"a second identifier types instances":  document21(described("a", `<subjectIdentifier href="`+string(tmdm.PSIInstance)+`"/>`), described("b", `<instanceOf><subjectIdentifierRef href="http://c"/></instanceOf>`)),
		"equal associations":                   document21(linkOf("", "t", "a", "b"), linkOf("", "t", "b", "a")),
		"equal associations without roles":     document10(strings.Repeat(`<association><instanceOf><subjectIndicatorRef xlink:href="http://t"/></instanceOf><member/></association>`, 2)),
		"equal roles":                          document21(linkOf("", "t", "a", "a")),
		"a type twice":                         document21(described("a", `<instanceOf><subjectIdentifierRef href="http://c"/><subjectIdentifierRef href="http://c"/></instanceOf>`)),
		"equal names":                          document21(described("a", nameOf("x", "")+nameOf("x", ""))),
		"equal occurrences":                    document21(described("a", strings.Repeat(`<occurrence><type><subjectIdentifierRef href="http://o"/></type><resourceData>x</resourceData></occurrence>`, 2))),
		"equal variants":                       document21(described("a", nameOf("x", "")[:len(nameOf("x", ""))-len("</name>")]+strings.Repeat(`<variant><scope><subjectIdentifierRef href="http://s"/></scope><resourceData>v</resourceData></variant>`, 2)+`</name>`)),
		"an item identifier given twice":       document21(described("a", nameOf("x", `<itemIdentity href="`+sp+`1"/>`)+nameOf("y", `<itemIdentity href="`+sp+`1"/>`))),
		"an item identifier of topic and name": document21(described("a", nameOf("x", `<itemIdentity href="`+sp+`1"/>`)), described("b", `<itemIdentity href="`+sp+`1"/>`)),
		"a reifier of two":                     document21(linkOf("", "t", "a"), linkOf("", "t", "b"), described("c", nameOf("x", reifiedBy("x"))+nameOf("y", reifiedBy("x")))),
		"a locator that is too long":           document21(described(long, "")),
		"a reference that is too long":         document21(linkOf("", long, "a")),
		"XTM 1.0 with a reifier": document10(`<topic id="x"><subjectIdentity><subjectIndicatorRef xlink:href="http://a"/></subjectIdentity>`+
			`<baseName id="n"><baseNameString>x</baseNameString></baseName></topic>`,
			`<topic id="y"><subjectIdentity><subjectIndicatorRef xlink:href="http://b"/><subjectIndicatorRef xlink:href="#n"/></subjectIdentity></topic>`),
	} {
		t.Run(name, func(t *testing.T) {
			o := asClient
			o.Limits.Locator = 1 << 20
			_, err := streamed(document, o)
			require.ErrorIs(t, err, stream.ErrNotStreamable)
		})
	}
}

func TestAMergeMapDoesNotStream(t *testing.T) {
	o := asClient
	o.Loader = func(tmdm.Locator) (io.ReadCloser, error) { return nil, errors.New("not to be opened") }
	_, err := streamed(document21(`<mergeMap href="http://m"/>`), o)
	require.ErrorIs(t, err, stream.ErrNotStreamable)
}

// A document that is no XTM gives the same error, streamed or not.
func TestBrokenDocumentsFailAlike(t *testing.T) {
	for _, document := range []string{"", "<html/>", document21(described("a", ""))[:100], document21("<nonsense/>"), document21(described("a", "<name/>"))} {
		_, want := readWhole(document, asClient)
		require.Error(t, want)
		_, err := streamed(document, asClient)
		require.EqualError(t, err, want.Error())
		require.NotErrorIs(t, err, stream.ErrNotStreamable)
	}
}

func TestAStreamCanBeLeft(t *testing.T) {
	document := document21(described("a", ""), linkOf("", "t", "a", "b"), linkOf("", "t", "a", "c"))
	whole, err := streamed(document, asClient)
	require.NoError(t, err)
	require.Len(t, whole, 2+5)
	for n := 1; n <= len(whole); n++ {
		opened, closed, seen := 0, 0, 0
		open := func() (io.ReadCloser, error) {
			opened++
			return closing{strings.NewReader(document), &closed}, nil
		}
		for _, err := range stream.Snapshot(open, asClient) {
			require.NoError(t, err)
			if seen++; seen == n {
				break
			}
		}
		require.Equal(t, n, seen)
		require.Equal(t, opened, closed)
	}
}

type closing struct {
	io.Reader
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}
