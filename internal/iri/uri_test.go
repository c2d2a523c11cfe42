package iri

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestURIsOfIRIs(t *testing.T) {
	for iri, uri := range map[string]string{
		"http://example.org/a?b=c#d":         "http://example.org/a?b=c#d",
		"http://example.org/tromsø/Страна":   "http://example.org/troms%C3%B8/%D0%A1%D1%82%D1%80%D0%B0%D0%BD%D0%B0",
		"http://example.org/\U0001F600":      "http://example.org/%F0%9F%98%80",
		"http://example.org/%2F%25":          "http://example.org/%2F%25",
		"http://example.org/%C3%28%FF%E2%80": "http://example.org/%C3%28%FF%E2%80", // no UTF-8
		"http://example.org/%E2%80%AE":       "http://example.org/%E2%80%AE",       // a mark that turns text around
	} {
		assert.Equal(t, uri, ToURI(iri))
		assert.Equal(t, iri, FromURI(uri))
		assert.Equal(t, uri, ToURI(uri))
	}
	assert.Equal(t, "http://a/%20%7B%22%7D%7C%5C%5E%60%3C%3E", ToURI("http://a/ {\"}|\\^`<>"))
}
