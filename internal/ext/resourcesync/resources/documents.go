package resources

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/store"
)

// The documents that change: they are small, and made on request.

// Source is a collection as a Source has it.
type Source struct {
	Site
	Collection *store.Collection
	Changes    *Changes
	Lists      []ChangeList // closed ones, the oldest first
	Parts      []*Part      // of the closed lists
	Sets       []*Set       // the newest first
}

func (s *Site) up() []resourcesync.Link {
	return []resourcesync.Link{{Rel: resourcesync.RelUp, Href: s.CapabilityListURL()}}
}

// write writes a document of items.
func write(w io.Writer, head resourcesync.Document, items []resourcesync.Item) error {
	d, err := resourcesync.NewWriter(w, head, resourcesync.Options{})
	if err != nil {
		return err
	}
	for i := range items {
		if err := d.Write(&items[i]); err != nil {
			return err
		}
	}
	return d.Close()
}

func describedBy(page string) []resourcesync.Link {
	return []resourcesync.Link{{Rel: resourcesync.RelDescribedBy, Href: page,
		Representation: resourcesync.Representation{Type: "text/html"}}}
}

// WriteCapabilityList writes the Capability List (Z39.99 §9). It lists no empty document, except a change list before
// the first change.
func (s *Source) WriteCapabilityList(w io.Writer) error {
	head := resourcesync.Document{Capability: resourcesync.CapabilityList, Links: slices.Concat(
		[]resourcesync.Link{{Rel: resourcesync.RelUp, Href: SourceDescriptionURL(s.Server)}}, describedBy(s.AboutURL()),
		s.topicMap())}
	var items []resourcesync.Item
	list := func(capability resourcesync.Capability, url string) {
		items = append(items, resourcesync.Item{Loc: url, Metadata: resourcesync.Metadata{Capability: capability}})
	}
	if s.Sets[0].Items > 0 {
		list(resourcesync.ResourceList, s.ResourceListURL())
		list(resourcesync.ResourceDump, s.ResourceDumpURL())
	}
	if s.spansAll() {
		list(resourcesync.ChangeList, s.ChangeListURL())
	} else {
		list(resourcesync.ChangeList, s.ChangeListIndexURL())
	}
	if len(s.Lists) > 0 {
		list(resourcesync.ChangeDump, s.ChangeDumpURL())
	}
	return write(w, head, items)
}

// topicMap returns the links for programs that make a topic map of the resources: to its source locator prefix, its
// history, and the present map for comparison.
func (s *Source) topicMap() []resourcesync.Link {
	return []resourcesync.Link{
		{Rel: feeds.RelPrefix, Href: iri.Escape(s.Collection.SP)},
		{Rel: feeds.RelHistory, Href: s.Epoch.URN()},
		{Rel: feeds.RelCurrentSnapshot, Href: s.Map + "/snapshots/current"},
	}
}

// spansAll reports whether the plain change list has all changes that any list has.
func (s *Source) spansAll() bool {
	after := s.plainAfter()
	return len(s.Lists) == 0 && after < s.Changes.Open || len(s.Lists) > 0 && after < s.Lists[0].First
}

// changes returns the head of a document of the changes of a list.
func (s *Site) changes(capability resourcesync.Capability, list ChangeList) resourcesync.Document {
	return resourcesync.Document{Capability: capability, Times: resourcesync.Times{From: list.From, Until: list.Until},
		Links: s.up()}
}

// changeList is changes for a change list that the index lists.
func (s *Site) changeList(list ChangeList) resourcesync.Document {
	head := s.changes(resourcesync.ChangeList, list)
	head.Links = append(head.Links, resourcesync.Link{Rel: resourcesync.RelIndex, Href: s.ChangeListIndexURL()})
	return head
}

// WriteOpenChanges writes the open change list.
func (s *Source) WriteOpenChanges(w io.Writer, v *store.View) error {
	open := s.Changes
	return s.writeChanges(w, v, s.changeList(ChangeList{From: open.OpenFrom}), open.Open-1)
}

// MostPlain is the maximum number of changes in the plain change list.
const MostPlain = 5_000

