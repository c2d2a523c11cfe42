package resourcesync

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tmshare/tmshare/internal/xml/read"
)

const (
	page  = "http://example.com/topics/page.html"
	listA = "http://example.com/a.xml"
	listB = "http://example.com/b.xml"
)

func TestWellKnown(t *testing.T) {
	for uri, want := range map[string]string{
		"http://example.com":                          "http://example.com/.well-known/resourcesync",
		"https://example.com:8443/a/b?c#d":            "https://example.com:8443/.well-known/resourcesync",
		"http://user:secret@example.com/a":            "http://example.com/.well-known/resourcesync",
		"http://[::1]:80/":                            "http://[::1]:80/.well-known/resourcesync",
		"HTTP://example.com/.well-known/resourcesync": "http://example.com/.well-known/resourcesync",
	} {
		got, err := WellKnown(uri)
		require.NoError(t, err, uri)
		assert.Equal(t, want, got)
	}
	for _, uri := range []string{"", "/a", "example.com/a", "ftp://example.com/", "http:///a", "urn:x", "http://a b/", "http://%zz/"} {
		_, err := WellKnown(uri)
		assert.Error(t, err, uri)
	}
}

func TestDiscoverInHeader(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   []string
	}{
		{[]string{`<http://example.com/a.xml>; rel="resourcesync"`}, []string{listA}},
		{[]string{`<http://example.com/a.xml>;rel=resourcesync`}, []string{listA}},
		{[]string{`<http://example.com/a.xml> ; REL = "ResourceSync"`}, []string{listA}},
		{[]string{`</a.xml>; rel="up resourcesync"`}, []string{listA}},
		{[]string{`<../a.xml>; title="a, b; <c>"; type=application/xml; rel="resourcesync"; pri=1`}, []string{listA}},
		{[]string{`<http://example.com/x>; rel=next, </a.xml>; rel=resourcesync , ,</b.xml>;rel="resourcesync"`}, []string{listA, listB}},
		{[]string{`</a.xml>; rel=resourcesync`, `</b.xml>; rel=resourcesync`, `</a.xml>; rel=resourcesync`}, []string{listA, listB}},
		{[]string{`</a.xml>; title="say \"hi\", \\"; rel=resourcesync`}, []string{listA}},
		{[]string{`</a.xml>; nonsense; ; =x; rel=resourcesync`}, []string{listA}},
		{[]string{`</a.xml>; rel="resourcesync`}, []string{listA}},
		{[]string{`</a,b.xml>; rel=resourcesync`}, []string{"http://example.com/a,b.xml"}},
		{[]string{`</a.xml>; anchor="/topics/page.html"; rel=resourcesync`}, []string{listA}},

		{[]string{`</a.xml>; anchor="/other"; rel=resourcesync`}, nil},
		{[]string{`</a.xml>; rel=next; rel=resourcesync`}, nil}, // RFC 8288 §3.3: the first counts
		{[]string{`</a.xml>; rev=resourcesync`}, nil},
		{[]string{`</a.xml>; rel="resourcesync2"`}, nil},
		{[]string{`</a.xml>; title="; rel=resourcesync"`}, nil},
		{[]string{`</a.xml; rel=resourcesync`}, nil},
		{[]string{`/a.xml; rel=resourcesync`}, nil},
		{[]string{`<>; rel=resourcesync`, ``, `,`, `</a.xml>`}, nil},
		{nil, nil},
	} {
		assert.Equal(t, c.want, DiscoverInHeader(c.fields, page), "%q", c.fields)
	}
}

