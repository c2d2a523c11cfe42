package rdf

import (
	"fmt"
	"regexp"
	"strings"
)

// wellFormed is the grammar of language tags (BCP 47: RFC 5646 §2.1, Syntax).
var wellFormed = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
	`(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})` + // the language
		`(?:-[a-z]{4})?` + // the script
		`(?:-(?:[a-z]{2}|[0-9]{3}))?` + // the region
		`(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*` + // variants
		`(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*` + // extensions
		`(?:-x(?:-[a-z0-9]{1,8})+)?`, // a part for private use
	`x(?:-[a-z0-9]{1,8})+`,
	`en-GB-oed`, `i-(?:ami|bnn|default|enochian|hak|klingon|lux|mingo|navajo|pwn|tao|tay|tsu)`,
	`sgn-(?:BE-FR|BE-NL|CH-DE)`,
}, "|") + `)$`)

// Language returns a language tag as literals have it: well-formed (RDF 1.1 Concepts §3.3, Literals; BCP 47 §2.2.9,
// Classes of Conformance). An underscore becomes a hyphen. Any other tag that is not well-formed is an error.
func Language(tag string) (normal string, err error) {
	normal = strings.ReplaceAll(tag, "_", "-")
	if !wellFormed.MatchString(normal) {
		return "", fmt.Errorf("the language tag %.60q is not well-formed (BCP 47); write one such as en or en-GB", tag)
	}
	return normal, nil
}
