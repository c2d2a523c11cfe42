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
	Parameter string // of the query; "": nothing is repeated
	Header    string // of the answer
}

// echoed is what an answer repeats. The zero value is nothing.
type echoed struct {
	Echo
	value string
}

// take takes the parameter out of a request: nothing else that is made of the query knows of it.
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

// set has an answer repeat the value. Nobody asks at this address again, so no cache is to keep the answer (RFC 9111
// §5.2.2.5, no-store); nor may one that looks at the path alone give it to others. Redirects carry the query on.
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
