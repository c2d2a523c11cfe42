package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/tokenfile"
)

// Trusting returns a client like h that also trusts servers whose certificates an authority in a file has signed.
// Without a file it returns h.
func Trusting(h *http.Client, file string) (*http.Client, error) {
	if file == "" {
		return h, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	content, err := os.ReadFile(file)
	if err == nil && !pool.AppendCertsFromPEM(content) {
		err = fmt.Errorf("%s has no certificate in PEM", file)
	}
	if err != nil {
		return nil, fmt.Errorf("--ca-cert: %w", err)
	}
	base, is := h.Transport.(*http.Transport)
	if !is {
		base = http.DefaultTransport.(*http.Transport)
	}
	own, transport := *h, base.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	own.Transport = transport
	return &own, nil
}

// BearerFrom returns a client like h that sends the first token in a file to the server of a URL.
// Without a file it returns h.
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
	own, next := *h, h.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own.Transport = bearer{next, u.Scheme, iri.HostOf(u), tokens[0].Value}
	return &own, nil
}

// bearer sends a token (RFC 6750 §2.1, Authorization Request Header Field) to one server only, wherever links and
// redirects lead.
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
