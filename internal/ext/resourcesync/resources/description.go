package resources

import (
	"io"

	"github.com/tmshare/tmshare/feeds/resourcesync"
)

// Description is the Source Description (Z39.99 §8, Describing the Source) of a server: one document, or an index of
// several if there are too many collections for one.
//
// Capability Lists link up to the document at the well-known URL, because that enumerates all of them (§9, Advertising
// Capabilities) for every reader. The list with a collection depends on the number of earlier collections that a client
// may read.
type Description struct {
	Server string  // its base URL
	About  string  // URL of its description
	Sites  []*Site // by the names of the collections
	Most   int     // collections in a document; default and most: 50,000
}

// itemBytes is more than an item has without the base URL of the server, which is in it twice.
const itemBytes = 500

// most returns the number of collections in a document.
func (d *Description) most() int {
	most := min(resourcesync.MaxItems, resourcesync.MaxBytes/(itemBytes+2*len(d.Server)))
	if d.Most > 0 {
		most = min(most, d.Most)
	}
	return most
}

// Parts returns the number of documents in the index; 0 if there is none.
func (d *Description) Parts() int {
	if len(d.Sites) <= d.most() {
		return 0
	}
	return (len(d.Sites) + d.most() - 1) / d.most()
}

// Write writes the document at the well-known URL.
func (d *Description) Write(w io.Writer) error {
	if d.Parts() == 0 {
		return d.write(w, d.Sites)
	}
	head := resourcesync.Document{Index: true, Capability: resourcesync.Description, Links: describedBy(d.About)}
	var items []resourcesync.Item
	for n := range d.Parts() {
		items = append(items, resourcesync.Item{
			Loc: descriptionURL(d.Server, n+1), Metadata: resourcesync.Metadata{Capability: resourcesync.Description},
		})
	}
	return write(w, head, items)
}

// WritePart writes the nth of the documents that the index lists, from 1 on.
func (d *Description) WritePart(w io.Writer, n int) error {
	begin := (n - 1) * d.most()
	end := min(n*d.most(), len(d.Sites))
	return d.write(w, d.Sites[begin:end],
		resourcesync.Link{Rel: resourcesync.RelIndex, Href: SourceDescriptionURL(d.Server)})
}

func (d *Description) write(w io.Writer, sites []*Site, links ...resourcesync.Link) error {
	head := resourcesync.Document{Capability: resourcesync.Description, Links: append(describedBy(d.About), links...)}
	items := make([]resourcesync.Item, 0, len(sites))
	for _, s := range sites {
		items = append(items, resourcesync.Item{
			Loc: s.CapabilityListURL(), Metadata: resourcesync.Metadata{Capability: resourcesync.CapabilityList},
			Links: describedBy(s.AboutURL()),
		})
	}
	return write(w, head, items)
}
