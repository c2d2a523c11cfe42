package folder_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// describe describes content as the style demands.
func (s *rsSource) describe(content string) (r resourcesync.Representation) {
	f := resourcesync.NewFixity()
	_, _ = io.WriteString(f, content)
	f.Describe(&r)
	if !s.Hashes {
		r.Hashes = nil
	} else if s.rng.IntN(2) == 0 {
		r.Hashes = r.Hashes[:1] // md5
	}
	if !s.Lengths {
		r.Length, r.Empty = 0, false
	}
	return r
}

var (
	rsFraction = regexp.MustCompile(`\.\d{6}Z`)
	rsTime     = regexp.MustCompile(`\d{4}-[-0-9T:.]*Z`)
	rsChanged  = regexp.MustCompile(`<lastmod>[^<]*</lastmod>|datetime="[^"]*"`)
	rsZone     = regexp.MustCompile(`(\d\d:\d\d:\d\d(?:\.\d+)?)Z`)
	rsLength   = regexp.MustCompile(`length="\d+"`)
	rsLastMod  = regexp.MustCompile(`<lastmod>[^<]*</lastmod>`)
	rsDocMD    = regexp.MustCompile(`<rs:md capability="resourcelist"[^>]*/>`)
)

// style gives a document its style.
func (s *rsSource) style(xml string, changes bool) string {
	if s.Layout != "" {
		xml = rsChanged.ReplaceAllStringFunc(xml, func(stated string) string {
			at, err := time.Parse(time.RFC3339Nano, rsTime.FindString(stated))
			require.NoError(s.t, err)
			return rsTime.ReplaceAllString(stated, at.Format(s.Layout))
		})
	}
	if s.Coarse {
		xml = rsFraction.ReplaceAllString(xml, "Z")
	}
	if s.Zoneless {
		xml = rsZone.ReplaceAllString(xml, "$1")
	}
	if changes && s.OnlyDatetime {
		xml = rsLastMod.ReplaceAllString(xml, "")
	}
	if s.Prefixes {
		xml = strings.NewReplacer("rs:", "x:", "xmlns:rs=", "xmlns:x=", "<urlset xmlns=", "<s:urlset xmlns:s=", "</urlset", "</s:urlset", "<sitemapindex xmlns=", "<s:sitemapindex xmlns:s=", "</sitemapindex", "</s:sitemapindex",
			"<url>", "<s:url>", "</url>", "</s:url>", "<sitemap>", "<s:sitemap>", "</sitemap>", "</s:sitemap>", "<loc>", "<s:loc>", "</loc>", "</s:loc>", "<lastmod>", "<s:lastmod>", "</lastmod>", "</s:lastmod>").Replace(xml)
	}
	return xml
}

// document makes a document.
func (s *rsSource) document(d resourcesync.Document, items ...resourcesync.Item) string {
	var b bytes.Buffer
	if d.Capability != resourcesync.CapabilityList && d.Capability != resourcesync.Description {
		d.Links = append(d.Links, resourcesync.Link{Rel: "up", Href: rsHost + s.home + "/capabilities.xml"})
	}
	w, err := resourcesync.NewWriter(&b, d, resourcesync.Options{Version10: s.OnlyLastMod})
	require.NoError(s.t, err)
	for i := range items {
		require.NoError(s.t, w.Write(&items[i]))
	}
	require.NoError(s.t, w.Close())
	return s.style(b.String(), d.Capability == resourcesync.ChangeList || d.Capability == resourcesync.ChangeDumpManifest)
}

func (s *rsSource) item(uri string) resourcesync.Item {
	i := resourcesync.Item{Loc: uri}
	if s.LastMod {
		i.LastMod = s.modified[uri]
	}
	i.Representation = s.describe(s.pool[uri])
	return i
}

// publishLists publishes the current resources.
func (s *rsSource) publishLists() {
	at := s.now()
	var items []resourcesync.Item
	for _, uri := range slices.Sorted(maps.Keys(s.pool)) {
		items = append(items, s.item(uri))
	}
	head := resourcesync.Document{Capability: resourcesync.ResourceList, Times: resourcesync.Times{At: at}}
	if !s.ListIndex {
		s.pages[s.home+"/list.xml"] = s.document(head, items...)
	} else {
		half := len(items) / 2
		s.pages[s.home+"/list-1.xml"] = s.document(head, items[:half]...)
		s.pages[s.home+"/list-2.xml"] = s.document(head, items[half:]...)
		head.Index = true
		s.pages[s.home+"/list.xml"] = s.document(head, resourcesync.Item{Loc: rsHost + s.home + "/list-1.xml"}, resourcesync.Item{Loc: rsHost + s.home + "/list-2.xml"})
	}
	if s.Plain {
		for path, xml := range s.pages {
			s.pages[path] = rsDocMD.ReplaceAllString(regexp.MustCompile(`<rs:ln [^>]*/>`).ReplaceAllString(xml, ""), "")
		}
	}
}

