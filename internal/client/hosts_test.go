package client_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/client"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testkit/anyhost"
)

// Forms of the host of one server (RFC 3986 §3.2.2, §6.2.2.1, §6.2.3), by the form in the subscribed URL.
var hostsOfOneServer = map[string]string{
	"http://bücher.example":         "http://xn--bcher-kva.example",
	"http://xn--bcher-kva.example":  "HTTP://BÜCHER.example:80",
	"http://example.org":            "http://EXAMPLE.org",
	"http://Example.org:80":         "http://example.org",
	"http://example.org.":           "http://example.org",
	"http://EXAMPLE.ORG.:80":        "HTTP://example.org:80",
	"http://xn--bcher-kva.example.": "http://b%C3%BCcher.example",
}

// Links with another form of the server's host belong to the same server: they are followed, no topic is in quarantine,
// and the token is sent.
func TestHostsInOtherForms(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("a token of readers"), 0o600))
	for subscribed, linked := range hostsOfOneServer {
		for _, form := range []string{"/fragments", archived, lists} {
			t.Run(subscribed+" "+linked+form, func(t *testing.T) {
				o := newOrigin(t)
				first, second := doc(topic("a", "one")), doc(topic("a", "two"), topic("b", "three"))
				o.Create("egov", first)
				o.TakeSnapshot()
				unknown := 0
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Authorization") != "Bearer a token of readers" {
						unknown++
					}
					answer := httptest.NewRecorder()
					r.Header.Del("Accept-Encoding")
					o.ServeHTTP(answer, r)
					for name, values := range answer.Header() {
						if name != "Content-Length" {
							for _, v := range values {
								w.Header().Add(name, strings.ReplaceAll(v, "<"+o.URL, "<"+linked))
							}
						}
					}
					body := answer.Body.String()
					if strings.Contains(body, "<feed") || strings.Contains(body, "<urlset") || strings.Contains(body, "<sitemapindex") {
						body = strings.NewReplacer(`href="`+o.URL, `href="`+linked, `<loc>`+o.URL, `<loc>`+linked, `base="`+o.URL, `base="`+linked).Replace(body)
					}
					w.WriteHeader(answer.Code)
					_, _ = w.Write([]byte(body))
				})
				s := newSubscriber(t, func(c *client.Config) { c.HTTP = anyhost.Serve(t, handler).Client })
				s.mayDiffer = true
				ref := subscribed + "/topicmaps/egov" + form
				_, err := s.Subscribe(t.Context(), ref, client.SubscribeOptions{Name: "egov", Asked: store.Asked{TokenFile: token}})
				require.NoError(t, err)
				for _, document := range []string{first, second} {
					o.Put(document)
					require.Zero(t, s.sync().Quarantined)
					s.hasRecordsOf(o, "egov", "egov")
				}
				require.Zero(t, unknown, "requests without the token")
				for _, other := range []string{ref + "#x", linked + "/topicmaps/egov" + form, ref} {
					_, err = s.Subscribe(t.Context(), other, client.SubscribeOptions{Name: "again", Asked: store.Asked{TokenFile: token}})
					require.ErrorContains(t, err, "is subscribed to already", other)
				}
			})
		}
	}
}
