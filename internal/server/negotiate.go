package server

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/xtm"
)

// accepted calls yield with each media range of the Accept header and its
// quality; without a header, with "*/*".
func accepted(r *http.Request, yield func(mediaRange string, params map[string]string, q float64)) {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		yield("*/*", nil, 1)
		return
	}
	for part := range strings.SplitSeq(header, ",") {
		mediaRange, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		yield(mediaRange, params, q)
	}
}

// choice is how welcome one form of an answer is. What names it outweighs what
// only includes it (RFC 9110 §12.5.1, Accept).
type choice struct {
	q             float64
	named, spoken bool // by itself; or at least by "*"
}

func (c *choice) offer(q float64, named bool) {
	c.spoken = true
	if named && !c.named || named == c.named && q > c.q {
		c.q, c.named = q, named
	}
}

// acceptsAtom checks that the request takes an Atom document.
func acceptsAtom(r *http.Request) error {
	var atom choice
	accepted(r, func(mediaRange string, _ map[string]string, q float64) {
		switch mediaRange {
		case "*/*", "application/*", "text/*", "application/xml", "text/xml":
			atom.offer(q, false)
		case feeds.MediaTypeAtom:
			atom.offer(q, true)
		}
	})
	if atom.q == 0 {
		return problem(http.StatusNotAcceptable, "this is an Atom document: %s", feeds.MediaTypeAtom)
	}
	return nil
}

// negotiateXTM chooses the XTM version of an answer among those offered: by the
// ending of the URL, else by the Accept header, XTM 1.0 where several are equally
// welcome.
func negotiateXTM(r *http.Request, ext string, offered []xtm.Version) (xtm.Version, error) {
	if ext != "" {
		for _, v := range offered {
			if extension(v) == ext {
				return v, nil
			}
		}
		return "", problem(http.StatusGone, "this is not offered in this form any more; it is to be had as %s", mediaTypes(offered))
	}
	var v10, v21 choice
	accepted(r, func(mediaRange string, params map[string]string, q float64) {
		switch mediaRange {
		case "*/*", "application/*", "application/xml":
			v10.offer(q, false)
			v21.offer(q, false)
		case "text/*", "text/xml":
			v10.offer(q, false)
		case "application/xtm1+xml", "text/xtm1+xml", "application/xtm+xml":
			v10.offer(q, true)
		case "application/x-tm+xml":
			switch params["version"] {
			case "1.0":
				v10.offer(q, true)
			case "", "2.1":
				v21.offer(q, true)
			}
		}
	})
	if !slices.Contains(offered, xtm.V10) {
		v10.q = 0
	}
	if !slices.Contains(offered, xtm.V21) {
		v21.q = 0
	}
	switch {
	case v10.q == 0 && v21.q == 0:
		return "", problem(http.StatusNotAcceptable, "this is to be had as %s", mediaTypes(offered))
	case v21.q > v10.q:
		return xtm.V21, nil
	}
	return xtm.V10, nil
}

// mediaTypes lists those of the forms, for people.
func mediaTypes(forms []xtm.Version) string {
	types := make([]string, len(forms))
	for i, v := range forms {
		types[i] = mediaType(v)
	}
	return strings.Join(types, " or ")
}

// negotiateCoding chooses the content coding of an answer among those offered, the
// better ones first, and identity (RFC 9110 §12.5.3, Accept-Encoding). What only
// "*" stands for is no reason to send zstd, which many cannot read.
func negotiateCoding(r *http.Request, offered ...coding) (coding, error) {
	header := strings.Join(r.Header.Values("Accept-Encoding"), ",")
	if strings.TrimSpace(header) == "" {
		return identity, nil
	}
	var plain, gzip, zstd choice
	welcome := func(c coding) *choice {
		switch c {
		case identity:
			return &plain
		case gzipped:
			return &gzip
		case zstd1:
			return &zstd
		}
		return nil
	}
	for part := range strings.SplitSeq(header, ",") {
		name, weight, weighted := strings.Cut(part, ";")
		q := 1.0
		if weighted {
			_, weight, _ = strings.Cut(weight, "=")
			q, _ = strconv.ParseFloat(strings.TrimSpace(weight), 64)
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if c := welcome(coding(name)); c != nil {
			c.offer(q, true)
		} else if name == "*" {
			plain.offer(q, false)
			gzip.offer(q, false)
		}
	}
	if !plain.spoken {
		plain.q = leastQuality // not spoken of: acceptable, but anything else is better
	}
	var best coding
	q := 0.0
	for _, c := range offered {
		if welcome(c).q > q {
			best, q = c, welcome(c).q
		}
	}
	if plain.q > q {
		best = identity
	}
	if best == "" {
		return "", problem(http.StatusNotAcceptable, "this is to be had without a content coding or as %v, and Accept-Encoding excludes all of them", offered)
	}
	return best, nil
}

// leastQuality is the smallest weight that a header can give (RFC 9110 §12.4.2,
// Quality Values).
const leastQuality = 0.001

// wantsText reports whether the request is one of people, or of a browser, rather
// than of a program that takes an error as JSON.
func wantsText(r *http.Request) bool {
	var text, json choice
	accepted(r, func(mediaRange string, _ map[string]string, q float64) {
		switch mediaRange {
		case "text/plain", "text/html", "application/xhtml+xml", "text/*":
			text.offer(q, true)
		case "application/problem+json", "application/json":
			json.offer(q, true)
		case "*/*", "application/*":
			json.offer(q, false)
		}
	})
	return text.q > json.q || text.q > 0 && text.q == json.q && !json.named
}

// checkContent checks that the body of a request says of itself that it can be
// read: where it names a type or a coding, that must be one of a topic map. What
// curl calls a file when it is not told is taken, too.
func checkContent(w http.ResponseWriter, r *http.Request) error {
	switch c := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); c {
	case "", "identity", "gzip":
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return problem(http.StatusUnsupportedMediaType, "the content coding %q is not understood; send the document as it is, or gzipped", c)
	}
	given := r.Header.Get("Content-Type")
	if given == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	switch {
	case err != nil:
	case strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "/xml"), media == "text/plain",
		media == "application/octet-stream", media == "application/x-www-form-urlencoded", media == "application/gzip", media == "application/x-gzip":
		return nil
	}
	w.Header().Set("Accept", takenTypes)
	return problem(http.StatusUnsupportedMediaType, "a topic map is expected (%s), not %q", takenTypes, given)
}

const takenTypes = feeds.MediaTypeXTM1 + ", " + feeds.MediaTypeXTM21 + ", application/xml, application/gzip"

func mediaType(v xtm.Version) string {
	if v == xtm.V10 {
		return feeds.MediaTypeXTM1
	}
	return feeds.MediaTypeXTM21
}

func extension(v xtm.Version) string {
	if v == xtm.V10 {
		return ".xtm1"
	}
	return ".xtm21"
}
