package client

import (
	"context"
	"io"
	"mime"
	"slices"

	"github.com/tmshare/tmshare/fragment"
	"github.com/tmshare/tmshare/internal/fetch"
	"github.com/tmshare/tmshare/internal/follow"
	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/tmdm"
	"github.com/tmshare/tmshare/xtm"
)

// How a record is fetched.

// obtained is what was fetched of a record.
type obtained struct {
	fragments []*fragment.Fragment    // the fragment, and what the format has beside it
	fragment  *fragment.Fragment      // nil where the record is deleted, or available in no form of use
	later     bool                    // it is of a later version than the record
	from      string                  // the link that was tried last
	forms     []follow.Representation // all that there are, the best first

	// missing is why a better form than that of the fragment was not available: it may say
	// more.
	missing error
}

// Fetch implements [follow.Sink]: it fetches what represents a record, in the format that we like
// best. Where that is gone, or is not what the source says that it is, what was said is out of
// date, or wrong: other forms are taken only if this is the last time that the record is tried.
// What is only a copy is passed over where it is no good.
func (h *records) Fetch(ctx context.Context, r *follow.Record, last bool) (o obtained, size int64, err error) {
	o.forms = h.representations(r)
	for _, form := range o.forms {
		o.from = form.URL
		var f taken
		if f, err = h.take(ctx, r, form); err == nil {
			f.fragments[0].Deleted = false // else an entry says so
			o.fragments, o.fragment, o.later = f.fragments, f.fragments[0], f.later
			return o, f.size, nil
		}
		switch {
		case ctx.Err() != nil:
			return o, 0, err
		case form.Copy || form.Open != nil:
			continue
		case !follow.OutOfDate(err) || !last:
			return o, 0, err
		}
		if o.missing == nil {
			o.missing = err
		}
	}
	return o, 0, err
}

// taken is what was taken of a record.
type taken struct {
	fragments []*fragment.Fragment
	size      int64
	later     bool
}

// take fetches a form of a record, or has it from a package.
func (h *records) take(ctx context.Context, r *follow.Record, form follow.Representation) (taken, error) {
	read := func(content io.Reader, at, contentType string) (t taken, err error) {
		body := &oneLarge{Body: content, Ctx: ctx, Slot: h.large}
		defer body.Leave()
		stated := form.Fixity.Verify(form.URL, body)
		t.fragments, err = h.read(ctx, stated, h.xtmOptions(h.s.SP, at, contentType), r)
		if t.size = body.N; form.Fixity.IsZero() {
			return t, err
		}
		// What is not what it should be may well not be XTM, and behind XTM there may be more.
		_, rest := io.Copy(io.Discard, stated)
		switch {
		case follow.OutOfDate(rest):
			err = fetch.Permanent(rest)
		case rest != nil:
			err = rest
		}
		t.size = body.N
		return t, err
	}
	if form.Open != nil {
		content, err := form.Open()
		if err != nil {
			return taken{}, err
		}
		defer content.Close()
		return read(content, form.URL, "")
	}
	request := fetch.Request{URL: form.URL, Accept: h.acceptOf(form), Max: h.MaxFragment, AllowURL: h.allowURL,
		Within: h.MaxTime}
	// The address of a record is the same for all its versions: what a cache still has for a while would be taken for
	// the one that the entry tells of, and never be asked for again.
	fetcher := h.fetcher().Uncached()
	if form.Copy {
		fetcher.Tries = 1 // there is another place
	}
	t, a, err := fetch.Do(ctx, fetcher, request, func(a *fetch.Answer) (taken, error) {
		t, err := read(a.Body, a.URL, a.ContentType)
		return t, limitsLast(err)
	})
	if err == nil && !form.Copy {
		t.later, err = r.Later(a)
	}
	return t, err
}

// acceptOf returns the Accept header for a form of a record. What a source states of bytes is
// so of one media type alone, or else of what is sent to those who ask for none; any other
// would be refused for what is stated.
func (h *records) acceptOf(form follow.Representation) string {
	if form.Fixity.IsZero() {
		return h.links().Accept()
	}
	base, parameters, err := mime.ParseMediaType(form.Type)
	if err != nil {
		return "*/*"
	}
	return mime.FormatMediaType(base, parameters) + ", */*;q=0.1"
}

func (h *records) read(ctx context.Context, body io.Reader, o xtm.Options,
	r *follow.Record) ([]*fragment.Fragment, error) {
	switch {
	case h.format != nil:
		return h.format.ReadFragment(ctx, body, o, r.TopicSI)
	case len(r.TopicSI)+len(r.TopicSL) == 0:
		f, err := fragment.ReadRecord(ctx, body, o, named(r.ID), named(o.URI))
		return []*fragment.Fragment{f}, err
	}
	f, err := fragment.ReadAs(ctx, body, o,
		fragment.Named{Identity: fragment.Identity{SubjectIdentifiers: locators(r.TopicSI),
			SubjectLocators: locators(r.TopicSL)}})
	if err != nil {
		return nil, err
	}
	// That something is an instance of this topic is said by its own record: a source that
	// says which topic a record is about has one of each. An instance that came and went
	// since the feed was read would never be heard of, and its class does not change with it.
	f.Associations = slices.DeleteFunc(f.Associations, func(a *fragment.Association) bool {
		return a.Part(f.Topic.TopicSI()) == fragment.AsType
	})
	return []*fragment.Fragment{f}, nil
}

// named returns the locator that a URI is as an identifier of a topic.
func named(uri string) tmdm.Locator {
	if l, err := iri.Normalize(uri); err == nil {
		return tmdm.Locator(l)
	}
	return tmdm.Locator(uri)
}

// representations returns those of a record that may be XTM, the best first; of one format
// alone where that was asked for.
func (h *records) representations(r *follow.Record) []follow.Representation {
	if h.format != nil {
		return r.Representations
	}
	all := slices.DeleteFunc(slices.Clone(r.Representations), func(l follow.Representation) bool {
		return h.links().Rank(l.Type) == 0 || h.links().Other(l.Type)
	})
	slices.SortStableFunc(all, func(a, b follow.Representation) int {
		return h.links().Rank(b.Type) - h.links().Rank(a.Type)
	})
	return all
}
