package resourcesync

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/iri"
	"github.com/tmshare/tmshare/internal/xml/read"
	"github.com/tmshare/tmshare/internal/xml/scan"
)

// kind has the rules of Z39.99 §8 to §13, and Appendix A, Table 4, for the documents of one capability.
type kind struct {
	snapshot bool // has at, and may have completed
	interval bool // has from, and may have until
	indexed  bool // may be grouped by an index
	manifest bool // describes the files of a package
	changes  bool // lists changes, not in an index
	packages bool // lists packages, not in an index
}

var kinds = map[Capability]kind{
	Description: {indexed: true},
	// §9: Sources should not generate Capability List Indexes.
	CapabilityList:       {},
	ResourceList:         {snapshot: true, indexed: true},
	ResourceDump:         {snapshot: true, indexed: true, packages: true},
	ResourceDumpManifest: {snapshot: true, manifest: true},
	ChangeList:           {interval: true, indexed: true, changes: true},
	ChangeDump:           {interval: true, indexed: true, packages: true},
	ChangeDumpManifest:   {interval: true, manifest: true, changes: true},
}

// rules checks a document against Z39.99 while it is written. It allows all choices that the specification leaves to
// the Source. The methods return the broken rule: as a text, "" if none, or as an *InvalidError.
type rules struct {
	kind
	head  Document
	items int

	// seen are the URIs of the document, or the capabilities of a Capability List. In a list of changes it has those URIs
	// alone that changed at the time last.
	seen map[string]struct{}
	last time.Time // the time of the previous change, or the from of the previous list or package
	open bool      // the previous list has no until
}

func (r *rules) root() string {
	if r.head.Index {
		return "sitemapindex"
	}
	return "urlset"
}

// checkHead checks the head of the document.
func (r *rules) checkHead() error {
	d := &r.head
	invalid := func(element, format string, args ...any) error {
		return &InvalidError{Element: r.root() + "/" + element, Rule: fmt.Sprintf(format, args...)}
	}
	k, ok := kinds[d.Capability]
	if !ok {
		return invalid("rs:md", "%q is not a capability that Z39.99 §7 defines", read.Clip(string(d.Capability)))
	}
	r.kind = k
	if d.Index {
		if !k.indexed {
			return invalid("rs:md", "there is no index of documents of the capability %s", d.Capability)
		}
		r.changes, r.packages = false, false
	}
	if rule := checkTimes(&d.Times, k.snapshot, k.interval); rule != "" {
		return invalid("rs:md", "%s", rule)
	}
	if k.snapshot && d.At.IsZero() {
		return invalid("rs:md", "at is missing (Z39.99 Appendix A)")
	}
	if k.interval && d.From.IsZero() {
		return invalid("rs:md", "from is missing (Z39.99 Appendix A)")
	}
	for i := range d.Links {
		if rule := r.checkLink(&d.Links[i]); rule != "" {
			return invalid("rs:ln", "%s", rule)
		}
	}
	return nil
}

// checkTimes returns the rule that the times break, or "".
func checkTimes(t *Times, snapshot, interval bool) string {
	for _, one := range [...]struct {
		name    string
		time    time.Time
		allowed bool
	}{{"at", t.At, snapshot}, {"completed", t.Completed, snapshot}, {"from", t.From, interval},
		{"until", t.Until, interval}} {
		switch {
		case one.time.IsZero():
		case !one.allowed:
			return one.name + " has no meaning here (Z39.99 §7, Appendix A)"
		case !hasFourDigitYear(one.time):
			return one.name + ": the year has not four digits"
		}
	}
	switch {
	case !t.Completed.IsZero() && t.At.IsZero():
		return "completed needs at"
	case !t.Completed.IsZero() && t.Completed.Before(t.At):
		return "completed is before at"
	case !t.Until.IsZero() && t.From.IsZero():
		return "until needs from"
	case !t.Until.IsZero() && t.Until.Before(t.From):
		return "until is before from"
	}
	return ""
}

func hasFourDigitYear(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year <= 9999
}

// complete returns the item as it is written: if one of the two times of a change is missing, it equals the other.
func (r *rules) complete(item *Item) Item {
	i := *item
	if r.changes {
		if i.LastMod.IsZero() {
			i.LastMod = i.Datetime
		}
		if i.Datetime.IsZero() {
			i.Datetime = i.LastMod
		}
	}
	return i
}

