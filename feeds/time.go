package feeds

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/xml/read"
)

// FormatTime formats t for feeds: in UTC, with exactly six fractional digits, so that times of one server also sort as
// strings. It truncates further digits.
func FormatTime(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// timePattern is RFC 3339 with known deviations: a date alone, minutes without seconds, and a missing zone.
var timePattern = regexp.MustCompile(
	`^(\d{4})-(\d\d)-(\d\d)(?:[Tt](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?([Zz]|[+-]\d\d:\d\d)?$`)

// ParseTime reads a date construct (RFC 4287 §3.3) and returns it in UTC.
// Seconds, or the whole time of day, may be missing and count as zero; a time without a zone is in UTC.
// Fractions may have any number of digits, of which nine count. A leap second is the first instant of the next
// minute.
func ParseTime(s string) (time.Time, error) {
	fail := func() (time.Time, error) {
		return time.Time{}, fmt.Errorf("%q is not a date and time of RFC 3339", read.Clip(s))
	}
	m := timePattern.FindStringSubmatch(s)
	if m == nil {
		return fail()
	}
	num := func(i int) int {
		n, _ := strconv.Atoi(m[i]) // digits by the pattern, or "" for zero
		return n
	}
	year, month, day := num(1), time.Month(num(2)), num(3)
	hour, minute, second := num(4), num(5), num(6)
	if hour > 23 || minute > 59 || second > 60 {
		return fail()
	}
	fraction := m[7]
	fraction = (fraction + strings.Repeat("0", 9))[:9]
	nanos, _ := strconv.Atoi(fraction)

	offset := 0
	if zone := m[8]; len(zone) > 1 {
		h, _ := strconv.Atoi(zone[1:3])
		min, _ := strconv.Atoi(zone[4:6])
		if h > 23 || min > 59 {
			return fail()
		}
		offset = h*60 + min
		if zone[0] == '-' {
			offset = -offset
		}
	}
	// time.Date turns 30 February into March; such a date is invalid.
	if d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); d.Year() != year || d.Month() != month || d.Day() != day {
		return fail()
	}
	t := time.Date(year, month, day, hour, minute-offset, second, nanos, time.UTC)
	if t.Year() < 1 || t.Year() > 9999 { // RFC 3339 cannot state it in UTC
		return fail()
	}
	return t, nil
}
