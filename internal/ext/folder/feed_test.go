package folder_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// The parts of small feeds of tests.

type entry struct {
	id      string
	at      int      // minutes since the beginning
	links   []string // "TYPE PATH", "PATH"; none: it is deleted
	content string   // the text in place of atom:content; empty for a deletion
}

type document struct {
	feed     string // id; default "urn:feed"
	prev     string // path
	next     string // path
	complete bool
	archive  bool
	entries  []entry
}

var beginning = time.Date(2012, 1, 1, 0, 0, 0, 0, time.UTC)

func at(minutes int) time.Time { return beginning.Add(time.Duration(minutes) * time.Minute) }

// active returns an entry of a record that is at /r/ID.
func active(id string, at int) entry {
	return entry{id: id, at: at, links: []string{"application/xml /r/" + id}}
}

func deletion(id string, at int) entry { return entry{id: id, at: at} }

func (d document) String() string {
	var b strings.Builder
	id := d.feed
	if id == "" {
		id = "urn:feed"
	}
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>%s</id><title>T</title>`, id)
	latest := 0
	for _, e := range d.entries {
		latest = max(latest, e.at)
	}
	fmt.Fprintf(&b, `<updated>%s</updated>`, at(latest).Format(time.RFC3339))
	if d.complete {
		b.WriteString(`<fh:complete/>`)
	}
	if d.archive {
		b.WriteString(`<fh:archive/>`)
	}
	if d.prev != "" {
		fmt.Fprintf(&b, `<link rel="prev-archive" href="%s"/>`, d.prev)
	}
	if d.next != "" {
		fmt.Fprintf(&b, `<link rel="next" href="%s"/>`, d.next)
	}
	for _, e := range d.entries {
		e.write(&b)
	}
	b.WriteString(`</feed>`)
	return b.String()
}

func (e entry) write(b *strings.Builder) {
	b.WriteString("<entry><id>")
	_ = xml.EscapeText(b, []byte(e.id))
	fmt.Fprintf(b, "</id><title>T</title><updated>%s</updated>", at(e.at).Format(time.RFC3339))
	for _, link := range e.links {
		kind, path, typed := strings.Cut(link, " ")
		if !typed {
			kind, path = "", link
		}
		b.WriteString(`<link rel="alternate"`)
		if typed {
			b.WriteString(` type="`)
			_ = xml.EscapeText(b, []byte(kind))
			b.WriteString(`"`)
		}
		b.WriteString(` href="`)
		_ = xml.EscapeText(b, []byte(path))
		b.WriteString(`"/>`)
	}
	if len(e.links) == 0 && e.content == "" {
		b.WriteString("<content/>")
	}
	b.WriteString(e.content + "</entry>")
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func etagOf(s string) string { return `"` + sha(s)[:16] + `"` }
