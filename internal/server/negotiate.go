package server

import (
	"mime"
	"net/http"
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
	q     float64
	named bool
}

func (c *choice) offer(q float64, named bool) {
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

// negotiateXTM chooses the XTM version of an answer: by the ending of the URL,
// else by the Accept header, XTM 1.0 where several are equally welcome.
func negotiateXTM(r *http.Request, ext string) (xtm.Version, error) {
	switch ext {
	case ".xtm1":
		return xtm.V10, nil
	case ".xtm21":
		return xtm.V21, nil
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
	switch {
	case v10.q == 0 && v21.q == 0:
		return "", problem(http.StatusNotAcceptable, "this is to be had as %s or %s", feeds.MediaTypeXTM1, feeds.MediaTypeXTM21)
	case v21.q > v10.q:
		return xtm.V21, nil
	}
	return xtm.V10, nil
}

// acceptsGzip reports whether the request takes the gzip content coding.
func acceptsGzip(r *http.Request) bool {
	var packed choice
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, weight, weighted := strings.Cut(part, ";")
		q := 1.0
		if weighted {
			_, weight, _ = strings.Cut(weight, "=")
			q, _ = strconv.ParseFloat(strings.TrimSpace(weight), 64)
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip":
			packed.offer(q, true)
		case "*":
			packed.offer(q, false)
		}
	}
	return packed.q > 0
}

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
