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

// acceptsAtom checks that the request takes an Atom document.
func acceptsAtom(r *http.Request) error {
	ok := false
	accepted(r, func(mediaRange string, _ map[string]string, q float64) {
		switch mediaRange {
		case "*/*", "application/*", "text/*", feeds.MediaTypeAtom, "application/xml", "text/xml":
			ok = ok || q > 0
		}
	})
	if !ok {
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
	best := map[xtm.Version]float64{}
	exact := map[xtm.Version]bool{}
	offer := func(v xtm.Version, q float64, named bool) {
		if named && !exact[v] || named == exact[v] && q > best[v] {
			best[v], exact[v] = q, named
		}
	}
	accepted(r, func(mediaRange string, params map[string]string, q float64) {
		switch mediaRange {
		case "*/*", "application/*", "application/xml":
			offer(xtm.V10, q, false)
			offer(xtm.V21, q, false)
		case "text/*", "text/xml":
			offer(xtm.V10, q, false)
		case "application/xtm1+xml", "text/xtm1+xml", "application/xtm+xml":
			offer(xtm.V10, q, true)
		case "application/x-tm+xml":
			switch params["version"] {
			case "1.0":
				offer(xtm.V10, q, true)
			case "", "2.1":
				offer(xtm.V21, q, true)
			}
		}
	})
	switch {
	case best[xtm.V10] == 0 && best[xtm.V21] == 0:
		return "", problem(http.StatusNotAcceptable, "this is to be had as %s or %s", feeds.MediaTypeXTM1, feeds.MediaTypeXTM21)
	case best[xtm.V21] > best[xtm.V10]:
		return xtm.V21, nil
	}
	return xtm.V10, nil
}

// acceptsGzip reports whether the request takes the gzip content coding.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		coding = strings.TrimSpace(coding)
		if (coding == "gzip" || coding == "*") && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
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