// plainAfter returns the sequence of the entry before the plain change list. Within its limit, that has all changes
// since the oldest set, which may have readers, and all of the open list.
func (s *Source) plainAfter() uint64 {
	c := s.Collection
	least := c.Horizon
	if c.Head > MostPlain {
		least = max(least, c.Head-MostPlain)
	}
	after := least
	for _, set := range s.Sets { // the oldest last
		if begins := behind(set); begins >= least {
			after = begins
		}
	}
	if open := s.Changes.Open - 1; open >= least {
		after = min(after, open)
	}
	return after
}

// behind returns the sequence of the entry before the changes since a set, such that they include the last change of
// the set, and are never empty.
func behind(set *Set) uint64 { return max(set.Seq, 1) - 1 }

// WriteChangeList writes the change list for readers without support for indexes (Z39.99 §12.1). It is open, and begins
// before the open one of the index.
func (s *Source) WriteChangeList(w io.Writer, v *store.View) error {
	after := s.plainAfter()
	from, err := timeOf(v, after)
	if err != nil {
		return err
	}
	return s.writeChanges(w, v, s.changes(resourcesync.ChangeList, ChangeList{From: from}), after)
}

// timeOf returns the time of an entry; 0 stands for the beginning.
func timeOf(v *store.View, seq uint64) (time.Time, error) {
	switch {
	case seq == 0:
		return v.Created, nil
	case seq == v.Horizon:
		return v.HorizonTime, nil
	}
	e, err := v.Entry(seq)
	if err != nil {
		return time.Time{}, err
	}
	return e.Updated, nil
}

func (s *Source) writeChanges(w io.Writer, v *store.View, head resourcesync.Document, after uint64) error {
	d, err := resourcesync.NewWriter(w, head, resourcesync.Options{})
	if err != nil {
		return err
	}
	for e, err := range v.Entries(after + 1) {
		if err != nil {
			return err
		}
		about, err := RecordFormOf(v, &e)
		if err != nil {
			return err
		}
		item := s.listed(&v.Collection, &e, about)
		if err := d.Write(&item); err != nil {
			return err
		}
	}
	return d.Close()
}

// MostLists is the maximum number of closed change lists, because their index is one document.
const MostLists = resourcesync.MaxItems - 1

// WriteChangeListIndex writes the Change List Index (Z39.99 §12.2): all closed lists, and
// the open one.
func (s *Source) WriteChangeListIndex(w io.Writer) error {
	open := s.Changes
	head := resourcesync.Document{Index: true, Capability: resourcesync.ChangeList,
		Times: resourcesync.Times{From: open.OpenFrom}, Links: s.up()}
	var items []resourcesync.Item
	for i, list := range s.Lists {
		if i == 0 {
			head.From = list.From
		}
		item := resourcesync.Item{Loc: s.changesURL(list.Number, "changelist", ".xml"), LastMod: list.Until}
		item.From, item.Until = list.From, list.Until
		items = append(items, item)
	}
	last := resourcesync.Item{Loc: s.OpenChangesURL()}
	last.From = open.OpenFrom
	return write(w, head, append(items, last))
}

// WriteChangeDump writes the Change Dump (Z39.99 §13.1): a package for each closed list.
func (s *Source) WriteChangeDump(w io.Writer) error {
	head := resourcesync.Document{Capability: resourcesync.ChangeDump, Times: resourcesync.Times{From: s.Changes.OpenFrom},
		Links: s.up()}
	var items []resourcesync.Item
	for i, part := range s.Parts {
		if part == nil {
			return errors.New("resources: the package of a change list is missing")
		}
		if i == 0 {
			head.From = part.From
		}
		item := resourcesync.Item{Loc: s.changesURL(part.Number, "changedump", packageEnding), LastMod: part.Until}
		item.From, item.Until, item.Representation = part.From, part.Until, part.Package.Representation
		item.Links = []resourcesync.Link{contentsLink(s.changesURL(part.Number, "changedump", manifestEnding))}
		items = append(items, item)
	}
	return write(w, head, items)
}

// Beginning returns the entry before the first change list, and its time.
func Beginning(v *store.View, set *Set) (after uint64, at time.Time, err error) {
	after = max(v.Horizon, behind(set))
	at, err = timeOf(v, after)
	return after, at, err
}
