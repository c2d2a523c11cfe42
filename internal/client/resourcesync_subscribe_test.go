package client_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/server"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/node"
	"github.com/tmshare/tmshare/tmdm"
)

// The collection is found from every address that the server gives.
func TestSubscribeFindsTheSourceFromAnyAddress(t *testing.T) {
	t.Parallel()
	o := publishing(t, doc(topics(5, "v1")...), node.ChangesPerList(2))
	s := recorded(t, o, lists)
	o.Put(doc(topics(5, "v2")...))
	settleChanges(o, 2)
	part := func(document, like string) string {
		found := regexp.MustCompile(regexp.QuoteMeta(o.URL) + `(/[^"<]*` + like + `)`).FindStringSubmatch(o.Get("/topicmaps/egov/resourcesync/" + document))
		require.NotNil(t, found, "%s: %s", document, like)
		return found[1]
	}
	key := "/topics/" + fragment.Key(tmdm.Locator(si("t1")))
	for _, at := range []string{
		"", "/", "/topicmaps/egov", "/topicmaps/egov/fragments", "/topicmaps/egov/records", "/topicmaps/egov/about", "/topicmaps/egov" + key, "/topicmaps/egov" + key + ".xtm21",
		"/.well-known/resourcesync", lists, "/resourcesync/resourcelist.xml", "/resourcesync/resourcedump.xml", "/resourcesync/changelist.xml",
		"/resourcesync/changelist-open.xml", "/resourcesync/changelist-index.xml", "/resourcesync/changedump.xml",
		part("changelist-index.xml", "-1.xml"), part("changedump.xml", "-manifest.xml"), part("resourcedump.xml", "-manifest.xml"),
	} {
		t.Run(at, func(t *testing.T) {
			ref := o.URL + at
			if strings.HasPrefix(at, "/resourcesync/") {
				ref = o.RecordsURL("egov", at)
			}
			for _, sp := range []string{"", o.SP("egov")} {
				sub, err := s.Subscribe(context.Background(), ref, client.SubscribeOptions{Protocol: "resourcesync", SP: sp, Name: "x", Again: true})
				require.NoError(t, err)
				assert.Equal(t, []string{o.RecordsURL("egov", lists), o.SP("egov")}, []string{sub.FragmentsFeed, sub.SP})
				assert.Equal(t, store.Protocol("resourcesync"), sub.Protocol)
				require.NoError(t, s.Unsubscribe(context.Background(), "x"))
			}
		})
	}

	t.Run("the protocol is told by the URL", func(t *testing.T) {
		sub, err := newSubscriber(t).Subscribe(context.Background(), o.RecordsURL("egov", "/resourcesync/changelist.xml"), client.SubscribeOptions{})
		require.NoError(t, err)
		assert.Equal(t, []string{"egov", o.RecordsURL("egov", lists)}, []string{sub.Name, sub.FragmentsFeed})
		assert.Equal(t, "resourcesync", client.ProtocolOf(sub))
	})
	t.Run("another prefix than the declared one", func(t *testing.T) {
		s := newSubscriber(t)
		_, err := s.Subscribe(context.Background(), o.RecordsURL("egov", lists), client.SubscribeOptions{SP: "http://psi.example.org/"})
		assert.ErrorContains(t, err, "its ServerSrcLocatorPrefix is "+o.SP("egov"))
		_, err = s.Subscription(s.t.Context(), "egov")
		assert.Error(t, err, "nothing was subscribed to")
	})
	t.Run("several collections", func(t *testing.T) {
		o.Create("libraries", doc(topic("a", "A")))
		for _, at := range []string{"", "/topicmaps", "/about", "/.well-known/resourcesync"} {
			s := newSubscriber(t)
			_, err := s.Subscribe(context.Background(), o.URL+at, client.SubscribeOptions{Protocol: "resourcesync"})
			var choice *follow.ChoiceError
			require.ErrorAs(t, err, &choice, at)
			assert.Equal(t, follow.ChoiceError{URL: o.URL + at, Collections: []follow.Offer{
				{Title: "egov", URL: o.RecordsURL("egov", lists)}, {Title: "libraries", URL: o.RecordsURL("libraries", lists)},
			}}, *choice)
			assert.ErrorContains(t, err, "offers 2 collections")
			for _, c := range choice.Collections {
				sub, err := s.Subscribe(context.Background(), c.URL, client.SubscribeOptions{})
				require.NoError(t, err)
				assert.Equal(t, c.Title, sub.Name)
				_, err = s.Sync(context.Background(), sub.Name)
				require.NoError(t, err)
			}
		}
		sub, err := newSubscriber(t).Subscribe(context.Background(), o.URL+"/topicmaps/egov"+key, client.SubscribeOptions{Protocol: "resourcesync"})
		require.NoError(t, err, "a topic leads to its own collection")
		assert.Equal(t, "egov", sub.Name)
	})
}

