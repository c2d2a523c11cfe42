package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Echo lets clients know an answer that no cache has given: it repeats a value of the query that the client has made
// up.
type Echo struct {
	Parameter string // of the query; "": no echo
	Header    string // of the answer
}

// echoed is the value that an answer repeats. The zero value is none.
type echoed struct {
	Echo
	value string
}

// take removes the parameter from a request, so that nothing else depends on it.
func (e Echo) take(x *Recorder, r *http.Request) *http.Request {
	if e.Parameter == "" || r.URL.RawQuery == "" {
		return r
	}
	var values []string
	others := slices.DeleteFunc(strings.Split(r.URL.RawQuery, "&"), func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != e.Parameter {
			return false
		}
		value, _ = url.QueryUnescape(value)
		values = append(values, value)
		return true
	})
	if len(values) == 1 && isHarmless(values[0]) {
		x.echo = echoed{e, values[0]}
	}
	u, asked := *r.URL, *r
	u.RawQuery = strings.Join(others, "&")
	asked.URL = &u
	return &asked
}

// set makes an answer repeat the value. No cache may keep it (RFC 9111 §5.2.2.5, no-store), because the address is
// never requested again, and caches that ignore the query must not serve it to others. Redirects keep the query.
func (e *echoed) set(h http.Header, status int) {
	if e.value == "" {
		return
	}
	h.Set(e.Header, e.value)
	h.Set("Cache-Control", "no-store")
	if to := h.Get("Location"); to != "" && status/100 == 3 {
		separator := "?"
		if strings.Contains(to, "?") {
			separator = "&"
		}
		h.Set("Location", to+separator+e.Parameter+"="+e.value)
	}
}
