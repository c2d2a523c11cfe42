package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// HTTPTime returns a time as headers have it (RFC 9110 §5.6.7, Date/Time Formats).
func HTTPTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// AddLink adds a link with parameters to the header (RFC 8288 §3, Link
// Serialisation in HTTP Headers).
func AddLink(h http.Header, href, rel string, params ...string) {
	h.Add("Link", LinkValue(href, rel, params...))
}

// LinkValue returns a link as Link headers and link-format documents have it (RFC 8288 §3,
// RFC 6690 §2).
func LinkValue(href, rel string, params ...string) string {
	link := fmt.Sprintf(`<%s>; rel=%q`, href, rel)
	for i := 0; i < len(params); i += 2 {
		link += fmt.Sprintf(`; %s=%q`, params[i], params[i+1])
	}
	return link
}

// WriteJSON answers with a value that no cache keeps.
func WriteJSON(w http.ResponseWriter, status int, value any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(value)
}

// WriteText answers with plain text that no cache keeps.
func WriteText(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, err := w.Write([]byte(text))
	return err
}
