// Package faults makes a server for tests answer as bad networks, caches, proxies and servers do.
package faults

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
)

// Fault answers a request in place of the server, or returns false. real is the server's handler.
type Fault func(w http.ResponseWriter, r *http.Request, real http.Handler) bool

// Answer answers a request in place of the server.
type Answer func(w http.ResponseWriter, r *http.Request, real http.Handler)

// Always is a number of requests that no test makes.
const Always = 1 << 30

// Some answers the requests that it is for, so many times, with a fault.
func Some(wanted func(*http.Request) bool, count int, with Answer) Fault {
	var left atomic.Int64
	left.Store(int64(count))
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !wanted(r) || left.Add(-1) < 0 {
			return false
		}
		with(w, r, real)
		return true
	}
}

// Rewriting answers the requests that it is for with the server's answer, changed.
func Rewriting(wanted func(*http.Request) bool, change func(body string) string) Fault {
	return func(w http.ResponseWriter, r *http.Request, real http.Handler) bool {
		if !wanted(r) {
			return false
		}
		answer, body := Record(real, unconditional(r))
		// forward the headers needed by faults that alter bodies
		for _, name := range []string{"Content-Type", "TMShare-Checked", "TMShare-Asked"} {
			for _, value := range answer.Header().Values(name) {
				w.Header().Add(name, value)
			}
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(change(string(body))))
		return true
	}
}

// Answering answers with a status alone.
func Answering(status int) Answer {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(status) }
}

// Record returns the response of a handler.
func Record(h http.Handler, r *http.Request) (*httptest.ResponseRecorder, []byte) {
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, bytes.Clone(w.Body.Bytes())
}

// unconditional returns the request for the whole document, without conditions.
func unconditional(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	for _, h := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		r.Header.Del(h)
	}
	return r
}

// Packed returns the bytes in gzip's form.
func Packed(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}