// checkItem checks the next item.
func (r *rules) checkItem(i *Item) error {
	invalid := func(element, format string, args ...any) error {
		return &InvalidError{
			Element: fmt.Sprintf("item %d (%s)/%s", r.items+1, read.Clip(i.Loc), element),
			Rule:    fmt.Sprintf(format, args...),
		}
	}
	if rule := checkURI(i.Loc); rule != "" {
		return invalid("loc", "%s", rule)
	}
	// The schema of Sitemaps, tLoc.
	if len(i.Loc) < 12 || len(i.Loc) > 2048 {
		return invalid("loc", "its length is not from 12 to 2,048 characters")
	}
	if !i.LastMod.IsZero() && !hasFourDigitYear(i.LastMod) {
		return invalid("lastmod", "the year has not four digits")
	}
	if rule := r.checkChangeFreq(i.ChangeFreq); rule != "" {
		return invalid("changefreq", "%s", rule)
	}
	rule := cmp.Or(r.checkCapability(i), r.checkChange(i), r.checkItemTimes(i), r.checkPath(i),
		checkRepresentation(&i.Representation))
	if rule != "" {
		return invalid("rs:md", "%s", rule)
	}
	if rule := r.checkLinks(i); rule != "" {
		return invalid("rs:ln", "%s", rule)
	}
	if rule := r.checkRepeated(i); rule != "" {
		return invalid("loc", "%s", rule)
	}
	return nil
}

func (r *rules) checkChangeFreq(s string) string {
	switch s {
	case "":
	case "always", "hourly", "daily", "weekly", "monthly", "yearly", "never":
		if r.head.Index {
			return "does not occur in an index"
		}
	default:
		return fmt.Sprintf("%q is not a value that Z39.99 §7 defines", read.Clip(s))
	}
	return ""
}

// checkCapability: Z39.99 §8 (Describing the Source), §9 (Advertising
// Capabilities).
func (r *rules) checkCapability(i *Item) string {
	switch r.head.Capability {
	case Description:
		if r.head.Index {
			if i.Capability != "" && i.Capability != Description {
				return "an index of Source Descriptions lists those only"
			}
		} else if i.Capability != CapabilityList {
			return "capability is not capabilitylist (Z39.99 §8)"
		}
	case CapabilityList:
		switch i.Capability {
		case ResourceList, ResourceDump, ChangeList, ChangeDump, ChangeNotification:
		default:
			return "capability is none that a Capability List lists (Z39.99 §9)"
		}
	default:
		if i.Capability != "" {
			return "capability belongs in Source Descriptions and Capability Lists (Z39.99 §7)"
		}
	}
	return ""
}

// checkChange: Z39.99 §12.1 (Change List), §13.1.1 (Change Dump Manifest).
func (r *rules) checkChange(i *Item) string {
	if !r.changes {
		if i.Change != "" || !i.Datetime.IsZero() {
			return "change and datetime belong in lists of changes (Z39.99 §7)"
		}
		return ""
	}
	switch i.Change {
	case Created, Updated, Deleted:
	case "":
		return "change is missing (Z39.99 §12.1, §13.1.1)"
	default:
		return fmt.Sprintf("%q is not a change that Z39.99 §7 defines", read.Clip(string(i.Change)))
	}
	at := written(i.LastMod)
	switch {
	case at.IsZero():
		return "the change has neither lastmod nor datetime (Z39.99 Appendix A)"
	case !at.Equal(written(i.Datetime)):
		return "lastmod and datetime differ: readers of Z39.99 1.0 and of 1.1 would see different times"
	case at.Before(written(r.head.From)):
		return "the change was before the from of the document"
	case !r.head.Until.IsZero() && at.After(written(r.head.Until)):
		return "the change was after the until of the document"
	case at.Before(r.last):
		return "the change was before the one listed before it (Z39.99 §12.1, §13.1.1)"
	}
	return ""
}

// checkItemTimes: Z39.99 Appendix A, and §12.2 (Change List Index).
func (r *rules) checkItemTimes(i *Item) string {
	listed := r.head.Index || r.packages // documents or packages
	if rule := checkTimes(&i.Times, r.snapshot && listed, r.interval && listed); rule != "" {
		return rule
	}
	if !r.interval || !listed {
		return ""
	}
	if !i.From.IsZero() && written(i.From).Before(r.last) {
		return "from is before that of the one listed before it (Z39.99 §12.2, §13.1)"
	}
	if r.head.Index && r.open {
		return "stands behind a list that has no until (Z39.99 §12.2)"
	}
	return ""
}

