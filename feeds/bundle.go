package feeds

import (
	"bytes"
	"io"
	"mime"

	"github.com/tmshare/tmshare/internal/xml/scan"
)

// DecodeBundle is Decode for a bundle: a feed document with the fragments of its entries in atom:content. It returns
// those in XTM 2.1 of at most [MaxInline] bytes. For other fragments the feed has links only, as with Decode.
//
// head may be nil. DecodeBundle calls it with the feed before the first entry, even if the rest of the document is
// damaged.
func DecodeBundle(r io.Reader, uri string, limits Limits, head func(*Feed)) (*Feed, error) {
	return decode(r, uri, limits, true, head)
}

// MaxInline is the largest number of bytes of a fragment in a bundle.
const MaxInline = 256 << 10

// content reads an atom:content, and reports whether it is empty. White space counts as empty, because some servers
// write it in an empty element. inline is its fragment, if it is to be kept.
func (d *decoder) content() (found Content, inline []byte, err error) {
	found = EmptyContent
	if _, referred := d.Attr("", "src"); referred {
		found = SomeContent
	}
	fragment := d.bundle && found == EmptyContent && mayBeXTM21(d.attr("type"))
	if fragment {
		d.Capture()
	}
	for depth := d.Depth(); ; {
		kind, err := d.Next()
		switch {
		case err != nil:
			return found, nil, err
		case kind == scan.Text && len(bytes.Trim(d.Text(), whiteSpace)) == 0:
		case kind == scan.EndElement && d.Depth() == depth:
			if fragment && found == SomeContent {
				if b := bytes.Trim(d.Captured(), whiteSpace); len(b) <= MaxInline {
					inline = bytes.Clone(b)
				}
			}
			return found, inline, nil
		default:
			if d.Depth() == depth || d.Depth() == depth+1 && kind == scan.StartElement { // text, or a root
				fragment = fragment && found == EmptyContent && kind == scan.StartElement && d.startsXTM21()
			}
			found = SomeContent
		}
	}
}

// mayBeXTM21 reports whether a media type allows XTM 2.1: it states version 2.1, or none.
func mayBeXTM21(mediaType string) bool {
	base, params, err := mime.ParseMediaType(mediaType)
	version, stated := params["version"]
	return err == nil && base == MediaTypeXTM2 && (!stated || version == "2.1")
}

// startsXTM21 reports whether the element that has started is a topicMap of XTM 2.1.
func (d *decoder) startsXTM21() bool {
	n := d.Name()
	return n.Space == "http://www.topicmaps.org/xtm/" && n.Local == "topicMap" && d.attr("version") == "2.1"
}
