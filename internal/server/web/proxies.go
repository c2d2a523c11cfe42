package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The facts about the sender of a request, when browsers and proxies stand between.

// proxyHeaders are headers that browsers and proxies add to a request, besides X-Forwarded-….
var proxyHeaders = []string{
	"Origin", "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Originating-Ip",
	"True-Client-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Fastly-Client-Ip",
}

// PassedOn returns a header that only browsers on behalf of a page, or proxies, send, or "". Browsers send the relation
// to the page's site in Sec-Fetch-Site (Fetch Metadata Request Headers, W3C); "none" is a request of the user.
func PassedOn(r *http.Request) string {
	for name := range r.Header {
		if slices.Contains(proxyHeaders, name) || strings.HasPrefix(name, "X-Forwarded-") {
			return name
		}
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return "Sec-Fetch-Site"
		}
	}
	return ""
}

// IsLocal reports whether a program on this machine has sent the request itself.
func IsLocal(r *http.Request) bool { return FromLoopback(r) && IsLoopback(r.Host) && PassedOn(r) == "" }

// FromLoopback reports whether the connection comes from this machine.
func FromLoopback(r *http.Request) bool {
	peer, ok := peerOf(r)
	return ok && peer.IsLoopback()
}

// peerOf returns the address of the other end of the connection.
func peerOf(r *http.Request) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(host)
	return a.Unmap(), err == nil
}

// clientOf returns the address of the client, for the log: that of the other end of the connection or, where that is a
// trusted proxy, of the one that connected to the proxy. The proxy adds that to X-Forwarded-For. What stands before the
// last address that is not a trusted proxy's may be forged.
func clientOf(r *http.Request, trusted []netip.Prefix) string {
	trusts := func(a netip.Addr) bool {
		return a.IsLoopback() || slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	peer, ok := peerOf(r)
	if !ok || !trusts(peer) {
		return r.RemoteAddr
	}
	client := r.RemoteAddr
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(forwarded) {
		a, err := netip.ParseAddr(strings.Trim(strings.TrimSpace(text), "[]"))
		if err != nil {
			if a, err = addrOf(text); err != nil {
				break
			}
		}
		if client = a.Unmap().String(); !trusts(a.Unmap()) {
			break
		}
	}
	return client
}

// addrOf returns the address in one with a port.
func addrOf(text string) (netip.Addr, error) {
	withPort, err := netip.ParseAddrPort(strings.TrimSpace(text))
	return withPort.Addr(), err
}

// IsLoopback reports whether a host, with a port or without, as people write it,
// is this machine itself.
func IsLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
