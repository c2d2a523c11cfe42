package rendered

import "github.com/tmshare/tmshare/internal/xml/patch"

// Patch returns the patch from one document to another (RFC 7351).
func Patch(from, to Document) ([]byte, error) {
	before, err := from.Plain()
	if err != nil {
		return nil, err
	}
	after, err := to.Plain()
	if err != nil {
		return nil, err
	}
	return patch.Make(before, after)
}
