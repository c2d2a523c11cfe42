package resourcesync_test

import (
	"archive/zip"
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/ext/resourcesync/resources"
	"github.com/tmshare/tmshare/internal/store"
	"github.com/tmshare/tmshare/internal/testenv"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// reader reads all documents that a Source offers of one collection, by its links alone, and compares them with the
// rules of Z39.99 and with the store.
type reader struct {
	*node
	name      string
	documents int
	packages  int
	patches   int // that were there

	list, dump   map[string]string // state of the lists and of the packages: URI → bytes or hash
	closed       []listed          // change lists
	open, plain  *listed
	at           time.Time
	capabilities map[resourcesync.Capability]string
}

// listed is a document that has been read.
type listed struct {
	url string
	resourcesync.Document
	items []resourcesync.Item
}

func (d *reader) document(url string, index bool, capability resourcesync.Capability) *listed {
	t := d.T
	t.Helper()
	a := d.MustGet(url)
	d.documents++
	require.Equal(t, resourcesync.MediaTypeXML, a.MediaType(), url)
	doc := d.parse(url, a.Bytes)
	require.Equal(t, capability, doc.Capability, url)
	require.Equal(t, index, doc.Index, url)
	require.LessOrEqual(t, len(doc.items), resourcesync.MaxItems)
	packed := d.MustGet(url, "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
		require.Contains(t, a.Header.Get("Cache-Control"), "max-age=5")
	} else {
		require.Equal(t, string(a.Bytes), string(packed.Plain(t)), "the gzipped copy of %s", url)
	}
	again := d.Get(url, "If-None-Match", a.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.StatusCode, url)
	return doc
}

func (d *reader) parse(url string, body []byte) *listed {
	d.T.Helper()
	r, err := resourcesync.Read(bytes.NewReader(body), url, resourcesync.Limits{})
	require.NoError(d.T, err, "%s: %s", url, body)
	doc := &listed{url: url}
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(d.T, err)
		doc.items = append(doc.items, item)
	}
	doc.Document = r.Document
	return doc
}

// leads checks where a link of a document leads to.
func (d *reader) leads(doc *listed, rel, to string) {
	d.T.Helper()
	links := doc.Find(rel)
	if to == "" {
		require.Empty(d.T, links, "%s of %s", rel, doc.url)
		return
	}
	require.Len(d.T, links, 1, "%s of %s", rel, doc.url)
	require.Equal(d.T, to, links[0].Href, "%s of %s", rel, doc.url)
}

func (d *reader) describedBy(links []resourcesync.Link) served.Answer {
	d.T.Helper()
	require.Len(d.T, links, 1)
	a := d.MustGet(links[0].Href)
	require.Equal(d.T, "text/html", a.MediaType())
	return a
}

// visit walks from the Source Description to everything that is offered of a collection.
func (n *node) visit(name string) *reader {
	t := n.T
	t.Helper()
	d := &reader{node: n, name: name, list: map[string]string{}, dump: map[string]string{}, capabilities: map[resourcesync.Capability]string{}}
	wellKnown, err := resourcesync.WellKnown(n.URL("/topicmaps"))
	require.NoError(t, err)
	source := d.document(wellKnown, false, resourcesync.Description)
	d.describedBy(source.Find(resourcesync.RelDescribedBy))
	at := slices.IndexFunc(source.items, func(i resourcesync.Item) bool { return strings.Contains(i.Loc, "/topicmaps/"+name+"/") })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, resourcesync.CapabilityList, source.items[at].Capability)
	capabilityList := source.items[at].Loc
	page := d.describedBy(source.items[at].Find(resourcesync.RelDescribedBy))
	found, err := resourcesync.DiscoverInHTML(bytes.NewReader(page.Bytes), n.URL("/topicmaps/"+name+".html"))
	require.NoError(t, err)
	require.Equal(t, []string{capabilityList}, found)

	capabilities := d.document(capabilityList, false, resourcesync.CapabilityList)
	d.leads(capabilities, resourcesync.RelUp, wellKnown)
	d.describedBy(capabilities.Find(resourcesync.RelDescribedBy))
	for _, item := range capabilities.items {
		require.NotContains(t, d.capabilities, item.Capability)
		d.capabilities[item.Capability] = item.Loc
	}
	robots, err := resourcesync.DiscoverInRobots(bytes.NewReader(n.MustGet("/robots.txt").Bytes), n.URL("/robots.txt"))
	require.NoError(t, err)
	if list := d.capabilities[resourcesync.ResourceList]; list != "" {
		require.Contains(t, robots, list)
		d.readResources(capabilityList)
		d.readDump(capabilityList)
		require.Len(t, d.dump, len(d.list), "the resources of the list are in the dump")
	} else {
		empty := d.document(n.URL("/topicmaps/"+name+"/resourcesync/resourcelist.xml"), false, resourcesync.ResourceList)
		require.Empty(t, empty.items)
		d.at = empty.At
	}
	d.readChanges(capabilityList)
	if d.capabilities[resourcesync.ChangeDump] != "" {
		d.readChangeDump(capabilityList)
	} else {
		require.Empty(t, d.closed)
	}
	return d
}

