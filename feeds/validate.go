package feeds

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/titles"
	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// validate checks the rules for an encoded feed: those of RFC 4287 and RFC 5005, and additional ones of the protocol.
func (f *Feed) validate() error {
	invalid := func(element, format string, args ...any) error {
		return &InvalidError{"feed/" + element, fmt.Sprintf(format, args...)}
	}
	if err := checkMetadata("feed", f.ID, f.Title, f.Updated,
		f.Language, f.TitleLanguage, f.SubtitleLanguage); err != nil {
		return err
	}
	if err := checkLinks("feed", f.Links); err != nil {
		return err
	}
	if sp := f.ServerSrcLocatorPrefix; sp != "" {
		if rule := checkLocator(sp); rule != "" {
			return invalid(elemPrefix, "%s", rule)
		}
		// http://example.org/a would also be a prefix of http://example.org/ab.
		if !strings.HasSuffix(sp, "/") && !strings.HasSuffix(sp, "#") {
			return invalid(elemPrefix, "%q does not end in / or #", read.Clip(sp))
		}
	}
	// RFC 5005 §1 leaves combinations of the three kinds of feeds undefined.
	if f.Complete {
		if f.Archive {
			return invalid("complete", "excludes archive (RFC 5005 §2)")
		}
		for _, rel := range [...]Rel{"prev-archive", "next-archive", "previous", "next"} {
			if _, ok := f.Link(rel); ok {
				return invalid("complete", "excludes links of rel %q (RFC 5005 §2)", rel)
			}
		}
	}
	if _, ok := f.Link("current"); f.Archive && !ok {
		return invalid("archive", "needs a link of rel \"current\" (RFC 5005 §4)")
	}
	authored := line(f.Author) != ""
	if !authored && len(f.Entries) == 0 {
		return invalid("author", "is missing (RFC 4287 §4.1.1)")
	}
	for i := range f.Entries {
		e := &f.Entries[i]
		if err := e.validateAs(i, authored); err != nil {
			return err
		}
	}
	return nil
}

// validateAs is validate for the entry of a feed at an index, which is in the error.
func (e *Entry) validateAs(index int, authored bool) error {
	if e.validate("", authored) == nil {
		return nil
	}
	return e.validate(entryLabel(index, e.Title), authored)
}

// validate checks one entry; authored reports whether its feed has an author.
func (e *Entry) validate(label string, authored bool) error {
	invalid := func(element, format string, args ...any) error {
		return &InvalidError{label + "/" + element, fmt.Sprintf(format, args...)}
	}
	if err := checkMetadata(label, e.ID, e.Title, e.Updated, e.Language, e.SummaryLanguage); err != nil {
		return err
	}
	if !authored && line(e.Author) == "" {
		return invalid("author", "is missing, and the feed has none (RFC 4287 §4.1.1)")
	}
	if err := checkLinks(label, e.Links); err != nil {
		return err
	}
	switch _, alternate := e.Link("alternate"); {
	case e.Content != NoContent && e.Content != EmptyContent:
		return invalid("content", "cannot be written")
	case e.Content == EmptyContent && alternate:
		return invalid("content",
			"is empty, though there are links of rel \"alternate\": this is neither a record nor the deletion of one "+
				"(Atom-PMH, Types of entries)")
	case e.Content == NoContent && !alternate:
		return invalid("link", "rel \"alternate\" is missing (RFC 4287 §4.1.2)")
	}
	if len(e.TopicSL) > 0 || len(e.TopicII) > 0 {
		return invalid(elemTopicSI, "a topic is named by its subject identifier alone")
	}
	if len(e.TopicSI) > 1 {
		return invalid(elemTopicSI, "occurs more than once")
	}
	for _, si := range e.TopicSI {
		if rule := checkLocator(si); rule != "" {
			return invalid(elemTopicSI, "%s", rule)
		}
	}
	if e.Covered && e.State != StateLive {
		return invalid(elemState, "is %q, and says that the entry is covered: only entries of topics that are there can be",
			read.Clip(string(e.State)))
	}
	switch e.State {
	case "":
	case StateLive, StateDeleted:
		if len(e.TopicSI) == 0 {
			return invalid(elemState, "is stated of no topic: %s is missing", elemTopicSI)
		}
	default:
		return invalid(elemState, "%q is neither %q nor %q", read.Clip(string(e.State)), StateLive, StateDeleted)
	}
	return nil
}

// checkMetadata checks the elements that feeds and entries both require, and their languages.
func checkMetadata(label, id, title string, updated time.Time, languages ...string) error {
	rule := checkLocator(id)
	if rule == "" && strings.Contains(id, " ") {
		// Ids are compared unchanged, so escaping would change an id.
		rule = "contains a space"
	}
	if rule != "" {
		return &InvalidError{label + "/id", rule}
	}
	if line(title) == "" {
		return &InvalidError{label + "/title", "is missing"}
	}
	if updated.IsZero() {
		return &InvalidError{label + "/updated", "is missing"}
	}
	if year := updated.UTC().Year(); year < 1 || year > 9999 {
		return &InvalidError{label + "/updated", fmt.Sprintf("the year %d has not four digits", year)}
	}
	for _, tag := range languages {
		if tag == "" {
			continue
		}
		if known, _ := titles.ParseLanguage(tag); known != tag {
			return &InvalidError{label + "/xml:lang", fmt.Sprintf("%q is no language tag in lower case", read.Clip(tag))}
		}
	}
	return nil
}

func checkLinks(label string, links []Link) error {
	invalid := func(format string, args ...any) error {
		return &InvalidError{label + "/link", fmt.Sprintf(format, args...)}
	}
	self := false
	var alternates []string // their media types
	for _, l := range links {
		rel := canonicalRel(l.Rel)
		if !isText(rel) || strings.ContainsAny(rel, whiteSpace) {
			return invalid("%q is no link relation", read.Clip(rel))
		}
		if rule := checkLocator(l.Href); rule != "" {
			return invalid("rel %q: href %s", read.Clip(rel), rule)
		}
		if l.Type != "" && !isMediaType(l.Type) {
			return invalid("rel %q: %q is no media type", read.Clip(rel), read.Clip(l.Type))
		}
		if l.Length < 0 {
			return invalid("rel %q: the length %d is negative", read.Clip(rel), l.Length)
		}
		switch rel {
		case "self":
			if self {
				return invalid("more than one of rel \"self\"")
			}
			self = true
		case "alternate":
			mediaType := strings.ToLower(l.Type)
			if slices.Contains(alternates, mediaType) {
				return invalid("more than one of rel \"alternate\" and type %q (RFC 4287 §4.1.1, §4.1.2)", read.Clip(l.Type))
			}
			alternates = append(alternates, mediaType)
		}
	}
	return nil
}

// checkLocator returns the broken rule about a locator; "" if none. It replaces no characters, because the result would
// be another locator.
func checkLocator(s string) string {
	switch {
	case s == "":
		return "is missing"
	case !isText(s):
		return fmt.Sprintf("%q has characters that XML cannot hold", read.Clip(s))
	}
	if _, err := iri.Normalize(s); err != nil {
		return err.Error()
	}
	return ""
}

// isMediaType checks the rule in the schema of Atom: text on both sides of a slash, on one line.
func isMediaType(s string) bool {
	slash := strings.IndexByte(s, '/')
	return slash > 0 && slash < len(s)-1 && s == line(s)
}

// isText reports whether XML can hold s as it stands.
func isText(s string) bool {
	_, bad := scan.Uncarried(s)
	return !bad
}
