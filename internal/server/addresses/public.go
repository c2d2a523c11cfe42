package addresses

import (
	"net/netip"
	"net/url"
	"strings"
)

// sharedAddresses are those of carriers' networks (RFC 6598), which no site has to itself.
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// Public reports whether the host of the URL is the same one for everybody: neither a
// loopback, private or link-local address nor a name without a dot or of a private domain.
func (b Base) Public() bool {
	u, err := url.Parse(string(b))
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsGlobalUnicast() && !ip.IsPrivate() && !sharedAddresses.Contains(ip)
	}
	for _, private := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, private) {
			return false
		}
	}
	return strings.Contains(host, ".")
}
