package harvest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/feeds/resourcesync"
	"github.com/tmshare/tmshare/internal/fetch"
)

// capabilities are where the documents of a set of resources are, "" for those that there
// are not.
type capabilities struct {
	at                                       string // the Capability List, or what else one began with
	resources, dump, changes, changeDump string
}

// ChoiceError says that a Source has several sets of resources.
type ChoiceError struct {
	URL  string
	Sets []string // URIs of their Capability Lists
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%s: the Source has %d sets of resources; take one of these:\n  %s", e.URL, len(e.Sets), strings.Join(e.Sets, "\n  "))
}

// maxDiscovery is how much is read, in bytes, of what may be a page.
const maxDiscovery = 16 << 20

// discover finds the Capability List by what is at a URL (Z39.99 §6.3, Discovery): a
// document of ResourceSync; a page or a resource that links to its Capability List; or
// any other, of whose server the Source Description and robots.txt are asked for.
func (l *look) discover(ctx context.Context, ref string) (*capabilities, error) {
	seen := map[string]bool{}
	for at := ref; ; {
		if seen[at] {
			return nil, fmt.Errorf("%s: the documents of the Source lead in a circle", at)
		}
		seen[at] = true
		p, linked, err := l.look(ctx, at)
		switch {
		case err != nil && (at != ref || !Gone(err)):
			return nil, err
		case p != nil:
			next, c, err := l.down(ctx, p, at, ref)
			if c != nil || err != nil {
				return c, err
			}
			at = next
		case len(linked) > 0:
			if len(linked) > 1 {
				return nil, &ChoiceError{at, linked}
			}
			at = linked[0]
		case at == ref:
			next, err := l.elsewhere(ctx, ref)
			if err != nil {
				return nil, err
			}
			at = next
		default:
			return nil, fmt.Errorf("%s: this is no document of ResourceSync", at)
		}
	}
}

// look reads what is at a URL: a document, or links to Capability Lists.
func (l *look) look(ctx context.Context, at string) (*page, []string, error) {
	l.documents++
	r := fetch.Request{URL: at, Accept: "application/xml, text/xml;q=0.9, text/html;q=0.8, */*;q=0.5", Max: 100 << 20, Home: l.home, Within: l.Fetcher.MaxTime}
	var linked []string
	p, a, err := fetch.Do(ctx, l.Fetcher, r, func(a *fetch.Answer) (*page, error) {
		linked = resourcesync.DiscoverInHeader(a.Header.Values("Link"), a.URL)
		var start bytes.Buffer
		p, err := l.page(io.TeeReader(a.Body, &capped{&start, maxDiscovery}), a.URL)
		if errors.As(err, new(*resourcesync.SyntaxError)) { // no Sitemap at all
			found, inPage := resourcesync.DiscoverInHTML(io.MultiReader(&start, a.Body), a.URL)
			linked = append(linked, found...)
			return nil, inPage
		}
		if errors.As(err, new(*resourcesync.LimitError)) || errors.As(err, new(*resourcesync.InvalidError)) {
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

// capped keeps what is written to it, up to a size.
type capped struct {
	*bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.Buffer.Write(p[:n])
	return len(p), nil
}

// down goes from a document towards the Capability List. It returns where that may be, or
// what there is.
func (l *look) down(ctx context.Context, p *page, at, ref string) (next string, c *capabilities, err error) {
	up, hasUp := p.Link(resourcesync.RelUp)
	switch p.Capability {
	case resourcesync.CapabilityList:
		return "", capabilitiesOf(p, at), nil
	case resourcesync.Description:
		var sets []string
		for i := range p.parts {
			sets = append(sets, p.parts[i].Loc)
		}
		switch len(sets) {
		case 0:
			return "", nil, fmt.Errorf("%s: the Source has no set of resources", at)
		case 1:
			return sets[0], nil, nil
		}
		return "", nil, &ChoiceError{ref, sets}
	}
	if hasUp && up.Href != at {
		return up.Href, nil, nil
	}
	c = &capabilities{at: at}
	switch p.Capability {
	case "", resourcesync.ResourceList: // a plain Sitemap is a list as well
		c.resources = at
	case resourcesync.ResourceDump:
		c.dump = at
	default:
		return "", nil, fmt.Errorf("%s: this is a %s, without a link up to the Capability List: there is nothing to begin with", at, p.Capability)
	}
	return "", c, nil
}

func capabilitiesOf(p *page, at string) *capabilities {
	c := &capabilities{at: at}
	for i := range p.parts {
		part := &p.parts[i]
		switch part.Capability {
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

// elsewhere asks for the Source Description of a server, and for its robots.txt.
func (l *look) elsewhere(ctx context.Context, ref string) (string, error) {
	wellKnown, err := resourcesync.WellKnown(ref)
	if err != nil {
		return "", err
	}
	there, _, err := l.look(ctx, wellKnown)
	if err == nil && there != nil {
		return wellKnown, nil
	}
	if err != nil && !Gone(err) {
		return "", err
	}
	robots := strings.TrimSuffix(wellKnown, "/.well-known/resourcesync") + "/robots.txt"
	r := fetch.Request{URL: robots, Accept: "text/plain, */*;q=0.1", Max: maxDiscovery, Home: l.home, Within: l.Fetcher.MaxTime, Also: []int{http.StatusNotFound}}
	lists, _, err := fetch.Do(ctx, l.Fetcher, r, func(a *fetch.Answer) ([]string, error) {
		if a.Status == http.StatusNotFound {
			return nil, nil
		}
		return resourcesync.DiscoverInRobots(a.Body, a.URL)
	})
	switch {
	case err != nil && !Gone(err):
		return "", err
	case len(lists) == 0:
		return "", fmt.Errorf("%s: this is no document of ResourceSync, nor does it link to one; there is no Source Description at %s, nor a Sitemap in %s", ref, wellKnown, robots)
	case len(lists) > 1:
		return "", &ChoiceError{ref, lists}
	}
	return lists[0], nil
}
