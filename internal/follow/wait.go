package follow

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/fetch"
)

// wait is the time for which a server may hold a request: less than the limits of clients and proxies.
const wait = 50 * time.Second

// Wait has a server answer when a feed document is another than the one with an ETag, or after a while (RFC 7240 §4.3,
// The "wait" Preference). It reports whether it is another, and whether the server had the request wait.
func Wait(ctx context.Context, f *fetch.Fetcher, ref, etag string) (changed, waited bool, err error) {
	once := *f
	once.Tries = 1 // an unavailable server is requested again in the next round
	r := fetch.Request{
		Method: http.MethodHead, URL: ref, Accept: acceptAtom, ETag: etag, Within: wait + 5*time.Second,
		Packed:  true,
		Prepare: func(h http.Header) { h.Set("Prefer", "wait="+strconv.Itoa(int(wait/time.Second))) },
	}
	_, a, err := fetch.Do(ctx, &once, r, func(*fetch.Answer) (struct{}, error) { return struct{}{}, nil })
	if err != nil {
		return false, false, err
	}
	return !a.NotModified, strings.HasPrefix(a.Header.Get("Preference-Applied"), "wait"), nil
}
