package server_test

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/server/problems"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
	maps "github.com/tmshare/tmshare/testdata/xtm"
	"github.com/tmshare/tmshare/xtm"
)

const maxBody = 300_000

// flip returns data with the byte at i changed.
func flip(data []byte, i int) []byte {
	data = bytes.Clone(data)
	data[i] ^= 0xFF
	return data
}

// uncompressed makes a gzip file that is as large as its content.
func uncompressed(t testing.TB, data []byte) []byte {
	t.Helper()
	z := served.Gzipped(t, nil)
	header := z[:10]
	var b bytes.Buffer
	b.Write(header)
	f, err := flate.NewWriter(&b, flate.NoCompression)
	require.NoError(t, err)
	_, err = f.Write(data)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b.Bytes() // without a checksum
}

func TestBadInputIsAnsweredAndChangesNothing(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(4), func(c *server.Config) { c.MaxBody, c.Limits = maxBody, xtm.Limits{Depth: 100} })
	n.Publish("small", served.Small())
	before := n.State("small")
	zipped := served.Gzipped(t, maps.EGov)
	long := strings.Repeat("a", 9000)
	for name, c := range map[string]struct {
		body   []byte
		status int
		says   []string
	}{
		"empty":                             {nil, 422, []string{":1:1:", "empty"}},
		"white space":                       {[]byte("\n\n "), 422, []string{":3:"}},
		"HTML":                              {[]byte("<!DOCTYPE html>\n<html><body>404</body></html>"), 422, []string{"root element is <html>"}},
		"JSON":                              {[]byte(`{"topicMap": []}`), 422, []string{":1:1:", "begins with a tag"}},
		"another XML document":              {[]byte("<rss version='2.0'><channel/></rss>"), 422, []string{"root element is <rss>"}},
		"a topic map of no known namespace": {[]byte("<topicMap/>"), 422, []string{"namespace"}},
		"not well-formed":                   {served.TopicMap("<topic id='x'>\n  </topik>"), 422, []string{":4:", "topik"}},
		"bytes":                             {[]byte{0, 1, 2, 3}, 422, []string{":1:"}},
		"another encoding":                  {[]byte("<?xml version='1.0' encoding='x-martian'?><topicMap/>"), 422, []string{"x-martian"}},
		"bytes that are not UTF-8":          {served.TopicMap("<topic id='x'><baseName><baseNameString>\xFF</baseNameString></baseName></topic>"), 422, []string{":3:"}},
		"half of a map":                     {maps.EGov[:len(maps.EGov)/2], 422, []string{"the document ends"}},
		"element out of place":              {served.TopicMap("<topic id='x'>\n<member/></topic>"), 422, []string{":4:1:", "member"}},
		"topic without id":                  {served.TopicMap("<topic/>"), 422, []string{":3:1:", "id"}},
		"mergeMap":                          {served.TopicMap(`<mergeMap xlink:href="http://127.0.0.1/other.xtm"/>`), 422, []string{":3:1:", "mergeMap"}},
		"deep nesting":                      {served.TopicMap("<topic id='x'>" + strings.Repeat("<variant>", 20_000)), 422, []string{":3:"}},
		"deep nesting of others":            {[]byte(strings.Repeat("<a>", 90_000)), 422, []string{":1:301:"}},
		"external entity":                   {[]byte(`<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>`), 422, []string{":1:"}},
		"entities that multiply":            {[]byte(`<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><a>&b;</a>`), 422, []string{":1:"}},
		"type of a name":                    {served.TopicMap(`<topic id="x"><baseName>`, `<instanceOf><topicRef xlink:href="#x"/></instanceOf><baseNameString>n</baseNameString></baseName></topic>`), 422, []string{":4:1:", "instanceOf", "lenient reading"}},
		"locator too long":                  {served.TopicMap(served.Identified("x", []string{"http://x/" + long}, "x")), 422, []string{"9009 bytes", "8192"}},
		"identifier not absolute":           {served.TopicMap(served.Identified("x", []string{"//"}, "x"), `<topic id="y"><subjectIdentity><subjectIndicatorRef xlink:href="&#x1;"/></subjectIdentity></topic>`), 422, []string{":4:"}},
		"over the limit":                    {append(bytes.Clone(maps.EGov), bytes.Repeat([]byte(" "), maxBody)...), 413, []string{"300000 bytes"}},
		"over the limit, one byte":          {served.TopicMap("<!--" + strings.Repeat("a", maxBody-len(served.TopicMap("<!---->"))+1) + "-->"), 413, []string{"300000 bytes"}},
		"over the limit, broken":            {[]byte("<topicMap " + strings.Repeat(" ", maxBody)), 413, []string{"300000 bytes"}},
		"gzip bomb":                         {served.Gzipped(t, served.TopicMap("<!--"+strings.Repeat("a", 50<<20)+"-->")), 413, []string{"300000 bytes"}},
		"gzip bomb after the map":           {served.Gzipped(t, append(served.TopicMap(), bytes.Repeat([]byte(" "), 50<<20)...)), 413, []string{"300000 bytes"}},
		"gzip larger than the limit":        {uncompressed(t, append(served.TopicMap(), bytes.Repeat([]byte(" "), maxBody)...)), 413, []string{"300000 bytes"}},
		"beginning of gzip":                 {zipped[:2], 400, []string{"gzip"}},
		"header of gzip":                    {zipped[:10], 400, []string{"ends early"}},
		"half of gzip":                      {zipped[:len(zipped)/2], 400, []string{"ends early"}},
		"gzip without its end":              {zipped[:len(zipped)-8], 400, []string{"ends early"}},
		"gzip with a wrong checksum":        {flip(zipped, len(zipped)-6), 400, []string{"checksum"}},
		"gzip with a wrong length":          {flip(zipped, len(zipped)-1), 400, []string{"gzip"}},
		"gzip and more":                     {append(bytes.Clone(zipped), "more"...), 400, []string{"cannot be read"}},
		"gzip of a broken map":              {served.Gzipped(t, served.TopicMap("<topic id='x'>\n  </topik>")), 422, []string{":4:", "topik"}},
		"gzip in gzip":                      {served.Gzipped(t, zipped), 400, []string{"gzipped twice: unpack it once"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := n.Put("small", c.body, "Accept", "text/plain")
			assert.Equal(t, c.status, a.StatusCode, "%.300s", a.Bytes)
			assert.Equal(t, "text/plain; charset=utf-8", a.Header.Get("Content-Type"))
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			for _, s := range c.says {
				assert.Contains(t, string(a.Bytes), s)
			}
			assert.Less(t, len(a.Bytes), 2000)

			var p problems.Problem
			a = n.Put("small", c.body, "Accept", "application/problem+json")
			assert.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
			require.NoError(t, json.Unmarshal(a.Bytes, &p))
			assert.Equal(t, c.status, a.StatusCode)
			var want problems.Problem
			want.Title, want.Status, want.Detail, want.RequestID = http.StatusText(c.status), c.status, p.Detail, a.Header.Get("X-Request-Id")
			assert.Equal(t, want, p)
			for _, s := range c.says {
				assert.Contains(t, p.Detail, s)
			}
			assert.Equal(t, before, n.State("small"), "nothing has changed")
		})
	}
	assert.NotContains(t, n.Logs.String(), "level=ERROR", "the server has not failed")
	p := n.MustPut("small", served.Small())
	assert.Zero(t, p.Added+p.Updated+p.Deleted, "what is stored is whole")
}

