package resourcesync

import (
	"iter"
	"strings"
)

// headerLink is a link-value of RFC 8288 §3.
type headerLink struct {
	target string
	params map[string]string // by names in lower case; the first of equal names counts
}

// headerLinks parses a Link header field by RFC 8288 Appendix B.2 and B.3. The sequence ends at the first syntax error.
func headerLinks(field string) iter.Seq[headerLink] {
	return func(yield func(headerLink) bool) {
		for {
			field = strings.TrimLeft(field, " \t,")
			if !strings.HasPrefix(field, "<") {
				return
			}
			target, rest, ok := strings.Cut(field[1:], ">")
			if !ok {
				return
			}
			link := headerLink{target, make(map[string]string)}
			field = link.parseParams(rest)
			if !yield(link) {
				return
			}
		}
	}
}

// parseParams reads the parameters of a link and returns the rest of the field (RFC 8288 Appendix B.3).
func (l *headerLink) parseParams(s string) string {
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" || s[0] == ',' {
			return s
		}
		s = strings.TrimLeft(strings.TrimPrefix(s, ";"), " \t")
		end := strings.IndexAny(s, " \t=;,")
		if end < 0 {
			end = len(s)
		}
		name := strings.ToLower(s[:end])
		s = strings.TrimLeft(s[end:], " \t")
		value := ""
		if rest, ok := strings.CutPrefix(s, "="); ok {
			value, s = paramValue(strings.TrimLeft(rest, " \t"))
		}
		if _, ok := l.params[name]; !ok {
			l.params[name] = value
		}
		// It skips anything else up to the next delimiter.
		if end = strings.IndexAny(s, ";,"); end < 0 {
			return ""
		}
		s = s[end:]
	}
}

// paramValue reads a token or a quoted string, and returns its value and the rest of the field.
func paramValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ";,")
		if end < 0 {
			end = len(s)
		}
		return strings.TrimRight(s[:end], " \t"), s[end:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:]
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
