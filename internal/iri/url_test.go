package iri

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHost(t *testing.T) {
	for _, c := range [][3]string{
		{"http", "Example.ORG", "example.org"},
		{"http", "example.org:80", "example.org"},
		{"HTTP", "example.org.:80", "example.org"},
		{"https", "example.org:443", "example.org"},
		{"https", "example.org:80", "example.org:80"},
		{"http", "example.org:", "example.org"},
		{"http", "example.org:8080", "example.org:8080"},
		{"http", "Bücher.example", "xn--bcher-kva.example"},
		{"http", "XN--BCHER-KVA.example.", "xn--bcher-kva.example"},
		{"http", "bücher。example", "xn--bcher-kva.example"},
		{"http", "a_b.example", "a_b.example"},
		{"http", "straße.example", "xn--strae-oqa.example"},
		{"http", "127.0.0.1:80", "127.0.0.1"},
		{"http", "[2001:DB8:0::1]:80", "[2001:db8::1]"},
		{"https", "[::1]:8443", "[::1]:8443"},
		{"http", "", ""},
	} {
		got := Host(c[0], c[1])
		assert.Equal(t, c[2], got, "%s of %s", c[1], c[0])
		assert.Equal(t, got, Host(c[0], got), "twice")
	}
}

func TestNormalizeURL(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP://Example.org:80":                  "http://example.org/",
		"http://example.org/%c3%bc?q=%c3#%c3":    "http://example.org/%C3%BC?q=%C3#%C3",
		"http://example.org/ü":                   "http://example.org/%C3%BC",
		"http://b%C3%BCcher.example./a":          "http://xn--bcher-kva.example/a",
		"https://Name:Word@Example.org:443/A":    "https://Name:Word@example.org/A",
		"http://example.org/%7ea/%2e%2e/A?x=/..": "http://example.org/%7Ea/%2E%2E/A?x=/..",
		"http://example.org/100%":                "http://example.org/100%",
		"urn:X:%c3":                              "urn:X:%c3",
		"file:///A":                              "file:///A",
		"no/scheme":                              "no/scheme",
	} {
		assert.Equal(t, want, NormalizeURL(in))
		assert.Equal(t, want, NormalizeURL(want), "twice")
	}
	assert.True(t, SameDocument("http://example.org/fragments#x", "HTTP://EXAMPLE.org.:80/fragments"))
	assert.False(t, SameDocument("http://example.org/fragments", "http://example.org/Fragments"))
	assert.False(t, SameDocument("http://example.org/", "https://example.org/"))
}
