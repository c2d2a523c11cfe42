package feeds

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/otherformat"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// Decode reads a feed document in any of the dialects, whatever its encoding, its prefixes and the order of its
// elements. uri is the address of the document. Errors name it, and it is the base of relative links, as xml:base may
// change it.
//
// Identifiers and URLs may be wrapped across lines. Unknown elements, atom:source and the contents of
// atom:content are passed over. A feed must have an id, and each entry an id and a time. If one is missing, or
// a prefix or state is invalid, the error is an *[InvalidError]. A document that is not well-formed, or no Atom
// feed, gives a *[SyntaxError], and so does a DOCTYPE, which is never accepted. A document that is too large
// gives a *[LimitError]. Errors of r are wrapped.
func Decode(r io.Reader, uri string, limits Limits) (*Feed, error) {
	return decode(r, uri, limits, false, nil)
}

func decode(r io.Reader, uri string, limits Limits, bundle bool, head func(*Feed)) (*Feed, error) {
	limits = limits.withDefaults()
	d := &decoder{Reader: newReader(r, uri, limits), limits: limits, feed: new(Feed), bundle: bundle, head: head}
	if err := d.Root(otherformat.Feed, func(root scan.Name) bool { return root.Local == "feed" }); err != nil {
		return nil, err
	}
	if root := d.Name(); root.Space != NamespaceAtom {
		return nil, &InvalidError{"feed", fmt.Sprintf("is in the namespace %q, not in Atom's", read.Clip(root.Space))}
	}
	if err := d.readFeed(); err != nil {
		return nil, err
	}
	// Only white space and comments may follow: Next returns an error for anything else.
	if _, err := d.Next(); err != io.EOF {
		return nil, err
	}
	return d.feed, nil
}

type decoder struct {
	*read.Reader
	limits Limits
	feed   *Feed
	bundle bool
	head   func(*Feed) // see DecodeBundle; nil once it was called
	// fault is the first broken rule of the feed or entry being read. It is reported at the end of that element: then the
	// entry's title is known, and the document is well-formed so far.
	fault *InvalidError
}

func (d *decoder) invalid(element, format string, args ...any) {
	if d.fault == nil {
		d.fault = &InvalidError{element, fmt.Sprintf(format, args...)}
	}
}

// faultIn returns the fault with the label of its parent before the element.
func (d *decoder) faultIn(label string) error {
	return &InvalidError{label + "/" + d.fault.Element, d.fault.Rule}
}

