package resourcesync

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// mostDiscovery is the number of bytes of a page or of robots.txt that are read: twice the minimum of RFC 9309 §2.5
// (Limits).
const mostDiscovery = 1 << 20

// WellKnown returns where the Source Description of the server stands from which
// a resource is (Z39.99 §6.3.2, ResourceSync Well-Known URI).
func WellKnown(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("%w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no address of a web server", read.Clip(uri))
	}
	return u.Scheme + "://" + u.Host + "/.well-known/resourcesync", nil
}

// DiscoverInHeader returns the Capability Lists in the Link header fields of a response (Z39.99 §6.3.3, Links; RFC 8288
// §3, Link Serialisation in HTTP Headers), each once. uri is that of the resource. It skips links with another context
// (anchor), and invalid ones.
func DiscoverInHeader(fields []string, uri string) []string {
	return LinksInHeader(fields, uri, RelResourceSync)
}

// LinksInHeader returns the targets of a relation in the Link header fields of a response, as [DiscoverInHeader] does.
func LinksInHeader(fields []string, uri, rel string) []string {
	var found []string
	for _, field := range fields {
		for link := range headerLinks(field) {
			if hasRel(link.params["rel"], rel) && (link.params["anchor"] == "" || isSame(uri, link.params["anchor"])) {
				found = add(found, uri, link.target)
			}
		}
	}
	return found
}

// DiscoverInHTML returns the Capability Lists that the <link> elements in the
// head of an HTML or XHTML page lead to (Z39.99 §6.3.3), each once. uri is that
// of the page. No more is read than the head, and of that no more than 1 MiB.
// The error is one of r.
func DiscoverInHTML(r io.Reader, uri string) ([]string, error) {
	var found []string
	tokens := html.NewTokenizer(io.LimitReader(r, mostDiscovery))
	tokens.SetMaxBuf(mostDiscovery)
	base := ""
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			if err := tokens.Err(); err != io.EOF && err != html.ErrBufferExceeded {
				return nil, fmt.Errorf("reading %s: %w", uri, err)
			}
			return found, nil
		case html.EndTagToken:
			if name, _ := tokens.TagName(); atom.Lookup(name) == atom.Head {
				return found, nil
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := tokens.TagName()
			tag := atom.Lookup(name)
			// Links in the body may come from visitors.
			if tag == atom.Body {
				return found, nil
			}
			if tag != atom.Link && tag != atom.Base {
				continue
			}
			var rel, href string
			for more {
				var key, value []byte
				switch key, value, more = tokens.TagAttr(); string(key) {
				case "rel":
					rel = string(value)
				case "href":
					href = string(value)
				}
			}
			if tag == atom.Base && base == "" {
				base, _ = resolve(uri, href)
			} else if tag == atom.Link && hasRel(rel, RelResourceSync) {
				found = add(found, cmp.Or(base, uri), href)
			}
		}
	}
}

// DiscoverInRobots returns the Sitemaps that a robots.txt names (Z39.99 §6.3.4;
// RFC 9309), each once. Only reading them shows if they are Resource Lists. uri is that of the robots.txt, and
// no more than 1 MiB of it is read. The error is one of r.
func DiscoverInRobots(r io.Reader, uri string) ([]string, error) {
	var found []string
	lines := bufio.NewScanner(io.LimitReader(r, mostDiscovery))
	lines.Buffer(nil, mostDiscovery+1)
	lines.Split(splitLines)
	for lines.Scan() {
		line, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "\uFEFF"), "#")
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(strings.TrimSpace(name), "sitemap") {
			found = add(found, uri, value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", uri, err)
	}
	return found, nil
}

// splitLines is for lines that end with CR, LF or both.
func splitLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			return i + 1, data[:i], nil
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// hasRel reports whether one of the relations is that of discovery.
func hasRel(rels, wanted string) bool {
	for rel := range strings.FieldsSeq(rels) {
		if strings.EqualFold(rel, wanted) {
			return true
		}
	}
	return false
}

// maxFound is the number of URIs that are taken from one place. Further ones are skipped.
const maxFound = 1000

// add adds a URI if it is valid, not too long, and new.
func add(found []string, base, ref string) []string {
	if len(found) == maxFound {
		return found
	}
	uri, err := resolve(base, strings.TrimSpace(ref))
	if err != nil || slices.Contains(found, uri) {
		return found
	}
	return append(found, uri)
}

// isSame reports whether an anchor is the resource itself.
func isSame(uri, anchor string) bool {
	resolved, err := resolve(uri, anchor)
	return err == nil && resolved == uri
}