// checkPath: Z39.99 §11.1.1 (Resource Dump Manifest), §13.1.1.
func (r *rules) checkPath(i *Item) string {
	switch {
	case i.Path != "" && !r.manifest:
		return "path belongs in manifests (Z39.99 §7)"
	case i.Path == "" && r.manifest && i.Change != Deleted:
		return "path is missing (Z39.99 §11.1.1, §13.1.1)"
	}
	return ""
}

// checkRepeated refuses a second item with the same resource, with the same capability (Z39.99 §9), or with the same
// URI and time of a change (§12.1).
func (r *rules) checkRepeated(i *Item) string {
	if _, ok := r.seen[r.key(i)]; !ok {
		return ""
	}
	switch {
	case r.head.Capability == CapabilityList:
		return "the capability is listed already (Z39.99 §9)"
	case !r.changes:
		return "the URI is listed already"
	case written(i.LastMod).Equal(r.last):
		return "a change of the URI at this time is listed already (Z39.99 §12.1)"
	}
	return ""
}

func (r *rules) key(i *Item) string {
	if r.head.Capability == CapabilityList {
		return string(i.Capability)
	}
	return i.Loc
}

// note remembers a written item.
func (r *rules) note(i *Item) {
	r.items++
	if r.changes {
		if at := written(i.LastMod); !at.Equal(r.last) {
			r.last = at
			clear(r.seen)
		}
	} else if !i.From.IsZero() {
		r.last = written(i.From)
	}
	r.open = r.interval && !i.From.IsZero() && i.Until.IsZero()
	if r.seen == nil {
		r.seen = make(map[string]struct{})
	}
	r.seen[r.key(i)] = struct{}{}
}

// checkRepresentation returns the rule that attributes of <rs:md> or <rs:ln> break, or "".
func checkRepresentation(p *Representation) string {
	for _, h := range p.Hashes {
		size, known := digestSizes[h.Algorithm]
		switch {
		case h.Algorithm == "" || h.Digest == "" || !isToken(h.Algorithm) || !isToken(h.Digest) ||
			strings.Contains(h.Algorithm, ":"):
			return fmt.Sprintf("%q is no hash (Z39.99 §7)", read.Clip(h.String()))
		case known && (!isHex(h.Digest) || len(h.Digest) != 2*size):
			return fmt.Sprintf("%q is not the digest of %s in hexadecimal (Z39.99 §7)", read.Clip(h.Digest), h.Algorithm)
		}
	}
	switch {
	case p.Length < 0 || p.Empty && p.Length > 0:
		return fmt.Sprintf("the length %d makes no sense", p.Length)
	case p.Type != "" && !isMediaType(p.Type):
		return fmt.Sprintf("%q is no media type", read.Clip(p.Type))
	case !isLine(p.Encoding):
		return "encoding has characters that no content coding has"
	case p.Path != "" && (!isLine(p.Path) || !strings.HasPrefix(p.Path, "/") || strings.HasSuffix(p.Path, "/")):
		return fmt.Sprintf("the path %q does not begin with a slash, or ends with one", read.Clip(p.Path))
	}
	return ""
}

// checkURI returns the rule that an absolute URI (RFC 3986 §4.3) breaks, or "". URIs in Sitemaps are escaped, so other
// characters than ASCII break it.
func checkURI(s string) string {
	if s == "" {
		return "is missing"
	}
	if !iri.IsAbsolute(s) {
		return fmt.Sprintf("%q is not an absolute URI", read.Clip(s))
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1:i+3]) {
				return fmt.Sprintf("%q has a percent sign that begins no escape", read.Clip(s))
			}
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-._~:/?#[]@!$&'()*+,;=", c) < 0: // RFC 3986 §2.2, §2.3
			return fmt.Sprintf("%q has characters that must be escaped in a URI", read.Clip(s))
		}
	}
	return ""
}

func isMediaType(s string) bool {
	slash := strings.IndexByte(s, '/')
	return slash > 0 && slash < len(s)-1 && s[slash+1] != ' ' && isLine(s) && !strings.Contains(s[:slash], " ")
}

// isToken reports whether s is text without spaces.
func isToken(s string) bool { return isLine(s) && !strings.Contains(s, " ") }

// isLine reports whether s is text on one line that XML can hold, without spaces at the ends, which readers remove.
func isLine(s string) bool {
	if strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		return false
	}
	_, bad := scan.Uncarried(s)
	return !bad && !strings.ContainsAny(s, "\t\r\n")
}
