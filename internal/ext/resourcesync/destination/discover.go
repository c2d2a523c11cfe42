package destination

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
)

// capabilities are the URLs of the documents of a set of resources, "" for missing ones.
type capabilities struct {
	Set
	resources, dump, changes, changeDump string
}

// choice returns the error for several sets of resources, or one that the URL does not lead to.
func choice(ref string, lists []string) *follow.ChoiceError {
	e := &follow.ChoiceError{URL: ref}
	for _, at := range lists {
		e.Collections = append(e.Collections, follow.Offer{URL: at})
	}
	return e
}

// maxDiscovery is the number of bytes that are read of a possible page.
const maxDiscovery = 16 << 20

// discover finds the Capability List for a URL (Z39.99 §6.3, Discovery): the URL is a document of ResourceSync; a page
// or a resource that links to its Capability List; or anything on a server with a Source Description or a robots.txt. A
// missing document leads nowhere, unless the URL is the server's own address.
func (l *look) discover(ctx context.Context, ref string) (*capabilities, error) {
	seen := map[string]bool{}
	var own *capabilities // by the document that has led here by its link up
	var there *listing    // the document at the URL, if it was read
	for at := ref; ; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the documents of the Source lead in a circle", at)
		}
		seen[at] = true
		p, linked, err := there, []string(nil), error(nil)
		if there = nil; p == nil {
			p, linked, err = l.visit(ctx, at)
		}
		switch {
		case err != nil && own != nil && follow.Gone(err):
			l.report(fmt.Sprintf("%s leads up to a document that is not there: %s", own.URL, err))
			return own, nil
		case err != nil && (at != ref || !follow.Gone(err) || !isServer(ref)):
			return nil, err
		case p != nil:
			next, c, err := l.up(ctx, p, at, ref)
			if err != nil || next == "" {
				return c, err
			}
			at, own = next, c
		case len(linked) > 1:
			return nil, choice(ref, linked)
		case len(linked) == 1:
			at = linked[0]
		case at == ref:
			if at, there, err = l.elsewhere(ctx, ref); err != nil {
				return nil, err
			}
			l.guessed = true
		default:
			return nil, fmt.Errorf("%s: this is no document of ResourceSync", at)
		}
	}
}

// isServer reports whether a URL is that of a server.
func isServer(ref string) bool {
	u, err := url.Parse(ref)
	return err == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == ""
}

// visit reads a URL: it returns a document, or links to Capability Lists.
func (l *look) visit(ctx context.Context, at string) (*listing, []string, error) {
	if err := l.count(at); err != nil {
		return nil, nil, err
	}
	r := fetch.Request{URL: at, Accept: "application/xml, text/xml;q=0.9, text/html;q=0.8, */*;q=0.5", Max: l.maxBytes(),
		Within: l.fetcher.MaxTime}
	var linked []string
	p, a, err := fetch.Do(ctx, l.fetcher, r, func(a *fetch.Answer) (*listing, error) {
		linked = resourcesync.DiscoverInHeader(a.Header.Values("Link"), a.URL)
		start := &capped{left: maxDiscovery}
		p, err := readListing(io.TeeReader(a.Body, start), a, l.Limits)
		if errors.As(err, new(*resourcesync.SyntaxError)) { // no Sitemap at all
			found, err := resourcesync.DiscoverInHTML(io.MultiReader(&start.Buffer, a.Body), a.URL)
			linked = append(linked, found...)
			return nil, err
		}
		if isNoDocument(err) {
			err = fetch.Permanent(err)
		}
		return p, err
	})
	if p != nil {
		p.Answer = a
	}
	slices.Sort(linked)
	return p, slices.Compact(linked), err
}

// capped keeps the bytes written to it, up to a size.
type capped struct {
	bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.Buffer.Write(p[:n])
	return len(p), nil
}

// up goes from a document to the Capability List, or to its possible place (Z39.99 §6.2, Navigation). It returns the
// capabilities known so far, in case next is missing.
func (l *look) up(ctx context.Context, p *listing, at, ref string) (next string, c *capabilities, err error) {
	switch {
	case p.Capability == resourcesync.CapabilityList && !p.Index:
		return "", capabilitiesOf(p, at), nil
	case p.Capability == resourcesync.Description || p.Capability == resourcesync.CapabilityList:
		sets, err := l.sets(ctx, p, map[string]bool{at: true})
		switch {
		case err != nil:
			return "", nil, err
		case len(sets) == 0:
			return "", nil, fmt.Errorf("%s: the Source has no set of resources", at)
		case l.guessed:
			set, err := among(ref, sets)
			return set, nil, err
		case len(sets) > 1:
			return "", nil, choice(ref, sets)
		}
		return sets[0], nil, nil
	}
	switch p.Capability {
	case "", resourcesync.ResourceList: // a plain Sitemap is a list as well
		c = &capabilities{Set: Set{at, p.Document}, resources: at}
	case resourcesync.ResourceDump:
		c = &capabilities{Set: Set{at, p.Document}, dump: at}
	}
	for _, rel := range []string{resourcesync.RelUp, resourcesync.RelIndex} {
		if link, ok := p.Link(rel); ok && link.Href != at {
			return link.Href, c, nil
		}
	}
	if c == nil {
		err = fmt.Errorf("%s: this is a %s, without a link up to the Capability List: there is nothing to begin with", at,
			p.Capability)
	}
	return "", c, err
}

