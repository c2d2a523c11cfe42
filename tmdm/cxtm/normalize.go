package cxtm

import (
	"slices"
	"strings"

	"github.com/tmshare/tmshare/tmdm"
)

// relative writes locators relative to a base (ISO 13250-4 §3.19).
type relative struct {
	base string // without fragment, query and "/" at the end
}

func relativeTo(base tmdm.Locator) relative {
	s := string(base)
	for _, c := range []byte{'#', '?'} {
		if i := strings.IndexByte(s, c); i > 0 {
			s = s[:i]
		}
	}
	return relative{strings.TrimSuffix(s, "/")}
}

// locator returns l without the base, or else without the common prefix with the base up to its last slash.
func (r relative) locator(l string) string {
	if rest, ok := strings.CutPrefix(l, r.base); ok && r.base != "" {
		return strings.TrimPrefix(rest, "/")
	}
	slash := -1
	for i := 0; i < len(l) && i < len(r.base) && l[i] == r.base[i]; i++ {
		if l[i] == '/' {
			slash = i
		}
	}
	return l[slash+1:]
}

func (r relative) locators(set []tmdm.Locator) []string {
	if len(set) == 0 {
		return nil
	}
	out := make([]string, len(set))
	for i, l := range set {
		out[i] = r.locator(string(l))
	}
	slices.Sort(out)
	return out
}

// value returns the canonical form of a value (ISO 13250-4 §3.6 to §3.8; XML
// Schema Part 2 §3.2.3, §3.3.13).
func (r relative) value(value, datatype string) string {
	switch datatype {
	case tmdm.XSDAnyURI:
		return r.locator(value)
	case tmdm.XSDInteger:
		if sign, digits, fraction, ok := decimal(value); ok && fraction == "" && !strings.Contains(value, ".") {
			return sign + digits
		}
	case tmdm.XSDDecimal:
		if sign, digits, fraction, ok := decimal(value); ok {
			if fraction == "" {
				fraction = "0"
			}
			return sign + digits + "." + fraction
		}
	}
	return value
}

// decimal takes a decimal number apart: a sign only if it is negative, digits
// without leading zeros but the last, a fraction without trailing zeros.
func decimal(s string) (sign, digits, fraction string, ok bool) {
	s = strings.Trim(s, " \t\n\r")
	switch {
	case strings.HasPrefix(s, "-"):
		sign, s = "-", s[1:]
	case strings.HasPrefix(s, "+"):
		s = s[1:]
	}
	digits, fraction, _ = strings.Cut(s, ".")
	if digits == "" && fraction == "" || !allDigits(digits) || !allDigits(fraction) {
		return "", "", "", false
	}
	digits, fraction = strings.TrimLeft(digits, "0"), strings.TrimRight(fraction, "0")
	if digits == "" {
		digits = "0"
		if fraction == "" {
			sign = ""
		}
	}
	return sign, digits, fraction, true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
