package fetch

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/feeds"
)

// Checked returns the time, by the clock of the origin, up to which the answer includes all changes of the origin.
// known is false if the server does not state it.
func (a *Answer) Checked() (at time.Time, known bool) {
	at, err := feeds.ParseTime(a.Header.Get(feeds.CheckedHeader))
	return at, err == nil
}

// Made returns when the origin made the document, or an earlier time: Checked, else the Date less the Age of caches
// (RFC 9111 §5.1, Age). known is false if the answer has neither. A Date without Age proves little, because some caches
// replace both.
func (a *Answer) Made() (at time.Time, known bool) {
	if at, known = a.Checked(); known {
		return at, true
	}
	date, err := http.ParseTime(a.Header.Get("Date"))
	if err != nil {
		return time.Time{}, false
	}
	return date.Add(-a.inCaches()), true
}

// Age returns how old the state in the answer is: the time from Checked to the Date, or that in caches if it is longer.
func (a *Answer) Age() time.Duration {
	age := a.inCaches()
	date, err := http.ParseTime(a.Header.Get("Date"))
	if checked, known := a.Checked(); known && err == nil {
		age = max(age, date.Sub(checked))
	}
	return age
}

// inCaches returns the Age that caches state.
func (a *Answer) inCaches() time.Duration {
	age, err := strconv.ParseUint(strings.TrimSpace(a.Header.Get("Age")), 10, 31)
	if err != nil { // RFC 9111 §5.1: an invalid number is ignored
		age = 0
	}
	return time.Duration(age) * time.Second
}

// Asked reports whether the answer was made for the request with the value of [Asking], so that it comes from no cache.
func (a *Answer) Asked(value string) bool {
	return value != "" && a.Header.Get(feeds.AskedHeader) == value
}

// NewAsked returns a random value for [Asking].
func NewAsked() string { return rand.Text() }

// Asking returns a URL with a value in its query that the answer repeats. Servers that do not know of it ignore it.
func Asking(address, value string) string {
	address, fragment, _ := strings.Cut(address, "#")
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	return address + separator + feeds.AskedParameter + "=" + url.QueryEscape(value) + fragment
}

// notAsking returns a URL without the value that [Asking] has added.
func notAsking(u *url.URL, value string) string {
	address := u.String()
	if value == "" {
		return address
	}
	asked := feeds.AskedParameter + "=" + url.QueryEscape(value)
	for _, with := range []string{"?" + asked + "&", "&" + asked, "?" + asked} {
		if before, after, ok := strings.Cut(address, with); ok {
			if strings.HasSuffix(with, "&") {
				before += "?"
			}
			return before + after
		}
	}
	return address
}
