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

// obtained is the fetched content of a record.
type obtained struct {
	fragments []*fragment.Fragment    // the fragment, and further ones of the format
	fragment  *fragment.Fragment      // nil where the record is deleted, or available in no form of use
	later     bool                    // it is of a later version than the record
	from      string                  // the link that was tried last
	forms     []follow.Representation // all available ones, the best first

	// missing is the reason why a better form was not available, which may have more content.
	missing error
}

// Fetch implements [follow.Sink]: it fetches the preferred representation of a record. If that is gone, or differs from
// the source's statement, the statement was out of date or wrong: other forms are used only at the last try of the
// record. It skips invalid copies.
func (h *records) Fetch(ctx context.Context, r *follow.Record, last bool) (o obtained, size int64, err error) {
	o.forms = h.representations(r)
	for _, form := range o.forms {
		o.from = form.URL
		var f taken
		if f, err = h.take(ctx, r, form); err == nil {
			f.fragments[0].Deleted = false // only an entry deletes a topic
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

// taken is the content of a record that was read.
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
		// An invalid document may not be XTM, and may continue after the XTM.
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
	request := fetch.Request{URL: form.URL, Accept: h.acceptOf(form), Max: h.MaxFragment,
		Within: h.MaxTime}
	// All versions of a record have the same address: a cached older version would be taken for that of the entry, and
	// never be fetched again.
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

// acceptOf returns the Accept header for a form of a record. A source's statement about bytes is about one media type,
// or about the default form; another form would contradict it.
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
	// The record of an instance states its type: a source that names the topics of records has a record for each.
	// Instances that came and went since the feed was read would never be removed, because the class does not change
	// with them.
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

// representations returns those of a record that may be XTM, the best first; only those of the requested format, if
// any.
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
