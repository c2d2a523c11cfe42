package resourcesync

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Reader reads one document, item by item. It must not be used by two
// goroutines at a time.
type Reader struct {
	// Document is complete after Read if the head precedes the items. Links after an item are complete when
	// [Reader.Next] has returned that item.
	Document Document

	in     *read.Reader
	limits Limits
	items  int
	ahead  []Item // read before the document's type was known
	end    bool   // all of it has been read
	err    error
	values map[string]string // values that occur again and again
}

// Read begins to read a document in any encoding, with any prefixes and order of elements. uri is the address of the
// document: it is in errors, and is the base of relative URIs. A plain Sitemap is accepted, too; its capability is "".
//
// Times are W3C Datetimes (Z39.99 §7), in UTC if they have no zone. Read skips unknown attributes and elements, and
// links without target. It keeps capabilities and changes that Z39.99 does not define.
//
// An item must have a URI, and valid times and lengths; otherwise the error is an *[InvalidError]. A document that is
// not well-formed, or no Sitemap, gives a *[SyntaxError], and so does a DOCTYPE, which is never accepted. A document
// that is too large gives a *[LimitError]. Errors of r are wrapped. [Reader.Next] may return all these, too.
//
// If the document's type follows only after items, Read reads those, too.
func Read(r io.Reader, uri string, limits Limits) (*Reader, error) {
	limits = limits.withDefaults()
	d := &Reader{in: newReader(r, uri, limits), limits: limits, values: make(map[string]string)}
	isRoot := func(n scan.Name) bool {
		return isSitemap(n.Space) && (n.Local == "urlset" || n.Local == "sitemapindex")
	}
	if err := d.in.Root(otherformat.Sitemap, isRoot); err != nil {
		return nil, err
	}
	d.Document.Index = d.in.Name().Local == "sitemapindex"
	for d.Document.Capability == "" {
		item, err := d.child()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if item != nil {
			d.ahead = append(d.ahead, *item)
		}
	}
	slices.Reverse(d.ahead)
	return d, nil
}

// Next returns the next item. At the end of a complete document the error is
// io.EOF. Errors are final: they are returned again.
func (d *Reader) Next() (Item, error) {
	if n := len(d.ahead); n > 0 {
		item := d.ahead[n-1]
		d.ahead = d.ahead[:n-1]
		return item, nil
	}
	for d.err == nil {
		item, err := d.child()
		if item != nil {
			return *item, nil
		}
		d.err = err
	}
	return Item{}, d.err
}

// child continues in the root element. It returns the item that it has read; nil for other elements, and io.EOF at the
// end of the document.
func (d *Reader) child() (*Item, error) {
	if d.end {
		return nil, io.EOF
	}
	kind, err := d.in.Next()
	if err != nil {
		return nil, err
	}
	switch kind {
	case scan.EndElement:
		d.end = true
		// Nothing but white space and comments may follow; next sees to it.
		_, err := d.in.Next()
		return nil, err
	case scan.StartElement:
		n := d.in.Name()
		switch {
		case isSitemap(n.Space) && (n.Local == "url" || n.Local == "sitemap"):
			return d.item()
		case isRS(n.Space) && n.Local == "md":
			var m Metadata
			err := d.metadata(&m)
			if m.Capability != "" {
				d.Document.Capability = m.Capability
			}
			d.Document.merge(&m.Times)
			return nil, err
		case isRS(n.Space) && n.Local == "ln":
			return nil, d.link(&d.Document.Links)
		default:
			return nil, d.in.Skip()
		}
	}
	return nil, nil
}

// merge takes the times that are stated.
func (t *Times) merge(other *Times) {
	for _, pair := range [...]struct{ to, from *time.Time }{
		{&t.At, &other.At}, {&t.Completed, &other.Completed}, {&t.From, &other.From}, {&t.Until, &other.Until},
	} {
		if !pair.from.IsZero() {
			*pair.to = *pair.from
		}
	}
}

// item reads a <url> or <sitemap> whose start has been read.
func (d *Reader) item() (*Item, error) {
	if d.items == d.limits.MaxItems {
		return nil, d.in.TooMany("MaxItems", d.limits.MaxItems)
	}
	d.items++
	i := new(Item)
	for {
		kind, err := d.in.Next()
		if err != nil {
			return nil, err
		}
		if kind == scan.EndElement {
			break
		}
		if kind == scan.Text {
			continue
		}
		n := d.in.Name()
		switch {
		case isSitemap(n.Space) && n.Local == "loc":
			err = d.loc(i)
		case isSitemap(n.Space) && n.Local == "lastmod":
			if err = d.text(); err == nil {
				err = d.time(&i.LastMod, &i.lastModIn, d.in.Buf, "lastmod")
			}
		case isSitemap(n.Space) && n.Local == "changefreq":
			if err = d.text(); err == nil {
				i.ChangeFreq = strings.ToLower(d.value(trim(d.in.Buf)))
			}
		case isRS(n.Space) && n.Local == "md":
			err = d.metadata(&i.Metadata)
		case isRS(n.Space) && n.Local == "ln":
			err = d.link(&i.Links)
		default:
			err = d.in.Skip()
		}
		if err != nil {
			return nil, err
		}
	}
	if i.Loc == "" {
		return nil, d.invalid("loc", "is missing")
	}
	return i, nil
}