func TestDiscoverInHTML(t *testing.T) {
	for document, want := range map[string][]string{
		`<html><head><link rel="resourcesync" href="/a.xml"></head></html>`: {listA},
		`<HTML><HEAD><LINK HREF=/a.xml REL=ResourceSync></HEAD></HTML>`:     {listA},
		`<link rel='up resourcesync' href='../a.xml'>`:                      {listA},
		`<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><link href="/a.xml?x&amp;y" rel="resourcesync"/></head></html>`:   {listA + "?x&y"},
		`<base href="http://example.com/x/y"><link rel=resourcesync href="../a.xml"><link rel=resourcesync href="/b.xml"><link rel=resourcesync href="/a.xml">`: {listA, listB},
		`<head><title><link rel="resourcesync" href="/a.xml"></title><link rel="resourcesync" href="/b.xml">`:                                                   {listB},
		`<head><script>"<link rel='resourcesync' href='/a.xml'>"</script><link rel="resourcesync" href="/b.xml">`:                                               {listB},
		`<head><!-- <link rel="resourcesync" href="/a.xml"> --><link rel="resourcesync" href="/b.xml">`:                                                         {listB},
		`<head></head><link rel="resourcesync" href="/a.xml">`:                                                                                                  nil,
		`<body><link rel="resourcesync" href="/a.xml">`:                                                                                                         nil,
		`<a rel="resourcesync" href="/a.xml">`:                                                                                                                  nil,
		`<link rel="stylesheet" href="/a.xml"><link rel="resourcesync"><link rel="resourcesync" href=" ">`:                                                      nil,
		`<link rel="resourcesync" href="/a.xml"`:                                                                                                                nil,
		``:                                                                                                                                                      nil,
		strings.Repeat(" ", mostDiscovery) + `<link rel="resourcesync" href="/a.xml">`:                                                                          nil,
	} {
		got, err := DiscoverInHTML(strings.NewReader(document), page)
		require.NoError(t, err)
		assert.Equal(t, want, got, read.Clip(document))
	}
	lost := errors.New("connection reset")
	_, err := DiscoverInHTML(iotest.ErrReader(lost), page)
	assert.ErrorIs(t, err, lost)
	assert.ErrorContains(t, err, page)
}

func TestDiscoverInRobots(t *testing.T) {
	for document, want := range map[string][]string{
		"Sitemap: http://example.com/a.xml\nSitemap: http://example.com/b.xml\n": {listA, listB},
		"\uFEFFsitemap:/a.xml": {listA},
		"User-agent: *\r\nDisallow: /\r\n\r\n  SITEMAP :\t/a.xml \t# ours\r\n":       {listA},
		"Disallow: /x\rSitemap: a.xml\rSitemap: a.xml\r":                             {listA},
		"# Sitemap: /a.xml\nSitemap:\nSitemap: \nSitemaps: /a.xml\nSitemap /a.xml\n": nil,
		"": nil,
		strings.Repeat("#\n", mostDiscovery/2) + "Sitemap: /a.xml\n": nil,
		strings.Repeat("#", 2*mostDiscovery):                         nil,
	} {
		got, err := DiscoverInRobots(strings.NewReader(document), "http://example.com/robots.txt")
		require.NoError(t, err)
		assert.Equal(t, want, got, read.Clip(document))
	}
	lost := errors.New("connection reset")
	_, err := DiscoverInRobots(iotest.ErrReader(lost), page)
	assert.ErrorIs(t, err, lost)
}

// A base that is written once would stand in every URI that is found.
func TestDiscoveryIsBounded(t *testing.T) {
	links := func(head string) string {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, head, i)
		}
		return b.String()
	}
	const link, sitemap = "<link rel=resourcesync href=a%d>", "Sitemap: /%d\n"
	long := "http://example.com/" + strings.Repeat("b", 100_000) + "/"
	for name, o := range map[string]struct {
		page, robots, uri string
		found             int
	}{
		"a long base":       {`<base href="` + long + `">` + links(link), "", "http://example.com/", maxFound}, // it is passed over
		"a long address":    {links(link), links(sitemap), long, 0},
		"many":              {links(link), links(sitemap), "http://example.com/", maxFound},
		"absolute and long": {`<link rel=resourcesync href="` + long + `">`, "Sitemap: " + long, "http://example.com/", 0},
	} {
		found, err := DiscoverInHTML(strings.NewReader(o.page), o.uri)
		require.NoError(t, err)
		assert.Len(t, found, o.found, name)
		if found, err = DiscoverInRobots(strings.NewReader(o.robots), o.uri); o.robots != "" {
			require.NoError(t, err)
			assert.Len(t, found, o.found, name)
		}
	}
}
