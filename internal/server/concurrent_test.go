package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/internal/testenv"
	maps "github.com/tmshare/tmshare/testdata/xtm"
)

// versions returns two versions of a map that differ in many topics: names,
// a topic with its associations, an identifier.
func versions(t testing.TB) [2][]byte {
	t.Helper()
	first := maps.Libraries
	second := bytes.ReplaceAll(first, []byte("<baseNameString>F"), []byte("<baseNameString>New F"))
	second = bytes.ReplaceAll(second, []byte("</baseNameString></baseName>\n  </topic>"), []byte("!</baseNameString></baseName>\n  </topic>"))
	second = bytes.Replace(second, []byte("</topicMap>"), []byte(topic("added", "Added")+association("added", "added", "service")+topic("role-1", "one")+topic("role-2", "two")+"</topicMap>"), 1)
	return [2][]byte{first, second}
}

// seen is what a reader has seen of a collection at one moment.
type seen struct {
	updated string
	content string // as CXTM
	entries int    // in the whole history
}

// Readers see one whole version or the other, and of the feed whole commits.
func TestReadersSeeWholeVersionsWhileOthersArePublished(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(10_000), every(20))
	v := versions(t)
	c := n.publish("libraries", v[0])
	sp := n.sp("libraries")
	content := [2]string{n.expected("libraries", v[0]), n.expected("libraries", v[1])}
	require.NotEqual(t, content[0], content[1])
	states := map[string]seen{feedTime(c): {feedTime(c), content[0], c.Topics}} // by time of the last change

	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var snapshots, documents []seen
	var readers sync.WaitGroup
	fetch := func(url, accept string) (http.Header, []byte, error) {
		req, err := http.NewRequest(http.MethodGet, n.url(url), nil)
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set("Accept", accept)
		res, err := n.http.Do(req)
		if err != nil {
			return nil, nil, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK && err == nil {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
		return res.Header, body, err
	}
	for i := range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				h, body, err := fetch("/topicmaps/libraries/snapshots/current", []string{xtm1Type, xtm21Type}[i%2])
				if !assert.NoError(t, err) {
					return
				}
				s := seen{updated: h.Get("TMShare-Updated"), content: string(body)}
				_, body, err = fetch("/topicmaps/libraries/fragments", atomType)
				if !assert.NoError(t, err) {
					return
				}
				f, err := feeds.Decode(bytes.NewReader(body), "x", feeds.Limits{})
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				snapshots = append(snapshots, s)
				documents = append(documents, seen{updated: feeds.FormatTime(f.Updated), entries: len(f.Entries)})
				mu.Unlock()
			}
		})
	}
	total := c.Topics
	for i := range 12 {
		testenv.Eventually(t, func() bool { // so that readers see several states
			mu.Lock()
			defer mu.Unlock()
			return len(snapshots) > 3*i
		})
		p := n.mustPut("libraries", v[(i+1)%2])
		total += p.Added + p.Updated + p.Deleted
		require.Greater(t, p.Added+p.Updated+p.Deleted, 10)
		states[p.LastChange] = seen{p.LastChange, content[(i+1)%2], total}
	}
	stop()
	readers.Wait()
	require.Greater(t, len(snapshots), 10)
	distinct, read := map[string]bool{}, map[string]string{}
	for _, s := range snapshots {
		distinct[s.updated] = true
		want, ok := states[s.updated]
		require.True(t, ok, "a state of %s, between two commits", s.updated)
		if read[s.content] == "" {
			read[s.content] = canonical(t, []byte(s.content), sp)
		}
		assert.Equal(t, want.content, read[s.content], "the map as of %s", s.updated)
	}
	assert.Greater(t, len(distinct), 2, "readers have seen several states")
	for _, d := range documents {
		want, ok := states[d.updated]
		require.True(t, ok, "a feed as of %s, between two commits", d.updated)
		assert.Equal(t, want.entries, d.entries, "the feed as of %s", d.updated)
	}
}

// Writers at the same time: each change is published, one after the other.
func TestWritersAtTheSameTimeTakeTurns(t *testing.T) {
	t.Parallel()
	n := start(t, documentSize(4), every(3))
	c := n.publish("small", small())
	var writers sync.WaitGroup
	var mu sync.Mutex
	total := c.Topics
	times := map[string]bool{}
	for i := range 4 {
		writers.Go(func() {
			for j := range 5 {
				p := published(t, n.put("small", small("Oslo", fmt.Sprintf("Oslo %d %d", i, j))))
				mu.Lock()
				total += p.Added + p.Updated + p.Deleted
				times[p.LastChange] = true
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	assert.Len(t, times, 20)
	assert.Equal(t, c.Topics+20, total)
	n.archive("small", 4).check(total)
}