// sets returns the Capability Lists that a Source Description, or an index of them, names
// (Z39.99 §8, Describing the Source).
func (l *look) sets(ctx context.Context, p *listing, seen map[string]bool) ([]string, error) {
	var sets []string
	for i := range p.items {
		part := &p.items[i]
		if seen[part.Loc] {
			continue
		}
		seen[part.Loc] = true
		if !p.Index || p.Capability == resourcesync.CapabilityList {
			sets = append(sets, part.Loc)
			continue
		}
		d, err := l.read(ctx, part.Loc, "")
		if err != nil {
			return nil, err
		}
		more, err := l.sets(ctx, d, seen)
		if err != nil {
			return nil, err
		}
		sets = append(sets, more...)
	}
	return sets, nil
}

// capabilitiesOf: Z39.99 §9, Advertising Capabilities.
func capabilitiesOf(p *listing, at string) *capabilities {
	c := &capabilities{Set: Set{at, p.Document}}
	for i := range p.items {
		switch part := &p.items[i]; part.Capability {
		case resourcesync.ResourceList:
			c.resources = part.Loc
		case resourcesync.ResourceDump:
			c.dump = part.Loc
		case resourcesync.ChangeList:
			c.changes = part.Loc
		case resourcesync.ChangeDump:
			c.changeDump = part.Loc
		}
	}
	return c
}

// elsewhere reads the Source Description of a server (Z39.99 §6.3.2), and its robots.txt (§6.3.4). It returns the URL
// of a document, and the document, if it was read.
func (l *look) elsewhere(ctx context.Context, ref string) (string, *listing, error) {
	wellKnown, err := resourcesync.WellKnown(ref)
	if err != nil {
		return "", nil, err
	}
	if wellKnown != ref {
		there, _, err := l.visit(ctx, wellKnown)
		if err != nil && !follow.Gone(err) {
			return "", nil, err
		}
		if there != nil {
			return wellKnown, there, nil
		}
	}
	robots := strings.TrimSuffix(wellKnown, "/.well-known/resourcesync") + "/robots.txt"
	r := fetch.Request{URL: robots, Accept: "text/plain, */*;q=0.1", Max: maxDiscovery,
		Within: l.fetcher.MaxTime, Also: []int{http.StatusNotFound}}
	lists, _, err := fetch.Do(ctx, l.fetcher, r, func(a *fetch.Answer) ([]string, error) {
		if a.Status == http.StatusNotFound {
			return nil, nil
		}
		return resourcesync.DiscoverInRobots(a.Body, a.URL)
	})
	switch {
	case err != nil && !follow.Gone(err):
		return "", nil, err
	case len(lists) == 0:
		return "", nil,
			fmt.Errorf("%s: this is no document of ResourceSync, nor does it link to one; there is no Source Description at "+
				"%s, nor a Sitemap in %s", ref, wellKnown, robots)
	case len(lists) == 1:
		at, err := among(ref, lists)
		return at, nil, err
	}
	at, err := l.amongLists(ctx, ref, lists)
	return at, nil, err
}

// among chooses among the sets of resources of a server. At the server's own address the only set is chosen; any other
// URL must be above the set, because nothing else links them.
func among(ref string, sets []string) (string, error) {
	meant := sets
	if !isServer(ref) {
		below := strings.TrimSuffix(ref, "/") + "/"
		meant = slices.DeleteFunc(slices.Clone(sets), func(set string) bool { return !strings.HasPrefix(set, below) })
	}
	if len(meant) == 1 {
		return meant[0], nil
	}
	return "", choice(ref, sets)
}

// amongLists chooses among the Sitemaps of a robots.txt: those of ResourceSync, if there are any.
func (l *look) amongLists(ctx context.Context, ref string, lists []string) (string, error) {
	var ours []string
	for _, list := range lists {
		p, _, err := l.visit(ctx, list)
		if err != nil && ctx.Err() != nil {
			return "", err
		}
		if err != nil || p == nil || p.Capability == "" {
			continue
		}
		if link, ok := p.Link(resourcesync.RelUp); ok {
			list = link.Href
		}
		if !slices.Contains(ours, list) {
			ours = append(ours, list)
		}
	}
	if len(ours) == 0 {
		return "", choice(ref, lists)
	}
	return among(ref, ours)
}
