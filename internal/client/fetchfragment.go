package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/tmshare/tmshare/feeds"
	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/merge"
	"github.com/tmshare/tmshare/tmdm"
)

// Fetch implements [follow.Sink]. A fragment that the server has given up is passed over where a later
// change is of the same topic.
func (u *fragments) Fetch(ctx context.Context, r *follow.Record, _ bool) (received, int64, error) {
	select {
	case u.places <- struct{}{}:
		defer func() { <-u.places }()
	case <-ctx.Done():
		return received{}, 0, context.Cause(ctx)
	}
	got, size, err := u.fetchFragment(ctx, r)
	if answer, ok := errors.AsType[*fetch.Error](err); ok && answer.Gone() {
		if r.Change.Superseded {
			return received{}, 0, nil
		}
		err = fmt.Errorf("%w, and the feed has no later entry for its topic", err)
	}
	return got, size, err
}

// fetchFragment fetches the fragment of a change, and returns its length in bytes.
func (u *fragments) fetchFragment(ctx context.Context, r *follow.Record) (received, int64, error) {
	if len(r.TopicSI)+len(r.TopicSL)+len(r.Change.TopicII) == 0 {
		return received{}, 0, fmt.Errorf("%s: the entry %s (%q) names no topic (TopicSI)", u.s.FragmentsFeed, r.ID, r.Title)
	}
	if len(r.Representations) == 0 {
		return received{}, 0, u.links().None(u.s.FragmentsFeed, r.ID, r.Title)
	}
	got, size, err := u.readFragment(ctx, r)
	if err == nil && r.Change.State != "" {
		got.fragment.Deleted = r.Change.State == feeds.StateDeleted
	}
	return got, size, err
}

// readFragment reads the fragment that came with the document of its entry. What cannot be used is fetched by its link.
func (u *fragments) readFragment(ctx context.Context, r *follow.Record) (got received, size int64, err error) {
	topic := fragment.Named{
		Identity:        fragment.Identity{SubjectIdentifiers: locators(r.TopicSI), SubjectLocators: locators(r.TopicSL)},
		ItemIdentifiers: locators(r.Change.TopicII), EmptyDeletes: r.Change.SDShare,
	}
	link, linkType := r.Representations[0].URL, r.Representations[0].Type
	if inline := r.Change.Fragment; inline != nil && int64(len(inline)) <= u.MaxFragment &&
		u.links().FormatOf(linkType, "") == nil {
		if got.fragment, err = fragment.ReadAs(ctx, bytes.NewReader(inline), u.xtmOptions(u.s.SP, link, ""),
			topic); err == nil {
			got.lasting = true // a document has no other
			return got, int64(len(inline)), nil
		}
	}
	request := fetch.Request{URL: link, Accept: u.links().AcceptFor(linkType), Max: u.MaxFragment,
		Within: u.MaxTime}
	got, a, err := fetch.Do(ctx, u.fetcher(), request, func(a *fetch.Answer) (got received, err error) {
		body := &oneLarge{Body: a.Body, Ctx: ctx, Slot: u.large}
		defer body.Leave()
		digest := u.settling.digest(r)
		if format := u.links().FormatOf(a.ContentType, linkType); format != nil {
			var read []*fragment.Fragment
			if read, err = format.ReadFragment(ctx, digest.reader(body), u.xtmOptions(u.s.SP, a.URL, a.ContentType),
				r.TopicSI); err == nil && len(read) == 0 {
				err = fmt.Errorf("%s: %s is about resources, and the entry %s (%q) names none (resource)", a.URL, format,
					r.ID, r.Title)
			}
			if err == nil {
				got.fragment, got.applied = read[0], func(s merge.State) error { return format.Apply(s, read) }
			}
		} else {
			got.fragment, err = fragment.ReadAs(ctx, digest.reader(body), u.xtmOptions(u.s.SP, a.URL, a.ContentType), topic)
		}
		got.digest = digest.sum()
		got.lasting = a.Immutable() // not a replica's present state of a topic
		return got, limitsLast(err)
	})
	if err != nil {
		return received{}, 0, err
	}
	return got, a.Body.Size(), nil
}

// locators returns the locators of a topic in texts.
func locators(texts []string) []tmdm.Locator {
	out := make([]tmdm.Locator, len(texts))
	for i, text := range texts {
		normal, err := tmdm.ParseLocator(text)
		if out[i] = normal; err != nil {
			out[i] = tmdm.Locator(text)
		}
	}
	return out
}
