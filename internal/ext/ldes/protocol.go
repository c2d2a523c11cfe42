package ldes

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/rdf"
)

// Protocol returns how a stream is followed: each resource is a record, and its versions are members. So is each
// member of a stream without versions.
func Protocol() follow.Protocol {
	return follow.Protocol{Name: "ldes", Segment: "ldes", Format: "ntriples", Find: find, Open: open}
}

// find finds the root of a stream from the root itself, from a description of the stream, or from a page whose header
// links to it.
func find(ctx context.Context, r *follow.Access, ref string) (*follow.Found, error) {
	fetcher, err := r.Fetcher.From(ref)
	if err != nil {
		return nil, err
	}
	from := &documents{fetcher: fetcher, root: true}
	for at, hops := page(ref), 0; ; hops++ {
		d, err := from.fetch(ctx, at, "")
		if err != nil {
			return nil, err
		}
		views, here := d.pointed, ""
		s, err := d.streamAt(at, ref)
		if errors.As(err, new(*follow.ChoiceError)) {
			return nil, err
		}
		for _, other := range d.subjects(treeView) {
			for _, v := range d.objects(other, treeView) {
				if views = append(views, v.Value); other == s && (page(v.Value) == at || page(v.Value) == d.URL) {
					here = v.Value
				}
			}
		}
		switch {
		case here != "" && len(d.streamsAt(at)) == 1:
			return &follow.Found{URL: here, Prefix: prefixOf(d.termsOf(s))}, nil
		case here != "":
			return &follow.Found{URL: addressOf(here, s), Prefix: prefixOf(d.termsOf(s))}, nil
		case len(views) > 1:
			choice := &follow.ChoiceError{URL: ref}
			for _, v := range views {
				choice.Collections = append(choice.Collections, follow.Offer{URL: v})
			}
			return nil, choice
		case len(views) == 1 && hops < 5 && page(views[0]) != at:
			at = page(views[0])
		case err == nil && (len(d.subjects(treeRelation)) > 0 || len(d.subjects(treeMember)) > 0):
			if len(d.streamsAt(at)) > 1 {
				at = addressOf(at, s)
			}
			return &follow.Found{URL: at, Prefix: prefixOf(d.termsOf(s))}, nil
		default:
			return nil, d.noStream()
		}
	}
}

// addressOf returns the URL of one of several streams of a document: its IRI, or at with the IRI after a "#".
func addressOf(at string, stream rdf.Term) string {
	if page(stream.Value) == page(at) {
		return stream.Value
	}
	return page(at) + "#" + stream.Value
}

// prefixOf returns the source locator prefix that a stream of TMShare declares; "" for others.
func prefixOf(c *terms) string {
	if sp, err := iri.Normalize(iri.FromURI(c.Prefix)); err == nil && c.Prefix != "" {
		return sp
	}
	return c.Prefix
}

func open(r *follow.Access) (follow.Source, error) {
	if err := os.MkdirAll(r.Temp, 0o700); err != nil {
		return nil, err
	}
	return &source{Access: r}, nil
}

// check compares the stream with the one that was subscribed to.
func (s *source) check(c *terms, at string) error {
	if c.unread != "" {
		return fmt.Errorf("%s: the stream has an ldes:%s of a kind that is not read: properties, and lists of them, are", at,
			c.unread)
	}
	sp := prefixOf(c)
	if iri.ToURI(sp) == iri.ToURI(s.Prefix) {
		sp = s.Prefix
	}
	return s.Check(sp, at)
}
