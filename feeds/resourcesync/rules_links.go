package resourcesync

import (
	"fmt"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/read"
)

// checkLinks checks the links of an item: Z39.99 §14 (Linking to Related
// Resources).
func (r *rules) checkLinks(i *Item) string {
	mementos := 0
	for n := range i.Links {
		l := &i.Links[n]
		if rule := r.checkLink(l); rule != "" {
			return rule
		}
		rule := ""
		switch l.Rel {
		case RelContents: // §11.1, §13.1
			if !r.packages {
				rule = "belongs to packages in dumps"
			}
		case RelDuplicate: // §14.2
			if repeats(&l.Representation, &i.Representation) {
				rule = "repeats what rs:md says (Z39.99 §14.2)"
			}
		case RelMemento: // §14.6
			if mementos++; mementos > 1 {
				rule = "occurs more than once (Z39.99 §14.6)"
			}
		case RelPatch: // §14.4
			rule = r.checkPatch(l)
		}
		if rule == "" && i.LastMod.IsZero() && (l.Rel == RelMemento || l.Rel == RelTimeGate || l.Rel == RelTimeMap) {
			rule = "needs lastmod (Z39.99 §14.6)"
		}
		if rule != "" {
			return "rel " + l.Rel + ": " + rule
		}
	}
	return ""
}

func (r *rules) checkPatch(l *Link) string {
	switch {
	case !r.changes:
		return "belongs in lists of changes (Z39.99 §14.4)"
	case l.Type == "":
		return "has no type (Z39.99 §14.4)"
	case r.manifest && l.Path == "":
		return "has no path, which it needs in a manifest (Z39.99 §14.4)"
	}
	return ""
}

// repeats reports whether the two are redundant.
func repeats(a, b *Representation) bool {
	return len(a.Hashes) > 0 && len(b.Hashes) > 0 || a.Length > 0 && a.Length == b.Length ||
		a.Empty && b.Empty || a.Type != "" && a.Type == b.Type || a.Encoding != "" && a.Encoding == b.Encoding
}

// checkLink checks the rules for all links (Z39.99 §7).
func (r *rules) checkLink(l *Link) string {
	if !isRel(l.Rel) {
		return fmt.Sprintf("%q is neither a registered relation nor a URI (Z39.99 §7)", read.Clip(l.Rel))
	}
	rule := checkRepresentation(&l.Representation)
	if bad := checkHref(l); bad != "" {
		rule = "href " + bad
	}
	switch {
	case rule != "":
	case l.Pri < 0 || l.Pri > lastPriority:
		rule = fmt.Sprintf("pri %d is not from 1 to 999,999 (Z39.99 §7)", l.Pri)
	case !l.Modified.IsZero() && !hasFourDigitYear(l.Modified):
		rule = "modified: the year has not four digits"
	case l.Path != "" && !r.manifest:
		rule = "path belongs in manifests (Z39.99 §7)"
	case l.Rel == RelTimeGate && (!l.Modified.IsZero() || !l.Representation.isZero()):
		rule = "a TimeGate has no representation to describe (Z39.99 §14.6)"
	}
	if rule != "" {
		return "rel " + read.Clip(l.Rel) + ": " + rule
	}
	return ""
}

func (p *Representation) isZero() bool {
	return len(p.Hashes) == 0 && p.Length == 0 && !p.Empty && p.Type == "" && p.Encoding == "" && p.Path == ""
}

// isRel reports whether s is a relation: a registered name in the form that RFC
// 8288 §3.3 gives them, or a URI.
func isRel(s string) bool {
	if strings.Contains(s, ":") {
		return checkURI(s) == ""
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '.' && c != '-') {
			return false
		}
	}
	return s != ""
}

// checkHref returns the broken rule about the target of a link; "" if none. A target that is only a name, such as the
// subject of a record, is not fetched: it may be an IRI. Its URI is written.
func checkHref(l *Link) string {
	if l.Rel != RelDescribes && (!strings.Contains(l.Rel, ":") || l.Rel == RelPatch) {
		return checkURI(l.Href)
	}
	if l.Href == "" {
		return "is missing"
	}
	if _, err := iri.Normalize(l.Href); err != nil || strings.Contains(l.Href, " ") {
		return fmt.Sprintf("%q is not an absolute IRI", read.Clip(l.Href))
	}
	return ""
}