// publishDump packs the current resources.
func (s *rsSource) publishDump() {
	if s.Dump == "" {
		return
	}
	head := resourcesync.Document{Capability: resourcesync.ResourceDump, Times: resourcesync.Times{At: s.now()}}
	uris := slices.Sorted(maps.Keys(s.pool))
	var items []resourcesync.Item
	for n, part := range [][]string{uris[:len(uris)/2], uris[len(uris)/2:]} {
		path := fmt.Sprintf("%s/dump-%d-%d", s.home, s.clock.UnixMicro(), n)
		i := s.pack(path, resourcesync.Document{Capability: resourcesync.ResourceDumpManifest, Times: resourcesync.Times{At: head.At}}, func(add func(resourcesync.Item, string)) {
			for _, uri := range part {
				add(s.item(uri), s.pool[uri])
			}
		})
		items = append(items, i)
	}
	s.pages[s.home+"/dump.xml"] = s.document(head, items...)
	if s.Dump == "index" {
		s.pages[s.home+"/dump-part.xml"] = s.pages[s.home+"/dump.xml"]
		head.Index = true
		s.pages[s.home+"/dump.xml"] = s.document(head, resourcesync.Item{Loc: rsHost + s.home + "/dump-part.xml"})
	}
}

// pack makes a package and its entry in a dump.
func (s *rsSource) pack(path string, head resourcesync.Document, fill func(add func(resourcesync.Item, string))) resourcesync.Item {
	if s.Coarse { // of a manifest that is in a package
		head.At = head.At.Truncate(time.Second)
	}
	var zip bytes.Buffer
	dir, err := os.MkdirTemp("", "rs")
	require.NoError(s.t, err)
	defer os.RemoveAll(dir)
	copied, err := os.Create(filepath.Join(dir, "m"))
	require.NoError(s.t, err)
	defer copied.Close()
	w, err := resourcesync.NewPackageWriter(&zip, copied, head, resourcesync.PackageOptions{})
	require.NoError(s.t, err)
	fill(func(i resourcesync.Item, content string) {
		if s.Coarse {
			i.LastMod = i.LastMod.Truncate(time.Second)
		}
		if i.Change == resourcesync.Deleted {
			require.NoError(s.t, w.Add(i, nil))
		} else {
			require.NoError(s.t, w.Add(i, strings.NewReader(content)))
		}
	})
	require.NoError(s.t, w.Close())
	s.pages[path+".zip"] = zip.String()
	i := resourcesync.Item{Loc: rsHost + path + ".zip"}
	i.Type = resourcesync.MediaTypeZIP
	if s.Lengths {
		i.Length = int64(zip.Len())
	}
	if s.Dump == "copies" {
		manifest, err := os.ReadFile(copied.Name())
		require.NoError(s.t, err)
		s.pages[path+".xml"] = string(manifest)
		i.Links = []resourcesync.Link{{Rel: resourcesync.RelContents, Href: rsHost + path + ".xml"}}
	}
	return i
}

func (s *rsSource) changeItem(c *rsChange) resourcesync.Item {
	i := resourcesync.Item{Loc: c.uri, LastMod: c.at}
	i.Change = c.kind
	if c.kind != resourcesync.Deleted {
		i.Representation = s.describe(c.content)
	}
	return i
}

// changesBetween are those after from, up to until.
func (s *rsSource) changesBetween(from, until time.Time) (items []resourcesync.Item) {
	for i := range s.log {
		if c := &s.log[i]; c.at.After(from) && !c.at.After(until) {
			items = append(items, s.changeItem(c))
		}
	}
	return items
}

// publishChanges publishes the changes: in the list that is open, or in one that is closed now.
func (s *rsSource) publishChanges() {
	switch s.Changes {
	case "", "open":
		s.publishOpen()
	case "closed":
		s.closeChanges()
	default:
		if s.rng.IntN(3) == 0 {
			s.publishOpen()
		} else {
			s.closeChanges()
		}
	}
}

// closeChanges publishes the changes in a list that is closed, and begins another.
func (s *rsSource) closeChanges() {
	from, now := s.openFrom(), s.now()
	if items := s.changesBetween(from, now); len(items) > 0 {
		head := s.changeHead(from)
		head.Until = now
		sealed := rsSealed{fmt.Sprintf("%s/changes-%d.xml", s.home, now.UnixMicro()), from, now}
		s.pages[sealed.path] = s.document(head, items...)
		s.sealed = append(s.sealed, sealed)
	}
	s.publishOpen()
}

