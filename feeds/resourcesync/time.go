package resourcesync

import "time"

// FormatTime formats t for documents: in UTC, with exactly six fractional digits, so that times of one Source also sort
// as strings. It truncates further digits.
func FormatTime(t time.Time) string { return string(appendTime(nil, t)) }

// appendTime formats without a layout, which is much faster, because writers call it most.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, int(month), 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, hour, 2), ':')
	b = append(appendDigits(b, minute, 2), ':')
	b = append(appendDigits(b, second, 2), '.')
	return append(appendDigits(b, t.Nanosecond()/1000, 6), 'Z')
}

// appendDigits writes the last digits of a number.
func appendDigits(b []byte, n, digits int) []byte {
	const most = 6
	var d [most]byte
	for i := most - 1; i >= most-digits; i-- {
		d[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, d[most-digits:]...)
}

// written returns t as a reader of FormatTime gets it back.
func written(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// west is the time by which a day without a zone ends later in the westernmost zone than in UTC.
const west = 12 * time.Hour

// parseTime parses a W3C Datetime, as Z39.99 §7 requires, and returns its begin and end in UTC: omitted parts (seconds,
// time of day, day, month) may have any value. A time without a zone is in UTC, and a day without a zone ends with the
// last zone. With seconds, begin and end are the same. Beyond the standard, a space may replace the T, zones may lack
// their colon, and fractions may have any number of digits, of which nine count.
func parseTime(s []byte) (begin, end time.Time, ok bool) {
	c := timeCursor{rest: s, ok: true}
	year, month, day := c.number(4), 1, 1
	var hour, minute, second, nanos, offset int
	years, months, days, rest := 1, 0, 0, west // from the begin to the end
	if c.skip("-") {
		month = c.number(2)
		years, months = 0, 1
		if c.skip("-") {
			day = c.number(2)
			months, days = 0, 1
			if c.skip("Tt ") {
				hour = c.number(2)
				c.ok = c.skip(":") && c.ok
				minute = c.number(2)
				days, rest = 0, time.Minute
				if c.skip(":") {
					second = c.number(2)
					rest = 0
					if c.skip(".") {
						nanos = c.fraction()
					}
				}
			}
			offset = c.zone()
		}
	}
	if !c.ok || len(c.rest) > 0 || hour > 23 || minute > 59 || second > 60 {
		return begin, end, false
	}
	// time.Date turns 30 February into March; such a date is invalid.
	if month < 1 || month > 12 || day < 1 || day > 28 &&
		time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day {
		return begin, end, false
	}
	begin = time.Date(year, time.Month(month), day, hour, minute-offset, second, nanos, time.UTC)
	return begin, begin.AddDate(years, months, days).Add(rest), true
}

// timeCursor reads a time from left to right. ok stays false once something was
// not there.
type timeCursor struct {
	rest []byte
	ok   bool
}

// number reads exactly so many digits.
func (c *timeCursor) number(digits int) int {
	if len(c.rest) < digits {
		c.ok = false
		return 0
	}
	n := 0
	for i := range digits {
		d := c.rest[i] - '0'
		if d > 9 {
			c.ok = false
			return 0
		}
		n = n*10 + int(d)
	}
	c.rest = c.rest[digits:]
	return n
}

// skip reads one of the characters, if one is there.
func (c *timeCursor) skip(any string) bool {
	if len(c.rest) == 0 {
		return false
	}
	for i := range len(any) {
		if c.rest[0] == any[i] {
			c.rest = c.rest[1:]
			return true
		}
	}
	return false
}

// fraction reads at least one digit and returns nanoseconds.
func (c *timeCursor) fraction() int {
	nanos, digits := 0, 0
	for len(c.rest) > 0 && c.rest[0]-'0' <= 9 {
		if digits < 9 {
			nanos = nanos*10 + int(c.rest[0]-'0')
		}
		digits++
		c.rest = c.rest[1:]
	}
	if digits == 0 {
		c.ok = false
	}
	for ; digits < 9; digits++ {
		nanos *= 10
	}
	return nanos
}

// zone parses Z, an offset, or nothing, and returns minutes east of Greenwich.
func (c *timeCursor) zone() int {
	if len(c.rest) == 0 || c.skip("Zz") {
		return 0
	}
	west := c.rest[0] == '-'
	if !c.skip("+-") {
		c.ok = false
		return 0
	}
	hours, minutes := c.number(2), 0
	if c.skip(":") || len(c.rest) > 0 {
		minutes = c.number(2)
	}
	if hours > 23 || minutes > 59 {
		c.ok = false
	}
	if west {
		return -(hours*60 + minutes)
	}
	return hours*60 + minutes
}
