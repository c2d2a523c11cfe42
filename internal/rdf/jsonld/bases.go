package jsonld

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tmshare/tmshare/internal/iri"
)

// The library resolves relative IRIs in a non-standard way. So each base is replaced by a stand-in with its number, and
// with a path from which relative IRIs can be recovered. Dot segments are escaped.
const (
	standIn  = "x-tmshare-base-"
	host     = "b.tmshare/"
	folder   = host + "d/"
	dot      = "~2e~"
	appended = "~~~~" // ends a vocabulary that may be relative: keys are appended to the resolved IRI
)

// base returns the stand-in for a base.
func (d *document) base(iri string) string {
	d.bases = append(d.bases, iri)
	return standIn + strconv.Itoa(len(d.bases)-1) + "://" + folder
}

// standIns replaces the bases of contexts by their stand-ins.
func (d *document) standIns(value any, inContext bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			d.standIns(each, inContext)
		}
	case map[string]any:
		for key, each := range v {
			text, isText := each.(string)
			switch {
			case inContext && isText && key == "@base" && iri.IsAbsolute(text):
				d.put(v, key, d.base(plain(text)))
			case inContext && isText && key == "@base" && strings.HasSuffix(text, dot):
				d.put(v, key, text+"/") // the segment is a folder
			case inContext && isText && key == "@vocab" && !strings.Contains(text, ":") && !d.terms[plain(text)]:
				d.put(v, key, text+appended)
			default:
				d.standIns(each, inContext || key == "@context")
			}
		}
	}
}

// put sets a member of an object until expansion, because a JSON literal may contain an apparent context.
func (d *document) put(in map[string]any, key string, value any) {
	before := in[key]
	d.restore = append(d.restore, func() { in[key] = before })
	in[key] = value
}

var ofStandIn = regexp.MustCompile("^" + standIn + "([0-9]+)://(.*)$")

// inMessage matches the stand-in for an IRI in a message of the library.
var inMessage = regexp.MustCompile(standIn + `[0-9]+://[^\s"')>]*`)

// resolved returns the original IRI that the library has resolved to this one.
func (d *document) resolved(s string) string {
	parts := ofStandIn.FindStringSubmatch(s)
	if parts == nil {
		return plain(s)
	}
	n, _ := strconv.Atoi(parts[1])
	if n >= len(d.bases) {
		return plain(s)
	}
	ref, rest, _ := strings.Cut(parts[2], appended)
	if in, ok := strings.CutPrefix(ref, folder); ok {
		ref = in
	} else if in, ok := strings.CutPrefix(ref, host); ok {
		ref = "/" + in
	} else {
		ref = "//" + ref
	}
	resolved, err := iri.ResolveAsIs(d.bases[n], plain(ref))
	if err != nil {
		resolved = plain(ref)
	}
	return resolved + plain(rest)
}

var dots = regexp.MustCompile(`(^|/)(\.\.?)($|[/?#])`)

// withoutDots returns a text with its dot segments escaped, which the library would remove.
func withoutDots(s string) string {
	if !strings.HasPrefix(s, ".") && !strings.Contains(s, "/.") {
		return s
	}
	for dots.MatchString(s) {
		s = dots.ReplaceAllStringFunc(s, func(m string) string { return strings.ReplaceAll(m, ".", dot) })
	}
	return s
}
