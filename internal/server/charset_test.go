package server_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"

	"github.com/tmshare/tmshare/internal/testhostile"
	"github.com/tmshare/tmshare/internal/testkit/served"
)

// The charset in the Content-Type of an upload has priority over the declaration (RFC 7303 §3.2).
func TestCharsetOfAnUpload(t *testing.T) {
	t.Parallel()
	latin := func(doc []byte) []byte {
		b, err := charmap.ISO8859_1.NewEncoder().Bytes(doc)
		require.NoError(t, err)
		return b
	}
	declared := func(doc []byte) []byte {
		return served.Replace(t, doc, `version="1.0"?>`, `version="1.0" encoding="ISO-8859-1"?>`)
	}
	rdf := []byte(`<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:r="http://www.w3.org/2000/01/rdf-schema#">` +
		`<rdf:Description rdf:about="http://psi.example.org/a"><r:label>né à Paris</r:label></rdf:Description></rdf:RDF>`)
	for mediaType, doc := range map[string][]byte{
		"application/x-tm+xml": served.TopicMap(served.Topic("a", "né à Paris")), "application/xml": served.TopicMap(served.Topic("a", "né à Paris")), "application/rdf+xml": rdf,
	} {
		for name, c := range map[string]struct {
			charset string
			sent    []byte
		}{
			"transcoded":                    {"; charset=ISO-8859-1", latin(doc)},
			"declared as what it is not":    {"; charset=utf-8", declared(doc)},
			"a charset that it is not in":   {"; charset=utf-8", latin(declared(doc))},
			"the declaration alone":         {"", latin(declared(doc))},
			"transcoded, and packed itself": {"; charset=ISO-8859-1", served.Gzipped(t, latin(doc))},
		} {
			n := start(t)
			n.Publish("egov", served.TopicMap(served.Topic("b", "b")))
			a := n.Put("egov", c.sent, "Content-Type", mediaType+c.charset)
			require.Equal(t, http.StatusOK, a.StatusCode, "%s, %s: %s", mediaType, name, a.Bytes)
			require.Contains(t, n.Current("egov"), "né à Paris", "PUT of %s, %s", mediaType, name)
			if mediaType == "application/rdf+xml" {
				continue
			}
			n.MustPut("egov", served.TopicMap(served.Topic("b", "b")))
			a = n.postTopics("egov", c.sent, nil, "Content-Type", mediaType+c.charset)
			require.Equal(t, http.StatusOK, a.StatusCode, "%s, %s: %s", mediaType, name, a.Bytes)
			require.Contains(t, n.Current("egov"), "né à Paris", "POST of %s, %s", mediaType, name)
		}
	}
	n := start(t)
	n.Publish("egov", served.TopicMap(served.Topic("b", "b")))
	a := n.Put("egov", latin(served.TopicMap(served.Topic("a", "né"))), "Content-Type", "application/xml; charset=utf-8")
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "it is text in neither: %s", a.Bytes)
	require.NotContains(t, n.Current("egov"), "psi.example.org/a")
}

// Documents with wrong encodings are read, or refused with the reason. None ends the server.
func TestEncodingsThatLie(t *testing.T) {
	t.Parallel()
	n := start(t)
	n.Publish("egov", served.TopicMap(served.Topic("b", "b")))
	for name, status := range map[string]int{
		"bytes that become three": 200, "UTF-16 that is said to be UTF-8": 200, "UTF-8 but for the last byte": 200,
		"UTF-8 but for the last byte, all said": 422, "a mark of UTF-16, and half a unit": 422, "an encoding that nobody knows": 422,
	} {
		e := testhostile.Encodings[name]
		a := n.Put("egov", []byte(e.Document(1000)), "Content-Type", e.Type, "TMShare-Max-Delete", "all")
		assert.Equal(t, status, a.StatusCode, "%s: %s", name, a.Bytes)
	}
	assert.Len(t, testhostile.Encodings, 6, "all are tried")
}
