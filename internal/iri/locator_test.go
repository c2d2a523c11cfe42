package iri

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An IRI in normal form is its own locator. Any other one is kept apart, is shown as it is, and comes back.
func TestLocatorsOfIRIs(t *testing.T) {
	for s, want := range map[string]string{
		"http://e/a": "http://e/a", "http://e/~me": "http://e/~me", "http://E/": "http://E/", "http://e/ü": "http://e/ü", "http://e/%2F": "http://e/%2F",
		"http://e/a%20b": "http://e/a b", Own + "locator/666f6f3a3c": "foo:<",
		"http://e/%7Eme": KeepApart("http://e/%7Eme"), "HTTP://e/": KeepApart("HTTP://e/"), "http://e/%2f": KeepApart("http://e/%2f"), "http://e/%": KeepApart("http://e/%"),
		"http://e/.well-known/genid/b0123456789abcdef0123456789abcdef": KeepApart("http://e/.well-known/genid/b0123456789abcdef0123456789abcdef"),
		Own + "datatype/anyURI":     KeepApart(Own + "datatype/anyURI"),
		Own + "iri/zz":              Own + "iri/zz",
		KeepApart("http://e/a"):     KeepApart("http://e/a"), // it keeps nothing apart
		KeepApart("http://e/%7Eme"): KeepApart(KeepApart("http://e/%7Eme")),
	} {
		l := ToLocator(s)
		assert.Equal(t, want, l, s)
		assert.Equal(t, s, FromLocator(l))
	}
	for l, want := range map[string]string{
		KeepApart("http://e/%7Eme"): "http://e/%7Eme", KeepApart("http://e/a"): KeepApart("http://e/a"), KeepApart("http://e/%7E<"): KeepApart("http://e/%7E<"),
		KeepApart("%7E"): KeepApart("%7E"), KeepApart("http://e/%7E\xFF"): KeepApart("http://e/%7E\xFF"), "foo:<": "foo:<", "http://e/a b": "http://e/a b", Own + "iri/7E7e": Own + "iri/7E7e", "": "",
	} {
		assert.Equal(t, want, Shown(l))
	}
	assert.Equal(t, `{"a":"http://e/%7E\u0026","b":"x `+KeepApart("http://e/%7E&")+`"}`,
		string(ShownInJSON([]byte(`{"a":"`+KeepApart("http://e/%7E&")+`","b":"x `+KeepApart("http://e/%7E&")+`"}`))))
}
