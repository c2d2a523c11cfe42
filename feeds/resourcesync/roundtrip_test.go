package resourcesync

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tmshare/tmshare/internal/testenv"
)

// maker draws documents that Z39.99 allows, of all kinds and with all
// attributes. With version10, the schema of version 1.0 accepts them too.
type maker struct {
	t         *rapid.T
	version10 bool
	from      time.Time
	kind      kind
}

var capabilities = []Capability{
	Description, CapabilityList, ResourceList, ResourceDump, ResourceDumpManifest, ChangeList, ChangeDump, ChangeDumpManifest,
}

func drawDocument(t *rapid.T, version10 bool) (Document, []Item) {
	d := Document{Capability: rapid.SampledFrom(capabilities).Draw(t, "capability")}
	m := &maker{t: t, version10: version10, kind: kinds[d.Capability], from: m2026()}
	d.Index = m.kind.indexed && m.maybe()
	if m.kind.snapshot {
		d.At = m.later()
		d.Completed = m.maybeLater()
	}
	if m.kind.interval {
		d.From = m.later()
	}
	d.Links = m.links(RelUp, RelIndex, RelDescribedBy, "http://example.com/rel#x")
	var items []Item
	n := rapid.IntRange(1, 6).Draw(t, "items")
	if d.Capability == CapabilityList {
		n = min(n, 5)
	}
	for i := range n {
		items = append(items, m.item(&d, i, i == n-1))
	}
	if m.kind.interval {
		d.Until = m.maybeLater()
	}
	return d, items
}

func m2026() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func (m *maker) maybe() bool { return rapid.Bool().Draw(m.t, "maybe") }

// later returns a time that no earlier one is after.
func (m *maker) later() time.Time {
	m.from = m.from.Add(time.Duration(rapid.IntRange(1, 1e10).Draw(m.t, "µs")) * time.Microsecond)
	return m.from
}

func (m *maker) maybeLater() time.Time {
	if m.maybe() {
		return m.later()
	}
	return time.Time{}
}

func (m *maker) item(d *Document, n int, last bool) Item {
	i := Item{Loc: fmt.Sprintf("%s/%d", m.uri(), n)}
	listed := d.Index || m.kind.packages
	relations := []string{RelAlternate, RelCanonical, RelDescribes, RelCollection, RelVia, "profile"}
	if m.kind.changes && !d.Index {
		i.Change = rapid.SampledFrom([]Change{Created, Updated, Deleted}).Draw(m.t, "change")
		i.LastMod = m.later()
		i.Datetime = i.LastMod
	} else {
		if listed && m.kind.snapshot && m.maybe() {
			i.At, i.Completed = m.later(), m.maybeLater()
		}
		if listed && m.kind.interval {
			i.From = m.later()
			if !last {
				i.Until = m.later()
			}
		}
		i.LastMod = m.maybeLater()
	}
	if !i.LastMod.IsZero() {
		relations = append(relations, RelTimeMap)
	}
	switch d.Capability {
	case Description:
		if !d.Index {
			i.Capability = CapabilityList
		}
	case CapabilityList:
		i.Capability = []Capability{ResourceList, ResourceDump, ChangeList, ChangeDump, ChangeNotification}[n]
	}
	if !d.Index && m.maybe() {
		i.ChangeFreq = rapid.SampledFrom([]string{"always", "daily", "never"}).Draw(m.t, "changefreq")
	}
	i.Representation = m.representation()
	if m.kind.manifest && i.Change != Deleted {
		i.Path = m.path()
	}
	i.Links = m.links(relations...)
	if m.kind.packages && !d.Index {
		i.Links = append(i.Links, Link{Rel: RelContents, Href: m.uri()})
	}
	if !i.LastMod.IsZero() && m.maybe() {
		i.Links = append(i.Links, Link{Rel: RelMemento, Href: m.uri(), Representation: i.Representation}, Link{Rel: RelTimeGate, Href: m.uri()})
		i.Links[len(i.Links)-2].Path = ""
	}
	if m.kind.changes && !d.Index && m.maybe() {
		patch := Link{Rel: RelPatch, Href: m.uri(), Representation: Representation{Type: "application/json-patch"}}
		if m.kind.manifest {
			patch.Path = m.path()
		}
		i.Links = append(i.Links, patch)
	}
	return i
}

func (m *maker) uri() string {
	return "http://example.com/" + rapid.StringMatching(`([a-zA-Z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2}){1,20}`).Draw(m.t, "uri")
}

func (m *maker) path() string {
	return "/" + rapid.StringMatching(`[a-zA-Z0-9._ &<>"'é-]{0,9}[a-z&é]`).Draw(m.t, "path")
}

func (m *maker) links(relations ...string) []Link {
	var links []Link
	for range rapid.IntRange(0, 3).Draw(m.t, "links") {
		l := Link{
			Rel: rapid.SampledFrom(relations).Draw(m.t, "rel"), Href: m.uri(), Modified: m.maybeLater(),
			Pri: rapid.IntRange(0, 999_999).Draw(m.t, "pri"), Representation: m.representation(),
		}
		links = append(links, l)
	}
	return links
}

func (m *maker) representation() Representation {
	var r Representation
	if m.maybe() {
		digest := rapid.StringMatching(`[0-9a-f]{32}`).Draw(m.t, "digest")
		r.Hashes = []Hash{{MD5, digest}, {SHA256, strings.Repeat(digest, 2)}, {"x", digest}}
		r.Length = rapid.Int64Range(0, 1<<62).Draw(m.t, "length")
		r.Empty = r.Length == 0
		types := []string{"text/html", "application/json"}
		if !m.version10 {
			types = append(types, "application/x-tm+xml;version=2.1", `text/plain; charset="utf-8"`)
		}
		r.Type = rapid.SampledFrom(types).Draw(m.t, "type")
		r.Encoding = rapid.SampledFrom([]string{"", "gzip", "br, gzip"}).Draw(m.t, "encoding")
	}
	return r
}

// A written document is read again with all its attributes.
func TestRoundTrip(t *testing.T) {
	testenv.Check(t, 25, 100, func(t *rapid.T) {
		d, items := drawDocument(t, false)
		var b bytes.Buffer
		require.NoError(t, writeAll(&b, d, items, Options{}))
		again, againItems, err := readString(b.String())
		require.NoError(t, err, b.String())
		require.Equal(t, d, again)
		require.Equal(t, items, againItems)

		var twice bytes.Buffer
		require.NoError(t, writeAll(&twice, again, againItems, Options{}))
		require.Equal(t, b.String(), twice.String())
	})
}
