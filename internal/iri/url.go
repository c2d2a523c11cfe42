package iri

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// Host returns the form of the host of a URL, which may have a port, in which hosts are compared: in lower case and
// ASCII (RFC 5891 §5), without a dot at its end, and without the default port of the scheme (RFC 3986 §3.2.2, §6.2.2.1
// and §6.2.3).
func Host(scheme, host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if literal, ok := strings.CutPrefix(name, "["); ok {
		if ip, err := netip.ParseAddr(strings.TrimSuffix(literal, "]")); err == nil {
			name = "[" + ip.String() + "]"
		}
	} else {
		name = strings.TrimSuffix(asciiName(name), ".")
	}
	name = strings.ToLower(name)
	if port == "" || port == defaultPorts[strings.ToLower(scheme)] {
		return name
	}
	return name + ":" + port
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// names maps as programs do that look a name up, and puts up with what stands in names but not in those of hosts.
var names = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

// asciiName returns the name of a host in ASCII, or as it is where it has no such form.
func asciiName(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] < 0x80 {
			continue
		}
		if ascii, err := names.ToASCII(name); err == nil {
			return ascii
		}
		break
	}
	return name
}

// HostOf returns the host of a URL in the form in which hosts are compared.
func HostOf(u *url.URL) string { return Host(u.Scheme, u.Host) }

// NormalizeURL returns the form of a URL of HTTP in which it is compared: the scheme in lower case, the host as [Host]
// has it, "/" in place of no path, escapes with upper-case digits, and what URLs do not have escaped (RFC 3986 §6.2.2.1
// and §6.2.3; RFC 3987 §3.1). What is escaped stays so. Others are returned as they are.
func NormalizeURL(s string) string {
	p := split(s)
	scheme := strings.ToLower(p.scheme)
	if _, is := defaultPorts[scheme]; !is || !p.hasAuthority {
		return s
	}
	p.scheme = scheme
	user, host := "", p.authority
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		user, host = host[:i+1], host[i+1:]
	}
	if plain, err := url.PathUnescape(host); err == nil {
		host = plain
	}
	p.authority = user + Host(scheme, host)
	if p.path == "" {
		p.path = "/"
	}
	return upperEscapes(ToURI(p.String()))
}

// upperEscapes returns s with upper-case digits in its escapes.
func upperEscapes(s string) string {
	b := []byte(nil)
	for i := 0; i+2 < len(s); i++ {
		if s[i] != '%' || !isHex(s[i+1]) || !isHex(s[i+2]) {
			continue
		}
		if upper := strings.ToUpper(s[i+1 : i+3]); upper != s[i+1:i+3] {
			if b == nil {
				b = []byte(s)
			}
			copy(b[i+1:], upper)
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

// SameDocument reports whether two URLs are of one document, whatever their fragments.
func SameDocument(a, b string) bool { return a == b || documentURL(a) == documentURL(b) }

func documentURL(s string) string {
	s, _, _ = strings.Cut(s, "#")
	return NormalizeURL(s)
}
