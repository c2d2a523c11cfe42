package resources

import (
	"fmt"
	"io"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/store"
)

// channel returns the item of a Capability List for the channel on which changes are told
// (ResourceSync Change Notification 1.0.1 §5, Advertising Change Notification Channels).
func (s *Site) channel() resourcesync.Item {
	return resourcesync.Item{
		Loc: s.NotificationsURL(), Metadata: resourcesync.Metadata{Capability: resourcesync.ChangeNotification}, Links: s.hubs(),
	}
}

func (s *Site) hubs() (links []resourcesync.Link) {
	for _, hub := range s.Hubs {
		links = append(links, resourcesync.Link{Rel: resourcesync.RelHub, Href: hub})
	}
	return links
}

// WriteNotification writes a Change Notification (ResourceSync Change Notification 1.0.1 §3): the changes behind an entry of the
// log, most at most, as change lists have them. It returns the last entry that it tells of. Where there are none, it is
// [store.ErrNotFound].
//
// Notifications of one log follow each other without a gap if from is the until of the one before.
func (s *Site) WriteNotification(w io.Writer, v *store.View, after uint64, most int) (last uint64, err error) {
	from, err := timeOf(v, after)
	if err != nil {
		return 0, err
	}
	head := s.changes(resourcesync.ChangeNotification, ChangeList{From: from})
	head.Links = append(append(head.Links, resourcesync.Link{Rel: resourcesync.RelSelf, Href: s.NotificationsURL()}), s.hubs()...)
	var items []resourcesync.Item
	for e, err := range v.Entries(after + 1) {
		if err != nil {
			return 0, err
		}
		about, err := RecordFormOf(v, &e)
		if err != nil {
			return 0, err
		}
		items = append(items, s.listed(&v.Collection, &e, about))
		if last, head.Until = e.Seq, e.Updated; len(items) == most {
			break
		}
	}
	if len(items) == 0 {
		return 0, fmt.Errorf("%w: changes behind entry %d of %s", store.ErrNotFound, after, v.Name)
	}
	return last, write(w, head, items)
}