// The message for an address without a source names the documents that were tried.
func TestSubscribeToWhatIsNoSource(t *testing.T) {
	t.Parallel()
	empty := newOrigin(t)
	off := publishing(t, doc(topic("a", "A")))
	require.Equal(t, http.StatusOK, off.Ask(http.MethodPut, "/topicmaps/egov", "application/json", `{"resourceSync":false}`).Code)
	page := newProducer(t)
	page.put("page", "<!DOCTYPE html><html><body>Hello<br></body></html>")
	for name, c := range map[string]struct {
		ref, protocol string
		says          []string
	}{
		"no collections":     {empty.URL, "resourcesync", []string{"/.well-known/resourcesync", "the Source has no set of resources"}},
		"not offered":        {off.URL + "/topicmaps/egov", "resourcesync", []string{"the Source has no set of resources"}},
		"not offered, list":  {off.RecordsURL("egov", lists), "", []string{"egov is not offered by ResourceSync"}},
		"no such collection": {off.RecordsURL("none", lists), "", []string{`404 Not Found (not found: collection "none")`}},
		"a page":             {page.URL + "/page", "resourcesync", []string{page.URL + "/page: this is no document of ResourceSync", "/.well-known/resourcesync", "/robots.txt"}},
		"not there":          {page.URL + "/nothing", "resourcesync", []string{page.URL + "/nothing: the server answered 404 Not Found"}},
		"nobody listens":     {"http://127.0.0.1:1/", "resourcesync", []string{"connection refused"}},
		"another scheme":     {"ftp://example.org/resourcesync/list.xml", "", []string{"is not an http or https URL"}},
		"unknown protocol":   {off.URL, "oai-pmh", []string{`unknown protocol "oai-pmh": there are tmshare, atom-pmh, ldes, resourcesync`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSubscriber(t, func(c *client.Config) { c.Tries = 1 })
			_, err := s.Subscribe(context.Background(), c.ref, client.SubscribeOptions{Protocol: c.protocol})
			for _, part := range c.says {
				assert.ErrorContains(t, err, part)
			}
			all, err := s.db.Subscriptions(s.t.Context())
			assert.NoError(t, err)
			assert.Empty(t, all)
		})
	}
}

// A protected Source is found and read with a token.
func TestSourceThatWantsAToken(t *testing.T) {
	t.Parallel()
	o := newOrigin(t, func(c *server.Config) { c.ReadTokens = map[string][]string{"egov": {"0123456789abcdef"}} })
	o.Create("egov", doc(topics(15, "v1")...))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef\n"), 0o600))
	for at, says := range map[string]string{
		"/topicmaps/egov" + lists:   "401 Unauthorized",
		"":                          "the Source has no set of resources",
		"/.well-known/resourcesync": "the Source has no set of resources",
	} {
		s := newSubscriber(t)
		_, err := s.Subscribe(context.Background(), o.URL+at, client.SubscribeOptions{Protocol: "resourcesync"})
		assert.ErrorContains(t, err, says, at)
		_, err = s.Subscribe(context.Background(), o.URL+at, client.SubscribeOptions{Protocol: "resourcesync", Name: "egov", Asked: store.Asked{TokenFile: file}})
		require.NoError(t, err, at)
		o.Seen()
		s.syncQuiet()
		assert.Zero(t, topicsAsked(o.Seen()), "the package is fetched with the token")
		s.has(o, doc(topics(15, "v1")...))
		assert.True(t, s.verify().Equal)
	}
}
