package fetch

import (
	"net/http"
	"net/url"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/tokenfile"
)

// BearerFrom is Bearer with the first token in a file. Without a file it returns h.
func BearerFrom(h *http.Client, ref, file string) (*http.Client, error) {
	if file == "" {
		return h, nil
	}
	tokens, err := tokenfile.Read(file)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(ref)
	if err != nil {
		return nil, err
	}
	return Bearer(h, u, tokens[0].Value), nil
}

// Bearer returns a client that does what h does, and shows a token to the server
// of the URL.
func Bearer(h *http.Client, u *url.URL, token string) *http.Client {
	own := *h
	next := h.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own.Transport = bearer{next, u.Scheme, iri.HostOf(u), token}
	return &own
}

// bearer shows a token (RFC 6750 §2.1, Authorization Request Header Field) to
// one server and to no other, wherever links and redirects lead.
type bearer struct {
	next                http.RoundTripper
	scheme, host, token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if iri.HostOf(r.URL) != b.host || r.URL.Scheme != b.scheme {
		return b.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}
