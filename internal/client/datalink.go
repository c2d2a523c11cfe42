package client

import (
	"fmt"
	"mime"

	"github.com/tmshare/tmshare/feeds"
)

// dataLink chooses the link to the data of an entry.
func dataLink(e *feeds.Entry) (feeds.Link, bool) {
	return bestLink(append(e.Find(feeds.RelTopicMapData), e.Find("alternate")...))
}

func noData(feed string, e *feeds.Entry) error {
	return fmt.Errorf("%s: the entry %s (%q) has no link to XTM data", feed, e.ID, e.Title)
}

// bestLink chooses the link to the XTM that we like best: XTM 2.1, which loses
// nothing, then XTM 1.0, then whatever may be XTM.
func bestLink(links []feeds.Link) (best feeds.Link, ok bool) {
	rank := 0
	for _, l := range links {
		if r := rankType(l.Type); r > rank {
			best, rank = l, r
		}
	}
	return best, rank > 0
}

// rankType says how much we like data of a media type, 0 being not at all.
// Servers of all generations are about: "" and the generic types may be XTM.
func rankType(mediaType string) int {
	base, params, err := mime.ParseMediaType(mediaType)
	if mediaType == "" {
		return 1
	}
	if err != nil {
		return 0
	}
	switch base {
	case "application/x-tm+xml":
		switch params["version"] {
		case "2.1":
			return 6
		case "2.0":
			return 5
		case "1.0":
			return 4
		}
		return 4
	case "application/xtm1+xml", "text/xtm1+xml", "application/xtm+xml":
		return 3
	case "application/xml", "text/xml":
		return 2
	}
	return 0
}
