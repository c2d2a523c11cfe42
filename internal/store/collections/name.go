package collections

import "fmt"

// ValidateName checks the name of a collection, which stands in URLs.
func ValidateName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("collection name %.80q: 1 to 64 characters are needed", name)
	}
	for i, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case i > 0 && (r == '-' || r == '_'):
		default:
			return fmt.Errorf("collection name %q: use letters, digits, - and _, beginning with a letter or digit", name)
		}
	}
	return nil
}