// visited visits once nothing is due: a change list that is closed between two requests would be
// in the answers to both, or to neither.
func (n *node) visited(name string) *reader {
	n.T.Helper()
	n.settle(name)
	return n.visit(name)
}

func (d *reader) readResources(up string) {
	t, url := d.T, d.capabilities[resourcesync.ResourceList]
	a := d.MustGet(url)
	parts := []*listed{}
	if index := d.parse(url, a.Bytes); index.Index {
		index = d.document(url, true, resourcesync.ResourceList)
		d.leads(index, resourcesync.RelUp, up)
		require.Equal(t, index.At, index.Completed)
		for _, item := range index.items {
			part := d.document(item.Loc, false, resourcesync.ResourceList)
			require.Equal(t, index.Times, part.Times, "one moment")
			require.Equal(t, index.Times, item.Times)
			d.leads(part, resourcesync.RelIndex, url)
			parts = append(parts, part)
		}
		require.NotEmpty(t, parts)
	} else {
		parts = append(parts, d.document(url, false, resourcesync.ResourceList))
		d.leads(parts[0], resourcesync.RelIndex, "")
	}
	for _, part := range parts {
		d.leads(part, resourcesync.RelUp, up)
		d.at = part.At
		require.False(t, part.At.IsZero())
		require.NotEmpty(t, part.items)
		for i := range part.items {
			item := &part.items[i]
			require.NotContains(t, d.list, item.Loc, "listed once")
			require.False(t, item.LastMod.After(part.At))
			d.list[item.Loc] = d.described(item)
			for _, rel := range []string{resourcesync.RelCollection, resourcesync.RelTimeGate} {
				_, ok := item.Link(rel)
				require.True(t, ok, rel)
			}
		}
	}
}

// described checks the metadata of a resource in an item, and returns its hash.
func (d *reader) described(item *resourcesync.Item) string {
	require.Len(d.T, item.Hashes, 2, "%s", item.Loc)
	require.Equal(d.T, "md5", item.Hashes[0].Algorithm)
	require.Equal(d.T, "sha-256", item.Hashes[1].Algorithm)
	require.Positive(d.T, item.Length)
	alternates := item.Find(resourcesync.RelAlternate)
	require.NotEmpty(d.T, alternates)
	require.Equal(d.T, item.Type, alternates[0].Type)
	return item.Hashes[1].Digest
}