func TestBodyOfExactlyTheLimitIsTaken(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.MaxBody = maxBody })
	n.Publish("small", served.Small())
	doc := served.Small("Oslo", "Christiania")
	doc = append(doc, bytes.Repeat([]byte(" "), maxBody-len(doc))...)
	assert.Equal(t, 1, n.MustPut("small", doc).Updated)
	assert.Equal(t, http.StatusRequestEntityTooLarge, n.Put("small", append(doc, ' ')).StatusCode)
	assert.Zero(t, n.MustPut("small", served.Gzipped(t, doc)).Updated)
}

func TestLenientServerTakesTypesOfNames(t *testing.T) {
	t.Parallel()
	n := start(t, func(c *server.Config) { c.Lenient = true })
	n.Publish("small", served.Small())
	doc := served.TopicMap(`<topic id="x"><baseName><instanceOf><topicRef xlink:href="#x"/></instanceOf><baseNameString>n</baseNameString></baseName></topic>`)
	n.MustPut("small", doc)
	assert.Contains(t, string(n.MustGet("/topicmaps/small/snapshots/current.xtm21").Bytes), "<type>")
}

// The server publishes each example document of the project or reports an error, and the feeds remain readable. None
// makes the server fail.
func TestNoDocumentMakesTheServerFail(t *testing.T) {
	testenv.SkipUnderRace(t)
	t.Parallel()
	n := start(t, served.DocumentSize(10_000))
	files, err := filepath.Glob("../../testdata/xtm/*/*/*.xtm")
	require.NoError(t, err)
	require.Greater(t, len(files), 50)
	answers := map[int]int{}
	for i, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		name := fmt.Sprintf("map-%d", i)
		n.Publish(name, served.TopicMap())
		a := n.Put(name, doc)
		answers[a.StatusCode]++
		assert.Contains(t, []int{200, 422}, a.StatusCode, "%s: %s", file, a.Bytes)
		if a.StatusCode == http.StatusOK {
			n.Feed("/topicmaps/" + name + "/fragments")
			assert.Equal(t, n.Expected(name, doc), n.Current(name), file)
			n.MustGet("/topicmaps/" + name + "/snapshots/current.xtm1")
		}
	}
	assert.Greater(t, answers[200], 10)
	assert.Greater(t, answers[422], 30)
	assert.NotContains(t, n.Logs.String(), "level=ERROR")
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("there", served.Small())
	for name, c := range map[string]struct {
		collection store.Collection
		doc        []byte
		says       []string
	}{
		"no name":                   {store.Collection{SP: "http://x/"}, served.Small(), []string{"1 to 64 characters"}},
		"bad name":                  {store.Collection{Name: "../egov", SP: "http://x/"}, served.Small(), []string{`"../egov"`, "letters"}},
		"no prefix":                 {store.Collection{Name: "egov"}, served.Small(), []string{"egov", "absolute IRI"}},
		"relative prefix":           {store.Collection{Name: "egov", SP: "/x/"}, served.Small(), []string{"absolute IRI"}},
		"prefix of others":          {store.Collection{Name: "egov", SP: "http://x/egov"}, served.Small(), []string{`must end in "/" or "#"`}},
		"prefix not in normal form": {store.Collection{Name: "egov", SP: "HTTP://x/"}, served.Small(), []string{`"http://x/"`}},
		"broken document":           {store.Collection{Name: "egov", SP: "http://x/"}, []byte("<topicMap>"), []string{"egov.xtm:1:"}},
		"broken gzip":               {store.Collection{Name: "egov", SP: "http://x/"}, served.Gzipped(t, served.Small())[:220], []string{"egov.xtm", "cannot be read"}},
		"locator too long":          {store.Collection{Name: "egov", SP: "http://x/"}, served.TopicMap(served.Identified("x", []string{"http://x/" + strings.Repeat("a", 9000)}, "")), []string{"egov.xtm", "8192"}},
		"exists":                    {store.Collection{Name: "there", SP: "http://x/"}, served.Small(), []string{`"there"`, "exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := n.Import(context.Background(), c.collection, bytes.NewReader(c.doc), "egov.xtm")
			require.Error(t, err)
			for _, s := range c.says {
				assert.ErrorContains(t, err, s)
			}
			assert.Len(t, n.Feed("/topicmaps").Entries, 1)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := n.Import(ctx, store.Collection{Name: "egov", SP: "http://x/"}, bytes.NewReader(served.Small()), "egov.xtm")
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, n.Feed("/topicmaps").Entries, 1)
	assert.Equal(t, n.Expected("there", served.Small()), n.Current("there"))
}

func TestImportReadsGzippedDocuments(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("small", served.Gzipped(t, served.Small()))
	assert.Equal(t, n.Expected("small", served.Small()), n.Current("small"))
}