func (d *Reader) loc(i *Item) error {
	if err := d.text(); err != nil {
		return err
	}
	uri, err := d.resolve(d.in.Buf)
	if err != nil {
		return d.invalid("loc", "%v", err)
	}
	i.Loc = uri
	return nil
}

// time parses the begin of a time into begin, and its duration into span, if that is not nil. White space alone is no
// time.
func (d *Reader) time(begin *time.Time, span *time.Duration, value []byte, element string) error {
	value = trim(value)
	if len(value) == 0 {
		return nil
	}
	parsed, end, ok := parseTime(value)
	if !ok {
		return d.invalid(element, "%q is not a W3C Datetime", read.Clip(string(value)))
	}
	*begin = parsed
	if span != nil {
		*span = end.Sub(parsed)
	}
	return nil
}

// metadata reads a <rs:md> whose start has been read. If an attribute occurs in several <rs:md>, the last one counts.
func (d *Reader) metadata(m *Metadata) error {
	for _, a := range d.in.Attrs() {
		if a.Space != "" && !isRS(a.Space) {
			continue
		}
		var err error
		switch a.Local {
		case "capability":
			m.Capability = Capability(strings.ToLower(d.value(trim(a.Value))))
		case "change":
			m.Change = Change(strings.ToLower(d.value(trim(a.Value))))
		case "datetime":
			err = d.time(&m.Datetime, &m.datetimeIn, a.Value, "rs:md/@datetime")
		case "at":
			err = d.time(&m.At, nil, a.Value, "rs:md/@at")
		case "completed":
			err = d.time(&m.Completed, nil, a.Value, "rs:md/@completed")
		case "from":
			err = d.time(&m.From, nil, a.Value, "rs:md/@from")
		case "until":
			err = d.time(&m.Until, nil, a.Value, "rs:md/@until")
		default:
			err = d.representation(&m.Representation, &a, "rs:md")
		}
		if err != nil {
			return err
		}
	}
	return d.in.Skip()
}

// link reads a <rs:ln> whose start has been read. It skips one without a relation or a URI.
func (d *Reader) link(links *[]Link) error {
	var l Link
	for _, a := range d.in.Attrs() {
		if a.Space != "" && !isRS(a.Space) {
			continue
		}
		var err error
		switch a.Local {
		case "rel":
			l.Rel = canonicalRel(d.value(trim(a.Value)))
		case "href":
			if href, err := d.resolve(a.Value); err == nil {
				l.Href = href
			}
		case "pri":
			// An invalid priority counts as none, because links can be followed in any order.
			if n, err := strconv.Atoi(string(trim(a.Value))); err == nil && n >= 1 && n <= lastPriority {
				l.Pri = n
			}
		case "modified":
			err = d.time(&l.Modified, nil, a.Value, "rs:ln/@modified")
		default:
			err = d.representation(&l.Representation, &a, "rs:ln")
		}
		if err != nil {
			return err
		}
	}
	if l.Rel != "" && l.Href != "" {
		if len(*links) == d.limits.MaxLinks {
			return d.in.TooMany("MaxLinks", d.limits.MaxLinks)
		}
		*links = append(*links, l)
	}
	return d.in.Skip()
}

// representation reads an attribute that <rs:md> and <rs:ln> share.
func (d *Reader) representation(r *Representation, a *scan.Attr, element string) error {
	value := trim(a.Value)
	switch a.Local {
	case "hash":
		r.Hashes = nil
		for _, word := range strings.Fields(string(value)) {
			r.Hashes = append(r.Hashes, parseHash(word))
		}
	case "length":
		if len(value) == 0 {
			break
		}
		n, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || n < 0 {
			return d.invalid(element+"/@length", "%q is no length", read.Clip(string(value)))
		}
		r.Length, r.Empty = n, n == 0
	case "type":
		r.Type = d.value(value)
	case "encoding":
		r.Encoding = d.value(value)
	case "path":
		r.Path = string(a.Value) // names may have spaces anywhere
	}
	return nil
}

// resolve returns the URI that stands in the document. An absolute one is taken
// as it is: resources are compared by it.
func (d *Reader) resolve(text []byte) (string, error) {
	return resolve(d.in.URI, string(trim(text)))
}

// maxURI is the maximum length of URIs, in bytes: four times that of Sitemaps.
const maxURI = 8 << 10

// resolve returns ref as an absolute URI, with line breaks removed. Neither may be longer than maxURI, because each URI
// of a document would contain the base.
func resolve(base, ref string) (string, error) {
	if strings.ContainsAny(ref, "\t\r\n") {
		ref = strings.Join(strings.Fields(ref), "")
	}
	if ref == "" {
		return "", errors.New("is missing")
	}
	absolute := ref
	var err error
	switch {
	case len(ref) > maxURI:
	case iri.IsAbsolute(ref):
		_, err = iri.Normalize(ref)
	case len(base) > maxURI:
		err = fmt.Errorf("is relative to a URI that is longer than %d bytes", maxURI)
	default:
		absolute, err = iri.Resolve(base, ref)
	}
	if err != nil {
		return "", err
	}
	if absolute = iri.Escape(absolute); len(absolute) > maxURI {
		return "", fmt.Errorf("is longer than %d bytes", maxURI)
	}
	return absolute, nil
}
