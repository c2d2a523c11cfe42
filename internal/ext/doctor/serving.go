package doctor

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/extension"
	"github.com/tmshare/tmshare/internal/formats"
)

// soonExpired is the time before its end at which a certificate is a finding: certificates of 90 days are renewed 30
// days before.
const soonExpired = 21 * 24 * time.Hour

// shortToken is the number of bytes below which a token can be guessed.
const shortToken = 16

// address returns the address of the server, without a slash at its end; "" where it is not known.
func address(s *extension.Serving) string {
	if s.BaseURL != "" {
		return strings.TrimSuffix(s.BaseURL, "/")
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || host == "" || port == "0" {
		return ""
	}
	if s.Cert != "" {
		return "https://" + s.Listen
	}
	return "http://" + s.Listen
}

// settings looks at the settings of a server.
func (r *Report) settings(n *Node) {
	s := n.Serving
	r.fact("listens on", "%s", s.Listen)
	r.fact("base URL", "%s", address(s))
	host, port, err := net.SplitHostPort(s.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		r.found("--listen", err.Error(), "write HOST:PORT, as in 127.0.0.1:8080")
		return
	}
	ip := net.ParseIP(host)
	everywhere := host == "" || ip != nil && ip.IsUnspecified()
	open := everywhere || !loopback(host)
	if everywhere && s.BaseURL == "" {
		r.found("--listen", s.Listen+" is on all addresses of the machine, and nothing says which one others know",
			"give it with --base-url, such as https://maps.example.org")
	}
	base, err := url.Parse(address(s))
	public := err == nil && base.Host != "" && !loopback(base.Hostname())
	if s.TokenFile == "" && (open || public) {
		r.found("--token-file",
			"the server can be reached by others and has no tokens for writing: only local programs may write, and a proxy "+
				"on this machine that adds no header is taken for one",
			`"(umask 077; openssl rand -hex 24 >tokens)", and give --token-file tokens`)
	}
	secret := s.TokenFile != "" || len(s.ReadTokenFiles) > 0
	if secret && open && s.Cert == "" {
		r.found("--listen", s.Listen+" takes tokens over plain HTTP: anybody on the way can read them",
			"give --tls-cert and --tls-key, or --listen 127.0.0.1:8080 behind a proxy that speaks HTTPS")
	}
	// otherwise it is that of --listen, which is reported above
	if secret && s.BaseURL != "" && public && base.Scheme == "http" {
		r.found("--base-url", address(s)+" is plain HTTP, and there are tokens",
			"serve it by HTTPS, and write https:// in --base-url before the first map is published")
	}
	if metrics, _, err := net.SplitHostPort(s.Metrics); err == nil && !loopback(metrics) {
		r.found("--metrics-listen", s.Metrics+" shows to everybody who reaches it what the server does",
			"give --metrics-listen 127.0.0.1:9090, or keep others away from the port")
	}
	if s.TokenFile != "" {
		r.tokenFile("--token-file", s.TokenFile)
	}
	for _, given := range s.ReadTokenFiles {
		name, file, named := strings.Cut(given, "=")
		if !named || name == "" || file == "" {
			r.found("--read-token-file", given+" names no collection, or no file", "write NAME=FILE")
			continue
		}
		r.tokenFile("--read-token-file "+name, file)
	}
	r.certificate(n)
}

// tokenFile looks at a file of tokens, a line each.
func (r *Report) tokenFile(where, file string) {
	for i, t := range r.secret(where, file) {
		if len(t.Value) < shortToken {
			r.found(where, fmt.Sprintf("the token number %d in %s has %d characters: it can be guessed", i+1, file,
				len(t.Value)), `"openssl rand -hex 24" makes a better one`)
			return
		}
	}
}

func (r *Report) certificate(n *Node) {
	s := n.Serving
	if s.Cert == "" && s.Key == "" {
		return
	}
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		r.found("--tls-cert", err.Error(), "give a certificate and its key in PEM, with --tls-cert and --tls-key")
		return
	}
	r.secret("--tls-key", s.Key)
	if left := pair.Leaf.NotAfter.Sub(n.Now()); left < soonExpired {
		r.found("--tls-cert", fmt.Sprintf("the certificate expires on %s", pair.Leaf.NotAfter.Format(time.DateOnly)),
			"renew it: the server reads the file again when it has changed")
	}
	if base, err := url.Parse(address(s)); err == nil && base.Scheme == "https" &&
		pair.Leaf.VerifyHostname(base.Hostname()) != nil {
		r.found("--tls-cert",
			fmt.Sprintf("the certificate is for %s, not for %s",
				strings.Join(slices.Concat(pair.Leaf.DNSNames, addresses(pair.Leaf.IPAddresses)), ", "), base.Hostname()),
			"get one for that name, or correct --base-url")
	}
}

func addresses(list []net.IP) (texts []string) {
	for _, ip := range list {
		texts = append(texts, ip.String())
	}
	return texts
}

// watched looks at the files that collections follow.
func (r *Report) watched(ctx context.Context, n *Node) {
	for i := 0; n.Serving.Watch && i < len(n.Serving.Maps); i++ {
		name, file, _ := strings.Cut(n.Serving.Maps[i], "=")
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Where == "collection "+name }) {
			continue // the server reports the reason
		}
		if _, err := (formats.Source{Path: file, Formats: n.Formats, Lenient: true, ForXTM: true,
			Root: n.Serving.Root, Collection: name}).Read(ctx); err != nil {
			r.found("collection "+name, "the file that it follows is not published: "+err.Error(),
				formats.Remedy(quoted(file), err))
		}
	}
}