// open gets a package and checks it from the outside.
func (d *reader) openPackage(item *resourcesync.Item) (*resourcesync.Package, *listed) {
	t := d.T
	a := d.MustGet(item.Loc)
	d.packages++
	require.Equal(t, resourcesync.MediaTypeZIP, a.MediaType())
	d.measured(item.Loc, item.Representation, a.Bytes)
	require.Contains(t, a.Header.Get("Cache-Control"), "immutable")
	ranged := d.Get(item.Loc, "Range", "bytes=10-29")
	require.Equal(t, http.StatusPartialContent, ranged.StatusCode)
	require.Equal(t, a.Bytes[10:30], ranged.Bytes)

	contents, ok := item.Link(resourcesync.RelContents)
	require.True(t, ok)
	outer := d.MustGet(contents.Href).Bytes
	z, err := zip.NewReader(bytes.NewReader(a.Bytes), int64(len(a.Bytes)))
	require.NoError(t, err)
	inner, err := z.Open("manifest.xml")
	require.NoError(t, err)
	b, err := io.ReadAll(inner)
	require.NoError(t, err)
	require.Equal(t, string(outer), string(b), "the manifests")
	if unzip, err := exec.LookPath("unzip"); err == nil {
		file := filepath.Join(t.TempDir(), "package.zip")
		require.NoError(t, os.WriteFile(file, a.Bytes, 0o600))
		out, err := exec.Command(unzip, "-t", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
	} else {
		t.Log("NOT CHECKED: packages with unzip -t, which is not installed")
	}
	p, err := resourcesync.OpenPackage(bytes.NewReader(a.Bytes), int64(len(a.Bytes)), item.Loc, resourcesync.PackageLimits{})
	require.NoError(t, err)
	return p, d.parse(contents.Href, outer)
}

// measured checks bytes against their metadata.
func (d *reader) measured(uri string, r resourcesync.Representation, body []byte) {
	d.T.Helper()
	require.EqualValues(d.T, r.Length, len(body), uri)
	require.NotEmpty(d.T, r.Hashes, uri)
	for _, h := range r.Hashes {
		sum := sha256.Sum256(body)
		want := hex.EncodeToString(sum[:])
		if h.Algorithm == "md5" {
			sum := md5.Sum(body)
			want = hex.EncodeToString(sum[:])
		}
		require.Equal(d.T, want, h.Digest, "%s of %s", h.Algorithm, uri)
	}
}

func (d *reader) unpack(p *resourcesync.Package, uri string, r resourcesync.Representation) string {
	content, err := p.Open(uri, r)
	require.NoError(d.T, err)
	defer content.Close()
	b, err := io.ReadAll(content)
	require.NoError(d.T, err)
	d.measured(uri, r, b)
	return string(b)
}

func (d *reader) readDump(up string) {
	t := d.T
	dump := d.document(d.capabilities[resourcesync.ResourceDump], false, resourcesync.ResourceDump)
	d.leads(dump, resourcesync.RelUp, up)
	require.Equal(t, d.at, dump.At)
	for i := range dump.items {
		require.Equal(t, dump.Times, dump.items[i].Times)
		p, manifest := d.openPackage(&dump.items[i])
		require.Equal(t, resourcesync.ResourceDumpManifest, manifest.Capability)
		d.leads(manifest, resourcesync.RelUp, up)
		require.Equal(t, dump.Times, manifest.Times)
		for _, item := range manifest.items {
			require.NotContains(t, d.dump, item.Loc)
			require.True(t, strings.HasPrefix(item.Path, "/"))
			d.dump[item.Loc] = d.unpack(p, item.Loc, item.Representation)
			require.Equal(t, d.list[item.Loc], item.Hashes[1].Digest, "the list and the dump")
			for _, l := range item.Find(resourcesync.RelAlternate)[1:] {
				d.unpack(p, l.Href, l.Representation)
			}
		}
	}
}

// readChanges reads the change lists by the index, if there is one, and the plain one.
func (d *reader) readChanges(up string) {
	t, base := d.T, d.URL("/topicmaps/"+d.name+"/resourcesync/")
	index := d.document(base+"changelist-index.xml", true, resourcesync.ChangeList)
	d.leads(index, resourcesync.RelUp, up)
	require.True(t, index.Until.IsZero())
	require.False(t, index.From.After(d.at), "the lists go back to the moment of the list of resources")
	from, last := index.From, time.Time{}
	for i, item := range index.items {
		list := d.document(item.Loc, false, resourcesync.ChangeList)
		d.leads(list, resourcesync.RelUp, up)
		d.leads(list, resourcesync.RelIndex, index.url)
		require.Equal(t, item.Times, list.Times, "as the index states")
		require.Equal(t, from, list.From, "each goes on where the one before ends")
		from = list.Until
		d.inOrder(list, &last)
		if i == len(index.items)-1 {
			require.True(t, list.Until.IsZero())
			d.open = list
			break
		}
		require.False(t, list.Until.IsZero())
		require.NotEmpty(t, list.items)
		require.Equal(t, list.Until, item.LastMod)
		require.Equal(t, list.Until, list.items[len(list.items)-1].LastMod)
		d.closed = append(d.closed, *list)
	}
	require.NotNil(t, d.open)

	d.plain = d.document(base+"changelist.xml", false, resourcesync.ChangeList)
	d.leads(d.plain, resourcesync.RelUp, up)
	d.leads(d.plain, resourcesync.RelIndex, "")
	require.True(t, d.plain.Until.IsZero())
	require.False(t, d.plain.From.After(d.at), "the plain list goes back to the moment of the list of resources")
	last = time.Time{}
	d.inOrder(d.plain, &last)

	all := d.plain
	switch offered := d.capabilities[resourcesync.ChangeList]; offered {
	case index.url:
		require.NotEmpty(t, d.closed)
		require.True(t, d.closed[0].From.Before(d.plain.From), "else there is no need for an index")
		return
	default:
		require.Equal(t, d.plain.url, offered)
		require.False(t, all.From.After(index.From), "it has all that the index has")
	}
}

func (d *reader) inOrder(list *listed, last *time.Time) {
	for i := range list.items {
		item := &list.items[i]
		require.Equal(d.T, item.LastMod, item.Datetime)
		require.True(d.T, item.LastMod.After(*last), "changes in order")
		require.True(d.T, item.LastMod.After(list.From))
		*last = item.LastMod
		_, hasMap := item.Link(resourcesync.RelTimeMap)
		require.True(d.T, hasMap)
		if item.Change == resourcesync.Deleted {
			require.Empty(d.T, item.Hashes)
			continue
		}
		for _, patch := range item.Find(resourcesync.RelPatch) {
			if d.checkPatch(d.name, item, patch) {
				d.patches++
			}
		}
		if memento, ok := item.Link(resourcesync.RelMemento); ok {
			require.Equal(d.T, item.Hashes, memento.Hashes)
			require.Equal(d.T, item.Length, memento.Length)
			require.Equal(d.T, item.Type, memento.Type)
		}
	}
}

func (d *reader) readChangeDump(up string) {
	t := d.T
	dump := d.document(d.capabilities[resourcesync.ChangeDump], false, resourcesync.ChangeDump)
	d.leads(dump, resourcesync.RelUp, up)
	require.Len(t, dump.items, len(d.closed))
	require.True(t, dump.Until.IsZero())
	for i := range dump.items {
		list := d.closed[i]
		require.Equal(t, list.Times, dump.items[i].Times)
		p, manifest := d.openPackage(&dump.items[i])
		require.Equal(t, resourcesync.ChangeDumpManifest, manifest.Capability)
		require.Equal(t, list.Times, manifest.Times)
		d.leads(manifest, resourcesync.RelUp, up)
		require.Len(t, manifest.items, len(list.items))
		for j, item := range manifest.items {
			require.Equal(t, list.items[j].Loc, item.Loc)
			require.Equal(t, list.items[j].Change, item.Change)
			require.Equal(t, list.items[j].LastMod, item.LastMod)
			content := ""
			if item.Change != resourcesync.Deleted {
				content = d.unpack(p, item.Loc, item.Representation)
				for _, l := range item.Find(resourcesync.RelAlternate)[1:] {
					d.unpack(p, l.Href, l.Representation)
				}
			}
			if !item.LastMod.After(d.at) {
				continue
			}
			if item.Change == resourcesync.Deleted {
				delete(d.dump, item.Loc)
			} else {
				d.dump[item.Loc] = content
			}
		}
	}
}

// live returns the topics of the collection as they are served, by URL.
func (d *reader) live() map[string]string {
	live := map[string]string{}
	require.NoError(d.T, d.Store.View(d.T.Context(), d.name, func(v *store.View) error {
		for e, err := range v.Records() {
			require.NoError(d.T, err)
			url := d.URL("/topicmaps/" + d.name + "/topics/" + fragment.Key(e.TopicSI))
			live[url] = ""
		}
		return nil
	}))
	for url := range live {
		a := d.MustGet(url)
		live[url] = string(a.Bytes)
		require.Equal(d.T, []string{d.URL("/topicmaps/" + d.name + "/resourcesync/capabilitylist.xml")},
			resourcesync.DiscoverInHeader(a.Header.Values("Link"), url))
	}
	return live
}

// check compares the list or the dump, with all changes since, with the resources served now: so nothing may change
// meanwhile.
func (d *reader) check() {
	t := d.T
	live := d.live()
	latest := map[string]*resourcesync.Item{}
	byIndex, byPlain := maps.Clone(d.list), maps.Clone(d.list)
	apply := func(state map[string]string, list *listed) {
		for i := range list.items {
			item := &list.items[i]
			if !item.ChangeTime().After(d.at) {
				continue
			}
			_, there := state[item.Loc]
			switch item.Change {
			case resourcesync.Deleted:
				require.True(t, there, "%s is deleted and was not there", item.Loc)
				delete(state, item.Loc)
			default:
				require.Equal(t, item.Change == resourcesync.Updated, there, "%s is %s", item.Loc, item.Change)
				state[item.Loc] = d.described(item)
				latest[item.Loc] = item
			}
		}
	}
	for i := range d.closed {
		apply(byIndex, &d.closed[i])
	}
	apply(byIndex, d.open)
	apply(byPlain, d.plain)
	require.Equal(t, byIndex, byPlain)
	require.Len(t, byIndex, len(live))
	for url, body := range live {
		sum := sha256.Sum256([]byte(body))
		require.Equal(t, byIndex[url], hex.EncodeToString(sum[:]), url)
	}
	for i := range d.open.items {
		switch item := &d.open.items[i]; {
		case !item.LastMod.After(d.at):
		case item.Change == resourcesync.Deleted:
			delete(d.dump, item.Loc)
		default:
			memento, ok := item.Link(resourcesync.RelMemento)
			require.True(t, ok)
			a := d.MustGet(memento.Href)
			d.measured(memento.Href, memento.Representation, a.Bytes)
			require.Equal(t, item.LastMod.Truncate(time.Second).Format(http.TimeFormat), a.Header.Get("Memento-Datetime"))
			d.dump[item.Loc] = string(a.Bytes)
		}
	}
	require.Equal(t, live, d.dump, "the dump and all changes since")
	for url, item := range latest {
		if _, ok := live[url]; !ok {
			continue
		}
		for _, l := range item.Find(resourcesync.RelAlternate) {
			a := d.MustGet(l.Href)
			d.measured(l.Href, l.Representation, a.Bytes)
			require.True(t, served.SameType(l.Type, a.Header.Get("Content-Type")))
		}
	}
}

// settle waits until the background has done all that is due of a collection.
func (n *node) settle(name string) {
	n.T.Helper()
	testenv.Eventually(n.T, func() bool {
		due, updated := false, time.Time{}
		err := n.Store.View(n.T.Context(), name, func(v *store.View) error {
			all, err := v.Snapshots()
			if err != nil {
				return err
			}
			updated = all[0].Updated
			c, err := resources.ChangesOf(v)
			due = v.Restating || v.Head-all[0].Seq >= uint64(n.SnapshotEvery) ||
				c != nil && v.Head+1-c.Open > uint64(n.sync.ChangesPerList)
			return err
		})
		if err != nil || due {
			return false
		}
		a := n.Get("/topicmaps/" + name + "/resourcesync/resourcelist.xml")
		r, err := resourcesync.Read(bytes.NewReader(a.Bytes), a.Request.URL.String(), resourcesync.Limits{})
		return err == nil && !r.Document.At.Before(updated)
	})
}

var datetimes = regexp.MustCompile(` datetime="[^"]*"| type="[^"]*\+[^"]*"`)

// version10 returns a document without the elements that the schema of Z39.99 1.0 does not have.
func version10(document []byte) []byte { return datetimes.ReplaceAll(document, nil) }
