package destination

import (
	"net/url"
	"slices"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/patch"
)

// representations returns where a resource is available: as its alternates, where they will do (Z39.99 §14.3, Alternate
// Representations); at its mirrors by their priority, which are there to spare the Source (§14.2, Mirrored Content);
// then at its own URI.
func (s *Source) representations(i *resourcesync.Item) (all []follow.Representation) {
	if s.Alternates {
		for _, l := range elsewhere(i, resourcesync.RelAlternate) {
			stated := follow.Fixity{Representation: l.Representation}
			all = append(all, follow.Representation{URL: l.Href, Type: l.Type, Fixity: stated})
		}
	}
	own, stated := len(all), follow.Fixity{Representation: i.Representation}
	for _, m := range elsewhere(i, resourcesync.RelDuplicate) {
		all = append(all, follow.Representation{URL: m.Href, Type: i.Type, Fixity: stated, Copy: true})
	}
	all = append(all, follow.Representation{URL: i.Loc, Type: i.Type, Fixity: stated})
	all[own].Patch = patchTo(i)
	return all
}

// elsewhere returns the links with a relation to other resources that can be fetched.
func elsewhere(i *resourcesync.Item, rel string) []resourcesync.Link {
	return slices.DeleteFunc(i.Find(rel), func(l resourcesync.Link) bool {
		u, err := url.Parse(l.Href)
		return err != nil || u.Scheme != "http" && u.Scheme != "https" || iri.SameDocument(l.Href, i.Loc)
	})
}

// strong are the algorithms whose digests can verify the result of a patch.
var strong = []string{resourcesync.SHA256, "sha-512"}

// patchTo returns the patch to the representation of an item; nil if there is none of a known type with a verifiable
// result, or it saves little.
func patchTo(i *resourcesync.Item) *follow.Patch {
	isStrong := func(h resourcesync.Hash) bool { return slices.Contains(strong, h.Algorithm) }
	if i.Length > follow.MaxPatched || i.Encoding != "" || !slices.ContainsFunc(i.Hashes, isStrong) {
		return nil
	}
	for _, l := range i.Find(resourcesync.RelPatch) {
		if l.Type == patch.MediaType && l.Length > 0 && l.Length < i.Length/2 && l.Encoding == "" {
			return &follow.Patch{URL: l.Href, Fixity: follow.Fixity{Representation: l.Representation}}
		}
	}
	return nil
}
