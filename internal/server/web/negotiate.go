package web

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
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

// choice is how welcome one form of an answer is: by the most specific range that includes it,
// by the most welcome one where several are equally specific (RFC 9110 §12.5.1, Accept).
type choice struct {
	q  float64
	by specificity // of the range; 0: none includes it
}

type specificity int

const (
	anything specificity = iota + 1 // */*, or * of codings
	anyOf                           // type/*; type/xml, which includes forms of XML without being their type
	named                           // type/subtype
	exactly                         // with parameters
)

func (c *choice) offer(q float64, by specificity) {
	if by > c.by || by == c.by && q > c.q {
		c.q, c.by = q, by
	}
}

// negotiateCoding chooses the content coding of an answer among the offered ones, the better ones first, and identity
// (RFC 9110 §12.5.3, Accept-Encoding). "*" alone does not select zstd, which many clients cannot read.
func negotiateCoding(r *http.Request, offered ...Coding) (Coding, error) {
	header := strings.Join(r.Header.Values("Accept-Encoding"), ",")
	if strings.TrimSpace(header) == "" {
		return Identity, nil
	}
	var plain, gzip, zstd choice
	welcome := func(c Coding) *choice {
		switch c {
		case Identity:
			return &plain
		case Gzipped:
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
		if c := welcome(Coding(name)); c != nil {
			c.offer(q, named)
		} else if name == "*" {
			plain.offer(q, anything)
			gzip.offer(q, anything)
		}
	}
	if plain.by == 0 {
		plain.q = leastQuality // not mentioned: acceptable as a last choice
	}
	var best Coding
	q := 0.0
	for _, c := range offered {
		if welcome(c).q > q {
			best, q = c, welcome(c).q
		}
	}
	if plain.q > q {
		best = Identity
	}
	if best == "" {
		return "", Problemf(http.StatusNotAcceptable,
			"this is available without a content coding or as %v, and Accept-Encoding excludes all of them", offered)
	}
	return best, nil
}

// leastQuality is the smallest weight that a header can give (RFC 9110 §12.4.2,
// Quality Values).
const leastQuality = 0.001

// wantsText reports whether the request is one of people, or of a browser, rather
// than of a program that takes an error as JSON.
func wantsText(r *http.Request) bool {
	q := qualities(r, []Form{problemAsJSON, problemAsText})
	json, text := q[0], q[1]
	return text.q > json.q || text.q > 0 && text.q == json.q && text.by > json.by
}

var (
	problemAsJSON = NewForm("", "application/problem+json", "application/json")
	problemAsText = NewForm("", "text/plain", "text/html", "application/xhtml+xml")
)
