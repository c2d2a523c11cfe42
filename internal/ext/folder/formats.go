package folder

import (
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/tmshare/tmshare/internal/follow"
)

// anyFormat matches every format.
const anyFormat = "*/*"

// CheckFormat returns why a text is no media type, nil if it is one.
func CheckFormat(format string) error {
	kind, _, err := mime.ParseMediaType(format)
	if main, sub, ok := strings.Cut(kind, "/"); err != nil || !ok || main == "" || sub == "" {
		return fmt.Errorf("%q is no media type, such as application/atom+xml", format)
	}
	if kind != anyFormat && strings.Contains(kind, "*") {
		return fmt.Errorf("%q is a range of media types: name each, or all that are left by \"*/*\"", format)
	}
	return nil
}

// parseType returns the type and the parameters of a media type, as far as it can be
// read.
func parseType(mediaType string) (kind string, parameters map[string]string) {
	kind, parameters, err := mime.ParseMediaType(mediaType)
	if err != nil {
		kind, _, _ = strings.Cut(mediaType, ";")
		return strings.ToLower(strings.TrimSpace(kind)), nil
	}
	return kind, parameters
}

// is reports whether a media type is in a wanted format: it has the same type and the wanted parameters, or all formats
// are wanted.
func is(mediaType, wanted string) bool {
	kind, has := parseType(mediaType)
	wantedKind, wants := parseType(wanted)
	if kind != wantedKind {
		return wantedKind == anyFormat
	}
	for name, value := range wants {
		if !strings.EqualFold(has[name], value) {
			return false
		}
	}
	return true
}

// choose returns the representations in wanted formats, the best first. Without wanted formats it returns all, in the
// order of the source.
func choose(all []follow.Representation, formats []string) []follow.Representation {
	if len(formats) == 0 {
		return all
	}
	var chosen []follow.Representation
	for _, format := range formats {
		for _, r := range all {
			there := slices.ContainsFunc(chosen, func(c follow.Representation) bool {
				return c.URL == r.URL && c.Type == r.Type
			})
			if is(r.Type, format) && !there {
				chosen = append(chosen, r)
			}
		}
	}
	return chosen
}

// accept returns the field Accept of a request for a media type.
func accept(mediaType string) string {
	if kind, parameters, err := mime.ParseMediaType(mediaType); err == nil && strings.Contains(kind, "/") {
		if formatted := mime.FormatMediaType(kind, parameters); formatted != "" {
			return formatted + ", */*;q=0.1"
		}
	}
	return "*/*"
}
