package client

import "mime"

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