func (d *decoder) readFeed() error {
	f := d.feed
	base, err := d.base(d.URI)
	if err != nil {
		return err
	}
	f.Language, f.Rendering = d.language(""), d.number(attrRendering)
	var updated, prefix string
	err = d.children(func(n name) (err error) {
		switch n {
		case name{NamespaceAtom, "id"}:
			return d.once(&f.ID, "id")
		case name{NamespaceAtom, "updated"}:
			return d.once(&updated, "updated")
		case name{NamespaceAtom, "title"}:
			f.Title, f.TitleLanguage, err = d.textConstruct(f.Language)
		case name{NamespaceAtom, "subtitle"}:
			f.Subtitle, f.SubtitleLanguage, err = d.textConstruct(f.Language)
		case name{NamespaceAtom, "generator"}:
			f.Generator, err = d.lineOfText()
		case name{NamespaceAtom, "author"}:
			return d.author(&f.Author)
		case name{NamespaceAtom, "link"}:
			return d.link(base, &f.Links)
		case name{NamespaceAtom, "entry"}:
			return d.entry(base)
		case name{NamespaceHistory, "complete"}:
			f.Complete = true
			return d.Skip()
		case name{NamespaceHistory, "archive"}:
			f.Archive = true
			return d.Skip()
		default:
			switch n.meaning() {
			case elemPrefix:
				return d.once(&prefix, n.local)
			case elemCheckpoint: // its line breaks matter
				f.Checkpoint, err = d.bounded(elemCheckpoint, func(s string) string { return strings.Trim(s, whiteSpace) })
				return err
			case elemKey:
				return d.once(&f.Key, elemKey)
			case elemOpening:
				return d.opening()
			}
			return d.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.ID == "" {
		d.invalid("id", "is missing")
	}
	if updated != "" {
		f.Updated = d.time(updated)
	}
	if prefix != "" {
		if f.ServerSrcLocatorPrefix, err = iri.Normalize(prefix); err != nil {
			d.invalid(elemPrefix, "%v", err)
		}
	}
	if d.fault != nil {
		return d.faultIn("feed")
	}
	return nil
}

func (d *decoder) entry(base string) error {
	if d.head != nil {
		d.head(d.feed)
		d.head = nil
	}
	index := len(d.feed.Entries)
	if index == d.limits.MaxEntries {
		return d.TooMany("MaxEntries", d.limits.MaxEntries)
	}
	// A fault of the feed waits for the feed's end.
	feedFault := d.fault
	d.fault = nil

	e := Entry{Commit: d.number(attrCommit), Omits: d.states(attrOmits, omitsInstances),
		Rendering: cmp.Or(d.number(attrRendering), d.feed.Rendering), Language: d.language(d.feed.Language)}
	var updated, state string
	var tmshare, sdshare bool // an element of that dialect names the topic
	base, err := d.base(base)
	if err != nil {
		return err
	}
	err = d.children(func(n name) (err error) {
		switch n {
		case name{NamespaceAtom, "id"}:
			return d.once(&e.ID, "id")
		case name{NamespaceAtom, "updated"}:
			return d.once(&updated, "updated")
		case name{NamespaceAtom, "title"}:
			e.Title, _, err = d.textConstruct(e.Language)
			return err
		case name{NamespaceAtom, "summary"}:
			note, noted := d.Attr(NamespaceOwn, attrNote)
			own := line(string(note))
			if e.Summary, e.SummaryLanguage, err = d.textConstruct(e.Language); noted {
				e.Changes = line(strings.TrimPrefix(strings.TrimPrefix(e.Summary, own), dash))
				e.Summary = own
			}
			return err
		case name{NamespaceAtom, "author"}:
			return d.author(&e.Author)
		case name{NamespaceAtom, "link"}:
			return d.link(base, &e.Links)
		case name{NamespaceAtom, "content"}:
			e.Content, e.Fragment, err = d.content()
			return err
		}
		switch n.meaning() {
		case elemTopicSI, elemTopicSL, elemTopicII:
			tmshare, sdshare = tmshare || n.space == NamespaceTMShare, sdshare || n.space != NamespaceTMShare
		}
		switch n.meaning() {
		case elemTopicSI:
			return d.locator(&e.TopicSI, n.local)
		case elemTopicSL:
			return d.locator(&e.TopicSL, n.local)
		case elemTopicII:
			return d.locator(&e.TopicII, n.local)
		case elemState:
			e.Covered = d.attr(attrCovered) == "true"
			return d.once(&state, elemState)
		case elemDigest:
			return d.once(&e.Digest, elemDigest)
		case elemCondition:
			return d.once(&e.Condition, elemCondition)
		}
		return d.Skip()
	})
	if err != nil {
		return err
	}
	e.TopicSI, e.TopicSL, e.TopicII = unique(e.TopicSI), unique(e.TopicSL), unique(e.TopicII)
	if e.ID == "" {
		d.invalid("id", "is missing")
	}
	if updated == "" {
		d.invalid("updated", "is missing")
	} else {
		e.Updated = d.time(updated)
	}
	switch e.State = State(state); e.State {
	case "", StateLive, StateDeleted:
	default:
		d.invalid(elemState, "%q is neither %q nor %q", read.Clip(state), StateLive, StateDeleted)
	}
	e.SDShare, e.Covered = sdshare && !tmshare && e.State == "", e.Covered && e.State == StateLive && len(e.TopicSI) == 1
	if d.fault != nil {
		return d.faultIn(entryLabel(index, e.Title))
	}
	d.fault = feedFault
	d.feed.Entries = append(d.feed.Entries, e)
	return nil
}

// link reads an atom:link, whose start has been read.
func (d *decoder) link(base string, links *[]Link) error {
	base, err := d.base(base)
	if err != nil {
		return err
	}
	l := Link{Rel: canonicalRel(strip(d.attr("rel"))), Type: line(d.attr("type"))}
	// A length is advisory (RFC 4287 §4.2.7.6): a bad one is ignored.
	if n, err := strconv.ParseInt(strings.Trim(d.attr("length"), whiteSpace), 10, 64); err == nil && n > 0 {
		l.Length = n
	}
	if href, ok := d.Attr("", "href"); !ok {
		d.invalid("link", "rel %q has no href", read.Clip(l.Rel))
	} else if target, err := iri.Resolve(base, strip(string(href))); err != nil {
		d.invalid("link", "rel %q: %v", read.Clip(l.Rel), err)
	} else {
		l.Href = iri.Escape(target)
		if len(l.Href) > d.limits.MaxLocator {
			return d.TooMany("MaxLocator", d.limits.MaxLocator)
		}
		if err := d.Grow(len(l.Href) - len(href)); err != nil {
			return err
		}
	}
	if len(*links) == d.limits.MaxLinks {
		return d.TooMany("MaxLinks", d.limits.MaxLinks)
	}
	*links = append(*links, l)
	return d.Skip()
}

// author reads the name of an atom:author (RFC 4287 §3.2) into dst, if that is empty. The first author is kept.
func (d *decoder) author(dst *string) error {
	return d.children(func(n name) error {
		if n != (name{NamespaceAtom, "name"}) {
			return d.Skip()
		}
		s, err := d.lineOfText()
		if *dst == "" {
			*dst = s
		}
		return err
	})
}

// locator reads the locator of a topic and adds it to dst, in normal form. The element of RDF resources keeps the IRI
// as it stands, but for escaped spaces, as RDF compares IRIs character by character.
func (d *decoder) locator(dst *[]string, element string) error {
	s, err := d.identifier(element)
	if err != nil || s == "" {
		return err
	}
	if normal, err := iri.Normalize(s); err == nil && (element != elemResource || iri.Escape(normal) == s) {
		s = normal
	}
	if len(*dst) == d.limits.MaxLinks {
		return d.TooMany("MaxLinks", d.limits.MaxLinks)
	}
	*dst = append(*dst, s)
	return nil
}

// opening reads an opening, which is an id, and adds it to those of the feed.
func (d *decoder) opening() error {
	id, err := d.identifier(elemOpening)
	if err != nil {
		return err
	}
	if len(d.feed.Openings) == d.limits.MaxLinks {
		return d.TooMany("MaxLinks", d.limits.MaxLinks)
	}
	if id == "" {
		d.invalid(elemOpening, "is empty")
	}
	d.feed.Openings = append(d.feed.Openings, id)
	return nil
}

// unique removes repetitions: feeds name a topic once per dialect. Of an IRI as it stands and its normal form, the IRI
// stays.
func unique(locators []string) []string {
	if len(locators) < 2 {
		return locators
	}
	seen := make(map[string]bool, len(locators))
	for _, s := range locators {
		if normal, err := iri.Normalize(s); err == nil && normal != s {
			seen[normal] = true
		}
	}
	return slices.DeleteFunc(locators, func(s string) bool {
		known := seen[s]
		seen[s] = true
		return known
	})
}

// once reads an element that may have one value only. It may be repeated with the same value. Another value is a fault.
func (d *decoder) once(dst *string, element string) error {
	s, err := d.identifier(element)
	if err != nil {
		return err
	}
	if *dst != "" && s != *dst {
		d.invalid(element, "is %q and also %q", read.Clip(*dst), read.Clip(s))
	}
	*dst = s
	return nil
}

// identifier reads the text of an element without children, and joins its lines.
func (d *decoder) identifier(element string) (string, error) { return d.bounded(element, unwrap) }

// bounded reads the text of an element without children, through trim. It may have MaxLocator bytes.
func (d *decoder) bounded(element string, trim func(string) string) (string, error) {
	s, nested, err := d.text()
	if nested {
		d.invalid(element, "has child elements")
	}
	if s = trim(s); err == nil && len(s) > d.limits.MaxLocator {
		err = d.TooMany("MaxLocator", d.limits.MaxLocator)
	}
	return s, err
}

func (d *decoder) lineOfText() (string, error) {
	s, _, err := d.text()
	return line(s), err
}

// textConstruct reads a text construct (RFC 4287 §3.1) of any type as plain text. language is "" where it is the one
// around.
func (d *decoder) textConstruct(around string) (text, language string, err error) {
	kind := d.attr("type")
	if language = d.language(around); language == around {
		language = ""
	}
	s, _, err := d.text()
	if strings.EqualFold(kind, "html") {
		s = plain(s)
	}
	return line(s), language, err
}

// language returns the language of the element that has started: its xml:lang where that is well-formed, else the
// parent's.
func (d *decoder) language(parent string) string {
	value, _ := d.Attr(namespaceXML, "lang")
	if tag, err := titles.ParseLanguage(string(bytes.Trim(value, whiteSpace))); err == nil {
		return tag
	}
	return parent
}

func (d *decoder) time(s string) time.Time {
	t, err := ParseTime(s)
	if err != nil {
		d.invalid("updated", "%q is not a date and time", read.Clip(s))
	}
	return t
}

// base returns the base of relative references in the element that has started: its xml:base, if any, resolved against
// parent.
func (d *decoder) base(parent string) (string, error) {
	ref, ok := d.Attr(namespaceXML, "base")
	if !ok {
		return parent, nil
	}
	base, err := iri.Resolve(parent, strip(string(ref)))
	if err != nil {
		d.invalid("xml:base", "%v", err)
		return parent, nil
	}
	if len(base) > d.limits.MaxLocator {
		return "", d.TooMany("MaxLocator", d.limits.MaxLocator)
	}
	return base, d.Grow(len(base) - len(ref))
}