// openFrom is when the open list begins.
func (s *rsSource) openFrom() time.Time {
	if n := len(s.sealed); n > 0 {
		return s.sealed[n-1].until
	}
	return s.horizon
}

func (s *rsSource) changeHead(from time.Time) resourcesync.Document {
	head := resourcesync.Document{Capability: resourcesync.ChangeList, Times: resourcesync.Times{From: from}}
	if s.Changes == "closedIndex" {
		head.Links = []resourcesync.Link{{Rel: resourcesync.RelIndex, Href: rsHost + s.home + "/changes.xml"}}
	}
	return head
}

// publishOpen publishes the open list, and what leads to it.
func (s *rsSource) publishOpen() {
	from, now := s.openFrom(), s.now()
	head := s.changeHead(from)
	switch s.Changes {
	case "":
	case "open":
		s.pages[s.home+"/changes.xml"] = s.document(head, s.changesBetween(from, now)...)
	case "closed":
		if len(s.sealed) == 0 {
			head.Until = now
			s.pages[s.home+"/changes.xml"] = s.document(head)
		}
	default:
		open := s.home + "/changes-open.xml"
		s.pages[open] = s.document(head, s.changesBetween(from, now)...)
		var items []resourcesync.Item
		for _, one := range append(s.sealed, rsSealed{path: open, from: from}) {
			i := resourcesync.Item{Loc: rsHost + one.path}
			if s.Changes != "bareIndex" {
				i.From, i.Until = one.from, one.until
			}
			items = append(items, i)
		}
		s.pages[s.home+"/changes.xml"] = s.document(resourcesync.Document{Index: true, Capability: resourcesync.ChangeList, Times: resourcesync.Times{From: s.horizon}}, items...)
	}
	s.publishChangeDump(now)
	s.publishCapabilities()
}

func (s *rsSource) publishChangeDump(now time.Time) {
	if !s.ChangeDump || s.Changes == "" {
		return
	}
	if todo := s.log[s.packed:]; len(todo) > 0 {
		from := s.horizon
		if n := len(s.dumpedAt); n > 0 {
			from = s.dumpedAt[n-1].Until
		}
		times := resourcesync.Times{From: from, Until: now}
		i := s.pack(fmt.Sprintf("%s/changed-%d", s.home, now.UnixMicro()), resourcesync.Document{Capability: resourcesync.ChangeDumpManifest, Times: times}, func(add func(resourcesync.Item, string)) {
			for i := range todo {
				add(s.changeItem(&todo[i]), todo[i].content)
			}
		})
		i.Times = times
		s.packed, s.dumpedAt = len(s.log), append(s.dumpedAt, i)
	}
	s.pages[s.home+"/changedump.xml"] = s.document(resourcesync.Document{Capability: resourcesync.ChangeDump, Times: resourcesync.Times{From: s.horizon}}, s.dumpedAt...)
}

func (s *rsSource) publishCapabilities() {
	var items []resourcesync.Item
	add := func(c resourcesync.Capability, path string) {
		i := resourcesync.Item{Loc: rsHost + path}
		i.Capability = c
		items = append(items, i)
	}
	if !s.DumpOnly {
		add(resourcesync.ResourceList, s.home+"/list.xml")
	}
	if s.Dump != "" {
		add(resourcesync.ResourceDump, s.home+"/dump.xml")
	}
	switch {
	case s.Changes == "":
	case strings.HasPrefix(s.Changes, "closed") && len(s.sealed) > 0:
		add(resourcesync.ChangeList, s.sealed[len(s.sealed)-1].path)
	default:
		add(resourcesync.ChangeList, s.home+"/changes.xml")
	}
	if s.ChangeDump && s.Changes != "" {
		add(resourcesync.ChangeDump, s.home+"/changedump.xml")
	}
	s.pages[s.home+"/capabilities.xml"] = s.document(resourcesync.Document{Capability: resourcesync.CapabilityList}, items...)
	one := resourcesync.Item{Loc: rsHost + s.home + "/capabilities.xml"}
	one.Capability = resourcesync.CapabilityList
	s.pages["/.well-known/resourcesync"] = s.document(resourcesync.Document{Capability: resourcesync.Description}, one)
}

// publish publishes all that belongs together.
func (s *rsSource) publish() {
	s.publishLists()
	s.publishDump()
	s.publishChanges()
}
